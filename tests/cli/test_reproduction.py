"""The commands of `precedents reproduction` that read records."""

import csv
import io
import json

import pytest


def test_the_table_has_ours_and_the_published_value(folder, precedents) -> None:
    done = precedents("reproduction", "table", "--test", "identical_class", "--settings", "vehicle/logreg")
    assert done.code == 0
    row = next(line for line in done.out.splitlines() if line.startswith("dot_if (IF)"))
    assert row.split()[2:] == ["0.98", "±", "0.00"]
    assert "0.78 ± 0.08" in done.out


def test_tables_are_written_where_they_are_wanted(folder, precedents) -> None:
    done = precedents("reproduction", "table", "--out", "deep/tables", "--quiet")
    assert (done.code, done.err) == (0, "")
    names = {file.name for file in (folder / "deep/tables").iterdir()}
    assert {"tables.html", "overview.md", "identical_class_top10.csv"} <= names


def test_the_comparison_is_json_and_csv_alike(folder, precedents) -> None:
    cells = json.loads(precedents("reproduction", "compare", "--json", "--out", "out").out)
    rows = list(csv.DictReader(io.StringIO((folder / "out/comparison.csv").read_text())))
    assert [cell["status"] for cell in cells] == [row["status"] for row in rows]
    assert len(cells) == 60


def test_without_published_numbers_the_comparison_says_so(folder, precedents) -> None:
    done = precedents("reproduction", "compare", "--settings", "digits/logreg")
    assert "digits/logreg: ours alone" in done.out
    assert done.out.rstrip().endswith("Without published numbers, ours alone: digits/logreg.")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("table --records nowhere", "nowhere is no folder"),
        ("table --test identical", "No table is named 'identical'"),
        ("compare --settings digits/cnn", "No setting with records is named 'digits/cnn'"),
        ("figures --records .", "has no records"),
    ],
)
def test_what_is_not_there_is_said(command, said, folder, precedents) -> None:
    done = precedents("reproduction", *command.split())
    assert done.code == 2
    assert said in done.err
    assert len(done.err.splitlines()) == 1


def test_a_damaged_record_is_named(folder, precedents) -> None:
    with (folder / "results/vehicle-logreg.jsonl").open("a") as file:
        file.write("{broken\n")
    done = precedents("reproduction", "table")
    assert done.code == 2
    assert "vehicle-logreg.jsonl is damaged" in done.err


@pytest.mark.parametrize(
    "command", ["table --test identical_class", "compare", "compare --json", "table --test no"]
)
def test_bench_is_another_name_of_it(command, folder, precedents) -> None:
    done = precedents("bench", *command.split())
    assert done == precedents("reproduction", *command.split())
    assert done.code == (2 if command.endswith("no") else 0)


def test_records_are_made_by_either_name(folder, precedents) -> None:
    for name in ("reproduction", "bench"):
        run = ("run", "--settings", "wine/mlp", "--repeats", "1", "--epochs", "2", "--metrics", "cos_last")
        assert precedents(name, *run, "--workers", "1", "--out", name, "--quiet").code == 0
    made = [(folder / name / "wine-mlp.jsonl").read_bytes() for name in ("reproduction", "bench")]
    assert made[0] == made[1]
    assert made[0].count(b"outcome") == 7

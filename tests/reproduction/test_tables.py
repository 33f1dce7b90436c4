import csv
import io

import pytest
from rich.console import Console

from precedents import UnknownNameError
from precedents.reproduction.output import table_files, table_grids
from precedents.reproduction.results import read_results
from precedents.reproduction.tables import overview, table
from reproduction import recorded


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return read_results(recorded.write(tmp_path_factory.mktemp("records")))


def test_a_cell_has_ours_the_published_value_and_the_difference(found) -> None:
    cell = table("identical_class", found).cells["dot_if", "mnist/cnn"]
    assert cell.ours.mean == pytest.approx(0.29)
    assert cell.published.mean == 0.09
    assert cell.difference == pytest.approx(0.2)


def test_what_is_not_published_has_no_difference(found) -> None:
    cell = table("identical_class", found).cells["cos_grad", "digits/logreg"]
    assert cell.published is None
    assert cell.difference is None


def test_metrics_are_rows_and_settings_columns(found) -> None:
    grid = table("identical_subclass(k=10)", found).grid()
    assert list(grid.headings) == ["metric", "mnist\ncnn", "vehicle\nlogreg", "digits\nlogreg"]
    assert [row[0] for row in grid.rows][:4] == ["repeats", "parameters", "test accuracy", "l2_x"]
    row = next(row for row in grid.entries if row[0].text == "dot_if (IF)")
    assert (row[1].text, row[1].under) == ("0.21 ± 0.00", ("0.01 ± 0.01", "+0.20"))


def test_cells_without_ours_are_dashes_with_the_reason(tmp_path) -> None:
    piece = ["outcome", "dot_if", "identical_class"]
    lines = [recorded.header("mnist/cnn"), recorded.record(0, piece, {"missing": "needs 40 GB"})]
    recorded.written(tmp_path, "mnist/cnn", lines)
    grid = table("identical_class", read_results(tmp_path)).grid()
    row = next(row for row in grid.entries if row[0].text == "dot_if (IF)")
    assert (row[1].text, row[1].under, row[1].why) == ("–", ("0.09 ± 0.01",), "needs 40 GB")
    assert "– dot_if: needs 40 GB" in grid.notes


def test_one_repeat_is_shown_without_a_deviation_and_fewer_repeats_are_named(tmp_path) -> None:
    lines = [recorded.outcome(0, metric, "identical_class", 0.5) for metric in ("cos_grad", "dot_grad")]
    lines.append(recorded.outcome(1, "cos_grad", "identical_class", 0.7))
    recorded.written(tmp_path, "digits/mlp", [recorded.header("digits/mlp"), *lines])
    rows = {row[0].text: row[1] for row in table("identical_class", read_results(tmp_path)).grid().entries}
    assert rows["repeats"].text == "2"
    assert (rows["cos_grad (GC)"].text, rows["cos_grad (GC)"].under) == ("0.60 ± 0.14", ())
    assert (rows["dot_grad (GD)"].text, rows["dot_grad (GD)"].under) == ("0.50", ("1 repeat",))


def test_the_overview_is_over_the_papers_settings(found) -> None:
    averages = overview(found)
    ours = averages.ours["cos_grad", "identical_class"]
    same = averages.same["cos_grad", "identical_class"]
    assert (ours.settings, ours.mean) == (2, pytest.approx(same.mean, abs=0.002))
    assert averages.all["cos_grad", "identical_class"].settings == 13


def test_the_overview_fails_what_is_above_the_limit_in_any_setting(found) -> None:
    rows = {row[0].text: row[1] for row in overview(found).grid().entries}
    assert (rows["l2_x"].verdict, rows["l2_x"].under) == ("failed", ("1.00",))
    assert rows["cos_grad (GC)"].verdict == "passed"


def test_without_settings_of_the_paper_the_overview_is_ours_alone(found) -> None:
    averages = overview([each for each in found if each.setting == "digits/logreg"])
    assert averages.ours["cos_grad", "identical_class"].settings == 1
    assert not averages.same


def test_all_tables_are_files(found) -> None:
    files = table_files(found)
    assert len(files) == 13
    rows = list(csv.DictReader(io.StringIO(files["identical_class.csv"])))
    (row,) = [row for row in rows if (row["setting"], row["metric"]) == ("mnist/cnn", "dot_if")]
    assert (row["mean"], row["published mean"], row["difference"], row["repeats"]) == (
        "0.29",
        "0.09",
        "0.2",
        "3",
    )
    assert (
        "| dot\\_if (IF) | 0.29 ± 0.00<br><sub>0.09 ± 0.01</sub><br><sub>+0.20</sub> |"
        in files["identical_class.md"]
    )
    assert files["tables.html"].count("<table") == 7


def test_one_table_by_the_published_name_or_the_criterion(found) -> None:
    for name in ("identical_class_top10", "identical_class(k=10)"):
        (grid,) = table_grids(found, name)
        assert grid.title.startswith("Identical class, top 10")
    assert set(table_files(found, "identical_class_top10")) == {
        "identical_class_top10.md",
        "identical_class_top10.csv",
        "identical_class_top10.html",
    }
    with pytest.raises(UnknownNameError, match="Did you mean 'randomization'"):
        table_grids(found, "randomisation")


@pytest.mark.parametrize("width", [40, 80, 200])
def test_a_table_fits_the_terminal_and_loses_nothing(found, width) -> None:
    console = Console(file=io.StringIO(), width=width, no_color=True)
    console.print(table("identical_class", found).grid())
    text = console.file.getvalue()
    assert max(map(len, text.splitlines())) <= width
    assert text.count("0.09 ± 0.01") == 1
    assert text.count("cos_grad (GC)") == (3 if width == 40 else 1)

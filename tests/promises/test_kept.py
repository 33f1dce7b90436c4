"""Kept files: a flipped byte is named, a kill costs time alone, and nobody's file is lost."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from threading import Thread
from typing import Any

import pytest
from conftest import blobs, mlp, trained
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from benchmarks.kills import WORKS
from benchmarks.process import run_module
from precedents import Explainer, FormatError, InputError, PrecedentsError, StoreError, audit
from precedents.audit import ledger
from precedents.audit.ledger import Ledger
from precedents.cli import audit as command
from precedents.reproduction.records import Records, every
from precedents.runtime import atomic
from precedents.runtime.atomic import exchanged, sweep, whole, write
from precedents.runtime.log import Log
from precedents.runtime.tensor_files import sealed_tensors, unsealed_tensors
from precedents.zoo.run import Prepared, Recipe, Run
from promises.full import WRITERS

ROOT = Path(__file__).parents[2]
TRAIN, TEST = blobs(20, seed=1), blobs(6, seed=2)
MODEL = trained(mlp, TRAIN)
DEAD = 2**22 + 1  # no process has this number


# A flipped byte.


def explainer(folder: Path) -> None:
    Explainer(MODEL, TRAIN, "dot_fisher").save(folder / "kept")


def explained(folder: Path) -> str:
    return Explainer.load(folder / "kept", MODEL, TRAIN).explain(TEST[0]).to_json()


def audited(folder: Path) -> str:
    few = {"metrics": ["cos_grad", "cos_x"], "criteria": ["identical_class", "model_randomization(draws=1)"]}
    return audit(MODEL, TRAIN, TEST, keep=folder / "kept", **few).to_json()


def trained_run(folder: Path) -> None:
    Prepared.of(Recipe("wine", "logistic_regression", epochs=1)).run().write(folder / "kept")


def opened_run(folder: Path) -> str:
    run = Run.open(folder / "kept")
    weights = {name: value.tolist() for name, value in run.model.state_dict().items()}
    return repr((run.prepared.recipe, dict(run.metrics), weights, run.prepared.train.fingerprint()))


HEADER = {"protocol": {"epochs": 3}, "data": "abc", "note": ""}


def recorded(folder: Path) -> None:
    records = Records.of(folder / "kept", "wine/mlp", HEADER)
    for i in range(3):
        records.once(i, ("outcome", "cos_x"), lambda i=i: {"mean": i / 7, "count": 12})


def read_records(folder: Path) -> str:
    return repr(Records.of(folder / "kept", "wine/mlp", HEADER).values)


def weighed(folder: Path) -> None:
    (folder / "kept").mkdir()
    write(folder / "kept" / "0-trained.safetensors", sealed_tensors(MODEL.state_dict()))


def read_weights(folder: Path) -> str:
    found = unsealed_tensors(folder / "kept" / "0-trained.safetensors", "Delete it.")
    return repr({name: value.tolist() for name, value in found.items()})


KINDS: dict[str, tuple[Callable[[Path], Any], Callable[[Path], str]]] = {
    "explainer": (explainer, explained),
    "audit": (audited, audited),
    "run": (trained_run, opened_run),
    "records": (recorded, read_records),
    "weights": (weighed, read_weights),
}


@cache
def made(kind: str) -> tuple[Path, str]:
    """One that is whole, and what it gives."""
    make, read = KINDS[kind]
    folder = Path(mkdtemp())
    make(folder)
    return folder, read(folder)


def told(read: Callable[[Path], str], folder: Path) -> str:
    """What it gives, or the error that it is refused by."""
    try:
        return read(folder)
    except PrecedentsError as error:
        return str(error)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25)
@given(data=st.data())
def test_a_flipped_byte_is_named_or_changes_nothing(kind, data) -> None:
    folder, expected = made(kind)
    files = sorted(path for path in (folder / "kept").iterdir() if path.stat().st_size)
    file = data.draw(st.sampled_from(files))
    content = file.read_bytes()
    place = data.draw(st.integers(0, len(content) - 1))
    flipped = bytearray(content)
    flipped[place] ^= data.draw(st.sampled_from([1, 2, 16, 64, 128, 255]))
    copy = Path(mkdtemp())
    shutil.copytree(folder / "kept", copy / "kept")
    (copy / "kept" / file.name).write_bytes(flipped)
    found = told(KINDS[kind][1], copy)
    assert found == expected or (str(copy / "kept") in found and "\n" not in found)
    shutil.rmtree(copy)


@pytest.mark.parametrize("where", [b"mean", b"0.285714", b"repeat", b"checksum", b"wine"])
def test_a_changed_word_of_a_record_is_a_damaged_line(where, tmp_path) -> None:
    recorded(tmp_path)
    file = tmp_path / "kept" / "wine-mlp.jsonl"
    content = file.read_bytes()
    place = content.rindex(where)
    file.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    with pytest.raises(FormatError, match=r"Line \d of .*wine-mlp.jsonl is damaged. Delete the line"):
        read_records(tmp_path)


# What older versions kept.


def test_the_committed_records_are_read_and_added_to_as_they_are(tmp_path) -> None:
    shutil.copytree(ROOT / "results", tmp_path / "results", ignore=shutil.ignore_patterns("models"))
    found = every(tmp_path / "results")
    assert len(found) == 13
    assert all(each.values for each in found)
    first = found[0]
    before = first.path.read_bytes()
    first.once(99, ("outcome", "new"), lambda: {"mean": 0.5})
    after = first.path.read_bytes()
    assert after.startswith(before)
    assert json.loads(after[len(before) :])["checksum"]
    assert Records.of(tmp_path / "results", first.setting).values == first.values


@pytest.mark.parametrize("kind", ["explainer", "audit"])
def test_what_an_older_version_kept_is_refused_by_one_line(kind, tmp_path) -> None:
    (tmp_path / "kept").mkdir()
    name = {"explainer": "index.json", "audit": "manifest.json"}[kind]
    older = {"format": 2, "version": "0.2.0"} if kind == "explainer" else {"format": 1, "k": 10}
    (tmp_path / "kept" / name).write_text(json.dumps(older))
    with pytest.raises(FormatError, match=r"format \d( of version 0\.2\.0)?; this .* reads") as told:
        KINDS[kind][1](tmp_path)
    assert "\n" not in str(told.value)


def test_the_command_line_begins_an_audit_of_an_older_format_anew() -> None:
    assert command.KEPT == ledger.FORMAT


def test_a_run_of_an_older_version_is_read(tmp_path) -> None:
    trained_run(tmp_path)
    expected, file = opened_run(tmp_path), tmp_path / "kept" / "run.json"
    content = json.loads(file.read_text())
    for name in ("checksum", "logits", "torch"):
        del content[name]
    file.write_text(json.dumps(content | {"format": 1}))
    assert opened_run(tmp_path) == expected


def test_weights_without_a_checksum_are_read(tmp_path) -> None:
    from safetensors.torch import save

    (tmp_path / "old").write_bytes(save(dict(MODEL.state_dict())))
    assert unsealed_tensors(tmp_path / "old", "").keys() == MODEL.state_dict().keys()


# A disk that is full.


@pytest.fixture(scope="module")
def filled(tmp_path_factory) -> tuple[Path, dict[str, list[str]]]:
    """What became of each, where no file may have more than 1,000 bytes."""
    folder = tmp_path_factory.mktemp("full")
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "promises" / "full.py"), str(folder)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=200,
        check=True,
    )
    return folder, {name: rest for name, *rest in map(json.loads, done.stdout.splitlines())}


@pytest.mark.parametrize("name", WRITERS)
def test_a_write_that_falls_short_is_taken_back(name, filled) -> None:
    folder, (kind, message) = filled[0] / name, filled[1][name]
    assert kind == ("OSError" if name == "file" else "StoreError")
    assert "File too large" in message
    assert sorted(path.name for path in folder.iterdir()) == ["file", *["log"] * (name == "log")]
    assert (folder / "file").read_bytes() == b"before"
    if name == "log":
        assert [len(each["text"]) for each in Log(folder / "log", "").read(dict)] == [300] * 2
        assert (folder / "log").read_bytes().endswith(b"}\n")


def test_a_line_that_a_kill_cut_short_is_not_continued_by_the_next(tmp_path) -> None:
    records = Log(tmp_path / "log", "")
    records.append({"a": 1})
    with records.path.open("ab") as file:
        file.write(b'{"a": 2, "che')
    records.append({"a": 3})
    assert list(records.read(dict)) == [{"a": 1}, {"a": 3}]


# A user's own files.


@pytest.mark.parametrize("name", ["notes.txt", "0999.safetensors", "plots/one.png", ".hidden"])
def test_a_users_file_in_a_saved_folder_stays(name, tmp_path) -> None:
    explainer(tmp_path)
    own = tmp_path / "kept" / name
    own.parent.mkdir(exist_ok=True)
    own.write_text("mine")
    explainer(tmp_path)
    assert own.read_text() == "mine"
    assert explained(tmp_path) == made("explainer")[1]


@pytest.mark.parametrize("name", ["report.html", "audit-0123abcd/notes.md"])
def test_a_users_file_in_a_run_stays_and_its_audits_go(name, tmp_path) -> None:
    trained_run(tmp_path)
    for each in (name, "audit-0123abcd/manifest.json"):
        path = tmp_path / "kept" / each
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    trained_run(tmp_path)
    assert (tmp_path / "kept" / name).read_text() == "mine"
    assert not (tmp_path / "kept" / "audit-0123abcd" / "manifest.json").exists()


def test_a_users_file_in_the_way_is_refused(tmp_path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "a").write_text("mine")

    def fill() -> None:
        with whole(tmp_path / "kept", lambda path: False) as fresh:
            (fresh / "a").write_text("ours")

    with pytest.raises(InputError, match="kept/a is in the way and not of our making"):
        fill()
    assert (tmp_path / "kept" / "a").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


# Leftovers.


@pytest.mark.parametrize("name", [f".kept.{DEAD}-0.new", f".kept.{DEAD}-3.old", ".kept.OWN-999999.new"])
def test_leftovers_of_killed_processes_are_swept(name, tmp_path) -> None:
    name = name.replace("OWN", str(os.getpid()))
    explainer(tmp_path)
    (tmp_path / name).mkdir()
    (tmp_path / name / "0000.safetensors").write_text("half")
    explainer(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


@pytest.mark.parametrize("name", [".kept.old", ".kept.2024", "kept.new", ".other.1-0.new", ".kept.1-0.new.txt"])
def test_nothing_else_is_swept(name, tmp_path) -> None:
    (tmp_path / name).write_text("mine")
    explainer(tmp_path)
    assert (tmp_path / name).read_text() == "mine"


def test_who_is_at_work_is_let_alone(tmp_path) -> None:
    with whole(tmp_path / "kept") as fresh:
        (fresh / "a").write_text("ours")
        sweep(tmp_path / "kept")
        with whole(tmp_path / "kept") as other:
            (other / "a").write_text("theirs")
        assert (fresh / "a").read_text() == "ours"
    assert (tmp_path / "kept" / "a").read_text() == "ours"


def test_a_folder_that_was_moved_out_of_the_way_is_found(tmp_path) -> None:
    explainer(tmp_path)
    (tmp_path / "kept").rename(tmp_path / f".kept.{DEAD}-0.old")
    assert explained(tmp_path) == made("explainer")[1]
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


@pytest.mark.parametrize("can", [True, False])
def test_folders_are_replaced_with_and_without_an_exchange(can, tmp_path, monkeypatch) -> None:
    if not can:
        monkeypatch.setattr(atomic, "exchanged", lambda one, other: False)
    explainer(tmp_path)
    (tmp_path / "kept" / "notes").write_text("mine")
    explainer(tmp_path)
    assert (tmp_path / "kept" / "notes").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_an_exchange_is_one_step(tmp_path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / name).write_text(name)
    if exchanged(tmp_path / "a", tmp_path / "b"):  # else this disk has none, and folders are moved in two steps
        assert (tmp_path / "a" / "b").exists()
        assert (tmp_path / "b" / "a").exists()
    assert not exchanged(tmp_path / "a", tmp_path / "nothing")


# Several at once.


def test_savers_and_loaders_at_once_all_succeed(tmp_path) -> None:
    explainer(tmp_path)
    expected, failures = explained(tmp_path), []

    def repeated(work: Callable[[Path], Any]) -> None:
        found = [told(work, tmp_path) for _ in range(6)]
        failures.extend(each for each in found if each not in (None, expected))

    threads = [Thread(target=repeated, args=(work,)) for work in (explainer, explainer, explained, explained)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert failures == []
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_what_was_loaded_answers_after_another_has_replaced_it(tmp_path) -> None:
    explainer(tmp_path)
    loaded = Explainer.load(tmp_path / "kept", MODEL, TRAIN)
    Explainer(MODEL, TRAIN, "cos_x").save(tmp_path / "kept")
    assert loaded.explain(TEST[0]).to_json() == made("explainer")[1]


def test_a_second_audit_in_the_same_folder_is_told(tmp_path) -> None:
    with Ledger(tmp_path, {}), pytest.raises(StoreError, match="Another audit is at work in"):
        Ledger(tmp_path, {})
    with Ledger(tmp_path, {}) as ledger:
        ledger.once(("a",), lambda: 1)


# Kills.


@pytest.mark.parametrize("seconds", [0.0, 0.02])
def test_pieces_are_recorded_in_an_order_that_no_clock_decides(seconds, tmp_path) -> None:
    def vectorise(x: Tensor) -> Tensor:
        time.sleep(seconds)
        return x.flatten(1)

    few = {"metrics": ["cos_grad", "cos_x"], "criteria": ["identical_class"], "vectorise": vectorise}
    audit(MODEL, TRAIN, TEST, keep=tmp_path / "kept", **few)
    lines = (tmp_path / "kept" / "records.jsonl").read_text().splitlines()
    order = [json.loads(line)["piece"][1] for line in lines if "outcome" in line]
    assert order == ["cos_x", "cos_grad"]


def test_two_random_kills_of_each_cost_no_byte() -> None:
    every = [what for what in WORKS if what != "index"]
    done = run_module("benchmarks.kills", "--count", "2", "--what", ",".join(every), most=300)
    assert done.returncode == 0, done
    said = [f"{what}: 2 kills at work, 2 with the same bytes afterwards" for what in every]
    assert done.stdout.splitlines() == said


def test_kills_of_two_processes_that_build_an_index_cost_no_byte() -> None:
    done = run_module("benchmarks.kills", "--count", "3", "--what", "index", most=300)
    assert done.returncode == 0, done
    same, _, lost = done.stdout.strip().partition("; at most ")
    assert same == "index: 3 kills at work, 3 with the same bytes afterwards"
    assert lost in ("0 shard of a process lost", "1 shard of a process lost")

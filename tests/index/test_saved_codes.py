"""Codes in a folder: about a kilobyte for each instance, the same answers, nothing stale or damaged."""

import json
from pathlib import Path

import pytest
import torch

from precedents import Explainer
from precedents.errors import FormatError, StaleError
from precedents.index.recall import Recall

from .worlds import MEMORY, Counting, asked_before


@pytest.fixture
def folder(world, tmp_path: Path) -> Path:
    """What a new explainer has saved."""
    model, train, _ = world
    Explainer(model, train, memory=MEMORY).save(tmp_path / "saved")
    return tmp_path / "saved"


def test_a_loaded_explainer_answers_from_codes(world, folder: Path) -> None:
    model, train, cases = world
    before = asked_before(model, train)
    loaded = Explainer.load(folder, model, train, memory=MEMORY)
    Counting.passed = 0
    for case in cases[:5]:
        found, expected = loaded.explain(case), before.explain(case)
        assert found.completeness == expected.completeness != ()
        assert found.top.indices.tolist() == expected.top.indices.tolist()
        assert torch.equal(found.top.scores, expected.top.scores)
    assert Recall(loaded.relevance).there
    torch.testing.assert_close(
        loaded.scores(cases[:2]), Explainer(model, train, index=False).scores(cases[:2]), rtol=1e-12, atol=1e-13
    )


def test_codes_are_saved_as_they_were_made_by_a_question(world, folder: Path, tmp_path: Path) -> None:
    model, train, _ = world
    asked_before(model, train).save(tmp_path / "asked")
    for one in sorted(folder.glob("shards/0*.safetensors")):
        assert one.read_bytes() == (tmp_path / "asked" / "shards" / one.name).read_bytes()


def test_the_disk_is_what_was_estimated_and_about_a_kilobyte_a_row(world, folder: Path) -> None:
    model, train, _ = world
    size = sum(file.stat().st_size for file in folder.rglob("*.safetensors"))
    estimated = Explainer(model, train, memory=MEMORY).estimate().disk
    assert estimated / 1.5 < size < 1.5 * estimated
    assert size < 1700 * len(train[0])  # with the basis, which does not grow


def test_where_whole_vectors_fit_they_are_saved(world, tmp_path: Path) -> None:
    model, train, cases = world
    Explainer(model, train, memory="2 GB").save(tmp_path / "whole")
    loaded = Explainer.load(tmp_path / "whole", model, train, memory="2 GB")
    assert loaded.explain(cases[0]).completeness == ()
    assert (
        "codes of the training set"
        not in json.loads((tmp_path / "whole" / "index.json").read_text())["holdings"]
    )


def test_without_an_index_a_loaded_explainer_makes_a_pass(world, folder: Path) -> None:
    model, train, cases = world
    loaded = Explainer.load(folder, model, train, memory=MEMORY, index=False)
    Counting.passed = 0
    assert loaded.explain(cases[0]).completeness == ()
    assert Counting.passed >= len(train[0])


def test_an_estimate_counts_what_will_be_computed(world) -> None:
    model, train, _ = world
    explainer = Explainer(model, train, memory=MEMORY)
    before = explainer.estimate().seconds
    explainer.explain(train[0][0])
    assert explainer.estimate().seconds < before / 2


def test_other_weights_and_other_rows_are_refused(world, folder: Path) -> None:
    model, (x, y), _ = world
    other = x.clone()
    other[7] += 1
    with pytest.raises(StaleError, match="rows of the training set"):
        Explainer.load(folder, model, (other, y), memory=MEMORY)
    with pytest.raises(StaleError, match="labels of the training set"):
        Explainer.load(folder, model, (x, (y + 1) % 4), memory=MEMORY)


def test_a_flipped_byte_is_refused(world, folder: Path) -> None:
    model, train, cases = world
    largest = max(folder.glob("shards/0*.safetensors"), key=lambda file: file.stat().st_size)
    content = bytearray(largest.read_bytes())
    content[len(content) // 2] ^= 1
    largest.write_bytes(content)
    with pytest.raises(FormatError, match="checksum"):
        Explainer.load(folder, model, train, memory=MEMORY).explain(cases[0])

"""Ids and classes stay what they are, however an index is made, changed and built again."""

from pathlib import Path

import pytest
import torch
from torch import nn

from precedents import Explainer, Index, InputError

from .worlds import Set

MEMORY = "100 MB"
IDS = [f"r{i}" for i in range(700)]
CLASSES = ["a", "b", "c"]


def rows(start: int, stop: int) -> Set:
    x = torch.randn(700, 6, generator=torch.Generator().manual_seed(0))
    return x[start:stop], torch.arange(start, stop) % 3


@pytest.fixture
def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 3))


@pytest.fixture
def index(model, tmp_path: Path) -> Index:
    return Index.build(model, rows(0, 600), tmp_path / "i", memory=MEMORY, ids=IDS[:600], classes=CLASSES)


def named(index: Index, model: nn.Module, train: Set, place: int) -> tuple[str, str]:
    """What the instance at a place is called, which is its own best precedent, and its class."""
    explainer = Explainer.load(index.folder, model, train, memory=MEMORY)
    found = explainer.explain(train[0][place], 1, labels=train[1][place]).precedents()[0]
    assert found.index == place
    return found.id, explainer.classes[found.label]


@pytest.mark.parametrize("told", [{"ids": IDS[:600], "classes": CLASSES}, {}])
def test_a_build_that_is_started_again_keeps_the_names_of_those_that_are_left(told, index, model) -> None:
    index.remove([0])
    Index.build(model, rows(0, 600), index.folder, memory=MEMORY, **told)
    assert named(index, model, rows(1, 600), 50) == ("r51", CLASSES[51 % 3])


def test_an_index_that_is_opened_without_names_keeps_them(index, model) -> None:
    Index.open(index.folder, model, rows(0, 600)).remove([3])
    x, y = rows(0, 600)
    kept = [i for i in range(600) if i != 3]
    assert named(index, model, (x[kept], y[kept]), 50) == ("r51", CLASSES[51 % 3])


def test_an_index_that_is_extended_is_told_the_new_ids_and_keeps_the_classes(index, model) -> None:
    with pytest.raises(InputError, match=r"have ids, and the new rows have none\. .* ids=\.\.\."):
        Index.extend(index.folder, model, rows(0, 700))
    with pytest.raises(InputError, match="have ids, and the new rows have none"):
        index.add(rows(600, 700))
    Index.extend(index.folder, model, rows(0, 700), ids=IDS)
    assert named(index, model, rows(0, 700), 650) == ("r650", CLASSES[650 % 3])

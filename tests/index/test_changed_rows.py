"""What an index is compared with stays when rows go and come."""

from copy import deepcopy
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from precedents import Explainer, Index, StaleError

from .test_stale import Scaled, Stopping
from .worlds import Set

MEMORY = "100 MB"


@pytest.fixture
def model() -> nn.Module:
    """With two hidden layers."""
    torch.manual_seed(0)
    layers = nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 12), nn.Tanh(), nn.Linear(12, 3)
    return nn.Sequential(*layers)


def rows(n: int) -> Set:
    return torch.randn(n, 6, generator=torch.Generator().manual_seed(0)), torch.arange(n) % 3


def at(train: Set, places: Tensor) -> Set:
    return train[0][places], train[1][places]


GONE = {
    "the first": [0],
    "the last": [599],
    "every second": list(range(0, 600, 2)),
    "all but 20": list(range(580)),
}


@pytest.mark.parametrize("gone", GONE)
def test_other_gradients_are_refused_whichever_rows_are_gone(gone, tmp_path: Path) -> None:
    model, train, kept = Stopping(), rows(600), torch.tensor([i for i in range(600) if i not in GONE[gone]])
    Index.build(model, train, tmp_path / "i", memory=MEMORY).remove(GONE[gone])
    Explainer.load(tmp_path / "i", model, at(train, kept), memory=MEMORY)
    model.stops = torch.tensor(1)
    with pytest.raises(StaleError, match="the gradients of the training set"):
        Explainer.load(tmp_path / "i", model, at(train, kept), memory=MEMORY)


@pytest.mark.parametrize("gone", [[], [0]])
def test_other_frozen_parameters_are_refused_by_name(gone, model, tmp_path: Path) -> None:
    train, kept = rows(600), torch.tensor([i for i in range(600) if i not in gone])
    model[0].requires_grad_(False)
    index = Index.build(model, train, tmp_path / "i", memory=MEMORY)
    if gone:
        index.remove(gone)
    other = deepcopy(model)
    other[2].bias.requires_grad_(False)
    with pytest.raises(StaleError, match=r"differ: which parameters are frozen \(2\.bias\)\. Build it again"):
        Explainer.load(tmp_path / "i", other, at(train, kept), memory=MEMORY)
    Explainer.load(tmp_path / "i", model, at(train, kept), memory=MEMORY)


def test_an_explainer_that_was_saved_is_not_loaded_with_other_frozen_parameters(model, tmp_path: Path) -> None:
    Explainer(model, rows(60)).save(tmp_path / "e")
    model[2].requires_grad_(False)
    with pytest.raises(StaleError, match=r"differ: which parameters are frozen \(2\.weight and 1 more\)\."):
        Explainer.load(tmp_path / "e", model, rows(60))


def test_what_is_frozen_is_of_no_account_where_no_gradient_is(model, tmp_path: Path) -> None:
    Index.build(model, rows(600), tmp_path / "i", "cos_last", memory=MEMORY)
    Explainer.load(tmp_path / "i", model.requires_grad_(False), rows(600), memory=MEMORY)


def test_another_forward_is_refused_where_all_rows_with_known_logits_are_gone(tmp_path: Path) -> None:
    model, train, kept = Scaled(), rows(2048), torch.arange(1, 2048, 2)
    model.slope = torch.tensor(1.0)  # no plain value, by which it would be known
    Index.build(model, train, tmp_path / "i", memory=MEMORY).remove(range(0, 2048, 2))
    case = train[0][0]
    found = Explainer.load(tmp_path / "i", model, at(train, kept), memory=MEMORY).explain(case)
    expected = Explainer(model, at(train, kept), index=False).explain(case)
    assert found.top.indices.tolist() == expected.top.indices.tolist()
    model.slope = torch.tensor(1.5)
    with pytest.raises(StaleError, match="the logits of the model"):
        Explainer.load(tmp_path / "i", model, at(train, kept), memory=MEMORY)


def test_what_was_told_when_rows_went_holds_when_others_come(tmp_path: Path) -> None:
    model, train = Stopping(), rows(700)
    index = Index.build(model, at(train, torch.arange(600)), tmp_path / "i", memory=MEMORY)
    index.remove([0])
    index.add(at(train, torch.arange(600, 700)))
    grown = at(train, torch.arange(1, 700))
    Explainer.load(tmp_path / "i", model, grown, memory=MEMORY)
    model.stops = torch.tensor(1)
    with pytest.raises(StaleError, match="the gradients of the training set"):
        Explainer.load(tmp_path / "i", model, grown, memory=MEMORY)

"""What codes say does not hang on what a process has set, what is free, and how many rows there are."""

from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

from precedents import BudgetError, Explainer, Index, NumericalError
from precedents.gradients.rows import Rows
from precedents.index.codes import Coder
from precedents.index.recall import Recall, coder_of, sampled

from .test_build import contents


@pytest.fixture
def double():
    """Float64 by default, as scientific code has it."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 20, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(20, 4),
    ).float()  # fmt: skip


def pictures(n: int) -> tuple[Tensor, Tensor]:
    x = torch.randn(n, 1, 8, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float32)
    return x, torch.arange(n) % 4


def test_the_default_type_changes_no_answer_and_no_byte(tmp_path: Path, double) -> None:
    model, train = network(), pictures(3000)
    cases = pictures(3002)[0][3000:]
    explainer = Explainer(model, train, memory="70 MB")
    explainer.explain(cases)
    assert Recall(explainer.relevance).there
    found = explainer.explain(cases)
    Index.build(model, train, tmp_path / "double", memory="100 MB")
    torch.set_default_dtype(torch.float32)
    Index.build(model, train, tmp_path / "single", memory="100 MB")
    assert contents(tmp_path / "double") == contents(tmp_path / "single")
    expected = Explainer(model, train, index=False).explain(cases)
    assert found.top.indices.tolist() == expected.top.indices.tolist()
    torch.set_default_dtype(torch.float64)
    loaded = Explainer.load(tmp_path / "single", model, train, memory="100 MB").explain(cases)
    assert loaded.top.indices.tolist() == expected.top.indices.tolist()


def test_the_largest_set_has_a_sample_of_its_own_places() -> None:
    n = 2**24 + 4
    places = sampled(SimpleNamespace(labels=torch.zeros(n, dtype=torch.int8)), n, 2048)  # type: ignore[arg-type]
    assert (int(places[0]), int(places[-1])) == (0, n - 1)


def test_a_basis_is_of_the_rows_that_came() -> None:
    rows = torch.randn(20, 30, generator=torch.Generator().manual_seed(0))
    sketch = Coder.sketch_of(30)
    found, expected = (coder_of(sketch, [Rows.of(rows)], count) for count in (24, 20))
    torch.testing.assert_close(found.basis, expected.basis)


class Changing(Recall):
    """There is room for another sample each time that it is asked for, as where memory comes and goes."""

    rooms: ClassVar[list[int]] = []

    @property
    def sample(self) -> int:
        return self.rooms.pop(0)


@pytest.mark.parametrize("rooms", [[40, 30, 20, 10], [10, 20, 30, 40]])
def test_a_basis_is_made_though_memory_comes_and_goes_meanwhile(rooms: list[int]) -> None:
    explainer = Explainer(network(), pictures(1000))
    Changing.rooms = list(rooms)
    found = Changing(explainer.relevance).coder()
    Changing.rooms = [max(16, rooms[0])] * 9
    expected = Changing(explainer.relevance).coder()
    torch.testing.assert_close(found.basis, expected.basis, rtol=0, atol=0)


class Photographs(Dataset):
    """Large, and read when they are needed."""

    def __len__(self) -> int:
        return 3000

    def __getitem__(self, i: int) -> tuple[Tensor, int]:
        return torch.randn(3, 80, 80, generator=torch.Generator().manual_seed(i)), i % 4


def test_a_further_question_is_refused_as_the_first_one_is() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=4), nn.ReLU(), nn.Conv2d(8, 8, 3, stride=4), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4),
    )  # fmt: skip
    explainer = Explainer(model, Photographs(), memory="60 MB")
    cases = torch.stack([Photographs()[i][0] for i in range(20)])
    said = r"What 30 precedents of 20 cases are needs .* but the budget is"
    with pytest.raises(BudgetError, match=said):
        explainer.explain(cases, 30)
    Recall(explainer.relevance)._made()
    explainer._recall = Recall(explainer.relevance)
    assert explainer._recall.there
    with pytest.raises(BudgetError, match=said):
        explainer.explain(cases, 30)


class Forgiving(nn.Module):
    """Whose hidden layer may be no number, and whose logits are."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = nn.Linear(6, 12), nn.Linear(12, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(torch.nan_to_num(self.first(x)))


def test_scores_that_are_no_numbers_are_no_precedents(tmp_path: Path) -> None:
    x = torch.rand(1200, 6, generator=torch.Generator().manual_seed(0))
    x[:1197] = torch.nan
    told = {"hidden": ["first"], "memory": "100 MB"}
    train = x, torch.arange(1200) % 3
    Index.build(Forgiving(), train, tmp_path / "i", "cos_last", **told)
    explainer = Explainer.load(tmp_path / "i", Forgiving(), train, **told)
    with pytest.raises(
        NumericalError, match="only 3 training instances have a relevance to case 0 that is a number"
    ):
        explainer.explain(torch.rand(6), 5)
    assert explainer.explain(torch.rand(6), 3).top.scores.isfinite().all()

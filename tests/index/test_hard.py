"""What is hard for codes: a model that has learned labels by heart, and training sets full of duplicates."""

import math

import pytest
import torch
from torch import Tensor, nn

from precedents import Explainer, Index
from precedents.index import search as search_module

from .worlds import Items, Set


class CountedItems(Items):
    """How many were read."""

    read = 0

    def __getitem__(self, i: int) -> tuple[Tensor, int]:
        type(self).read += 1
        return super().__getitem__(i)


def learned() -> tuple[nn.Module, Set, Tensor]:
    """Rows without structure that a random teacher has put into 50 classes, learned by heart."""
    x = torch.randn(5020, 64)
    teacher = nn.Sequential(nn.Linear(64, 96), nn.Tanh(), nn.Linear(96, 50))
    y = (4 * teacher(x)).softmax(dim=1).multinomial(1).flatten()
    model = nn.Sequential(nn.Linear(64, 192), nn.ReLU(), nn.Linear(192, 50))
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(180):
        few = torch.randint(5000, (500,))
        loss = nn.functional.cross_entropy(model(x[few]), y[few])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval(), (x[:5000], y[:5000]), x[5000:]


def guessing() -> tuple[nn.Module, Set, Tensor]:
    """Rows and labels that have nothing in common: nothing stands out, and nothing is a copy."""
    x, y = torch.randn(1540, 300), torch.randint(10, (1540,))
    return nn.Linear(300, 10).eval(), (x[:1500], y[:1500]), x[1500:1505]


def test_of_a_teacher_learned_by_heart_none_of_the_first_ten_is_missed(tmp_path) -> None:
    model, train, cases = learned()
    found = Index.build(model, train, tmp_path / "index", memory="200 MB").check(cases)
    best = Explainer(model, train, index=False).explain(cases, 1).top.scores
    assert 0.2 < best.median() < 0.4
    assert found.recall == 1.0
    assert found.error < 1e-5
    assert len(found.indexed) >= 18  # of 20; for others a pass is as cheap


@pytest.mark.parametrize("copies", [1, 10])
def test_duplicates_do_not_make_a_question_dearer(copies, world, tmp_path) -> None:
    model, (x, y), cases = world
    order = torch.arange(2500 // copies).repeat(copies)
    index = Index.build(model, (x[order], y[order]), tmp_path / "index", memory="100 MB")
    found = index.check(cases[:10])
    assert found.recall == 1.0
    assert 64 <= found.computed <= 300  # about as many with copies as without


def test_a_check_counts_what_a_pass_answers_apart(tmp_path) -> None:
    model, train, cases = guessing()
    found = Index.build(model, train, tmp_path / "index", memory="100 MB").check(cases)
    assert found.sure == {"pass": 5}
    assert (found.passes, found.indexed) == (1.0, [])
    assert math.isnan(found.recall)
    assert str(found).startswith("the index answers no case; 5 answered by a full pass")


def test_where_nothing_stands_out_a_question_reads_less_than_a_pass(monkeypatch, tmp_path) -> None:
    model, train, cases = guessing()
    Index.build(model, train, tmp_path / "index", memory="100 MB")
    monkeypatch.setattr(search_module, "SHORT", 0)
    monkeypatch.setattr(search_module, "CAP", 256)
    data = CountedItems(*train)
    loaded = Explainer.load(tmp_path / "index", model, data, memory="100 MB")
    CountedItems.read = 0
    assert "capped" in loaded.explain(cases[0]).completeness[0]
    assert 256 < CountedItems.read < 500


def test_distances_of_copies_are_compared_by_what_they_are_made_of(world, tmp_path) -> None:
    model, (x, y), _ = world
    order = torch.arange(1200) % 100  # a case has twelve copies, at no distance but for rounding
    found = Index.build(model, (x[order], y[order]), tmp_path / "index", "l2_grad", memory="100 MB").check(10)
    assert (found.passes, found.recall) == (0.0, 1.0)
    assert found.error < 1e-12

"""What is hard for codes: a model that has learned labels by heart, and training sets full of duplicates."""

import pytest
import torch
from torch import Tensor, nn

from precedents import Explainer, Index

from .worlds import Set


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


def test_of_a_teacher_learned_by_heart_none_of_the_first_ten_is_missed(tmp_path) -> None:
    model, train, cases = learned()
    found = Index.build(model, train, tmp_path / "index", memory="200 MB").check(cases)
    best = Explainer(model, train, index=False).explain(cases, 1).top.scores
    assert 0.2 < best.median() < 0.4
    assert found.recall == 1.0
    assert found.error < 1e-5
    assert found.sure["likely"] >= 10  # of 20; for others a pass is as cheap


@pytest.mark.parametrize("copies", [1, 10])
def test_duplicates_do_not_make_a_question_dearer(copies, world, tmp_path) -> None:
    model, (x, y), cases = world
    order = torch.arange(2500 // copies).repeat(copies)
    index = Index.build(model, (x[order], y[order]), tmp_path / "index", memory="100 MB")
    found = index.check(cases[:10])
    assert found.recall == 1.0
    assert 64 <= found.computed <= 300  # about as many with copies as without

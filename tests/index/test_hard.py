"""What is hard for codes: a model that has learned labels by heart, and training sets full of duplicates."""

import pytest
import torch
from torch import Tensor, nn

from precedents import Explainer, Index

from .worlds import Set

MEMORY = "200 MB"


@pytest.fixture(scope="module")
def learned() -> tuple[nn.Module, Set, Tensor]:
    """Rows without structure that a random teacher has put into 50 classes, learned by heart."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        x = torch.randn(5030, 48)
        teacher = nn.Sequential(nn.Linear(48, 96), nn.Tanh(), nn.Linear(96, 50))
        y = (4 * teacher(x)).softmax(dim=1).multinomial(1).flatten()
        model = nn.Sequential(nn.Linear(48, 256), nn.ReLU(), nn.Linear(256, 50))
        optimizer = torch.optim.Adam(model.parameters(), 5e-3)
        for _ in range(400):
            few = torch.randint(5000, (500,))
            loss = nn.functional.cross_entropy(model(x[few]), y[few])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model.eval(), (x[:5000], y[:5000]), x[5000:]


def test_of_a_teacher_learned_by_heart_none_of_the_first_ten_is_missed(learned, tmp_path) -> None:
    model, train, cases = learned
    found = Index.build(model, train, tmp_path / "index", memory=MEMORY).check(cases)
    best = Explainer(model, train, index=False).explain(cases, 1).top.scores
    assert 0.2 < best.median() < 0.5
    assert found.recall == 1.0
    assert found.error < 1e-5
    assert found.sure["likely"] >= 20

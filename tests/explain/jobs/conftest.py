"""Digits with some wrong labels, and a network that was fitted to them; made once."""

from dataclasses import dataclass

import pytest
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import precedents as pr


@dataclass(frozen=True)
class Digits:
    """A network, its training set, the places of wrong labels, and a test set."""

    model: nn.Module
    train: tuple[Tensor, Tensor]
    flipped: Tensor
    test: tuple[Tensor, Tensor]

    def explainer(self, metric: str = "cos_grad", **told) -> pr.Explainer:
        return pr.Explainer(self.model, self.train, metric, **told)


def fitted(x: Tensor, y: Tensor, steps: int, width: int = 24) -> nn.Module:
    """A perceptron after some steps of Adam."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Flatten(), nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        cross_entropy(model(x), y).backward()
        optimizer.step()
    return model.eval()


def flipped(labels: Tensor, every: int = 20) -> tuple[Tensor, Tensor]:
    """The labels with each so manieth wrong, and the places of the wrong ones."""
    places = torch.arange(0, len(labels), every)
    noisy = labels.clone()
    noisy[places] = (noisy[places] + 1) % 10
    return noisy, places


@pytest.fixture(scope="session")
def digits() -> Digits:
    images, labels = load_digits(return_X_y=True)
    x, y = torch.tensor(images / 16).float().reshape(-1, 1, 8, 8), torch.tensor(labels)
    noisy, places = flipped(y[:600])
    return Digits(fitted(x[:600], noisy, 150), (x[:600], noisy), places, (x[1000:1150], y[1000:1150]))

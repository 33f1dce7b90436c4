"""A small classifier whose training set is too large for its memory budget, so that codes are made of it."""

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

from precedents import Explainer
from precedents.index.recall import Recall

N = 3000
MEMORY = "70 MB"  # which has room for codes, and none for whole vectors

Set = tuple[Tensor, Tensor]


class Counting(nn.Sequential):
    """How many instances have passed."""

    passed = 0

    def forward(self, x: Tensor) -> Tensor:
        type(self).passed += len(x)
        return super().forward(x)


def network() -> nn.Module:
    """Small, and its gradients are formed."""
    torch.manual_seed(0)
    return Counting(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 20, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(20, 4),
    ).double()  # fmt: skip


def asked_before(*args, **options) -> Explainer:
    """An explainer that has made its codes."""
    explainer = Explainer(*args, **{"memory": MEMORY} | options)
    train = args[1]
    explainer.explain(train.x[0] if isinstance(train, Items) else train[0][0])
    assert Recall(explainer.relevance).there
    return explainer


class Items(Dataset):
    """A set that is read anew each time."""

    def __init__(self, x: Tensor, y: Tensor) -> None:
        self.x, self.y = x, y

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, i: int) -> tuple[Tensor, int]:
        return self.x[i], int(self.y[i])

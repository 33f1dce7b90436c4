"""Digits (UCI, with scikit-learn): 1,797 handwritten digits of 8 x 8 pixels; needs no download."""

import torch

from precedents.data import Examples
from precedents.errors import MissingExtraError

CLASSES = tuple("0123456789")


def digits(train: int = 600, seed: int = 0) -> tuple[Examples, Examples]:
    """A random training set of the given size and the rest as test set; pixels within 0..1, [n, 1, 8, 8]."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise MissingExtraError("scikit-learn", "sklearn") from None
    images, labels = load_digits(return_X_y=True)
    inputs = torch.as_tensor(images, dtype=torch.float32).reshape(-1, 1, 8, 8) / 16
    order = torch.randperm(len(inputs), generator=torch.Generator().manual_seed(seed))
    every = Examples.of((inputs, torch.as_tensor(labels)))
    return every.selected(order[:train].tolist()), every.selected(order[train:].tolist())

"""Whether scores are right: against plain autograd, one example at a time, in float64.

In float32 two right methods need not agree to all digits: where the input of a ReLU is zero up to rounding,
the batch size decides on which side it falls, and the gradient jumps. In a random MobileNetV2 one such unit
moves a score by a percent. So a method is judged by its float64 scores of a few instances; how far the float32
matrices of the whole work lie apart is reported beside it.
"""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from benchmarks.models import Work

TRAIN, CASES = 20, 5  # the instances that are checked
RIGHT = 1e-4  # relative to the largest score; some peers sum up in float32


def difference(expected: np.ndarray, found: np.ndarray) -> float:
    """The largest deviation of `found`, relative to the largest absolute entry of what is expected."""
    if expected.shape != found.shape:
        raise ValueError(f"The scores have the shape {found.shape}, not {expected.shape}.")
    largest = np.abs(found.astype(float) - expected).max() / np.abs(expected).max()
    return float(largest) if np.isfinite(largest) else float("inf")


def verdict(deviation: float) -> str:
    """`right`, or how wrong."""
    return "right" if deviation <= RIGHT else f"wrong: {deviation:{'.0%' if deviation >= 0.01 else '.2%'}} off"


def expected_scores(work: Work, cosine: bool) -> np.ndarray:
    """Grad-Dot or Grad-Cos [m, n] as its formula says."""
    cases, train = (
        torch.stack([gradient(work.model, *instance) for instance in zip(x, y, strict=True)])
        for x, y in ((work.x_cases, work.y_cases), (work.x_train, work.y_train))
    )
    if cosine:
        cases, train = (rows / rows.norm(dim=1, keepdim=True) for rows in (cases, train))
    return (cases @ train.T).numpy()


def gradient(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """The gradient of one instance's loss [p]."""
    loss = cross_entropy(model(x[None]), y[None])
    parts = torch.autograd.grad(loss, list(model.parameters()))
    return torch.cat([part.flatten() for part in parts])

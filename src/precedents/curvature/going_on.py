"""The steps of a sum over the training set: with their progress, and those alone that a kill has left to do."""

from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from typing import TypeVar

import torch
from torch import Tensor

from precedents.classifier.classifier import Classifier
from precedents.data.examples import Batch, Examples
from precedents.runtime.checkpoint import Resumed, Sums
from precedents.runtime.progress import tracked

T = TypeVar("T")


def going_on(
    steps: Sequence[T],
    title: str,
    of: tuple[Classifier, Examples],
    sums: Sums,
    basis: Callable[[], Sequence[Tensor]] = lambda: (),
) -> Iterator[T]:
    """The steps by which `sums` of a model and its training set are made, from where they were killed.

    `basis` gives tensors that the sums depend on besides.
    """

    def mark() -> str:
        model, train = of
        digest = blake2b(train.labels.numpy().tobytes(), digest_size=16)
        for tensor in basis():
            digest.update(tensor.contiguous().numpy().tobytes())
        return f"{title} {model.fingerprint()} {digest.hexdigest()} {steps} torch {torch.__version__}"

    return tracked(Resumed(steps, mark, sums), title)


def batches_left(
    title: str,
    of: tuple[Classifier, Examples],
    size: int,
    sums: Sums,
    basis: Callable[[], Sequence[Tensor]] = lambda: (),
) -> Iterator[Batch]:
    """The same with a batch of `size` training instances as a step."""
    n, train = len(of[1]), of[1]
    for start in going_on(range(0, n, size), title, of, sums, basis):
        yield train.take(range(start, min(start + size, n)))

"""Alternatives: the same repeat with one choice made otherwise, which may be why a number differs."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import torch
from torch import nn

from precedents.classifier.classifier import Vectorise
from precedents.zoo.dataset import Dataset
from precedents.zoo.text import counted

FACTORS = (4, 16)
LAYERS = ("last", "all", "grad")  # metrics on what a network computes
SIMILARITIES = ("l2", "cos", "dot")
DRAWN = (nn.Linear, nn.Conv2d, nn.LSTM)  # layers whose initial weights are drawn otherwise


@dataclass(frozen=True, eq=False)
class Alternative:
    """A choice, written as a setting of a criterion, and the metrics that it is of interest for."""

    choice: str
    metrics: tuple[str, ...]
    change: Callable[[nn.Module], nn.Module] = lambda model: model
    vectorise: Vectorise | None = None  # how metrics on inputs see an instance, where that is the choice
    start: Callable[[nn.Module], nn.Module] | None = None  # the initial weights of a model that is trained anew


def alternatives(dataset: Dataset, model: nn.Module, first: bool, early: bool) -> Iterator[Alternative]:
    """Those of a data set and an architecture; what is dear in the first repeat, or in early ones, alone."""
    if dataset.kind == "text":
        every = partial(counted, words=len(dataset.words), unknown=True)
        yield Alternative("words=all", ("l2_x", "cos_x", "dot_x"), vectorise=every)
    if first and any(normalized(model)):
        for factor in FACTORS:
            change = partial(rescaled, factor=factor)
            yield Alternative(f"rescaled={factor}", ("l2_grad", "cos_grad", "dot_grad"), change)
    if early and sum(isinstance(layer, DRAWN) for layer in model.modules()) > 1 and not any(normalized(model)):
        metrics = tuple(f"{similarity}_{layer}" for layer in LAYERS for similarity in SIMILARITIES)
        yield Alternative("start=lecun", metrics, start=lecun)


def lecun(model: nn.Module) -> nn.Module:
    """Its weights drawn as the published code's library does, and so again whenever they are drawn anew.

    They are normal with a variance of one by the number of inputs (LeCun et al., 1998), about 1.7 times as
    large as PyTorch draws them; biases are zero.
    """
    for layer in model.modules():
        if isinstance(layer, DRAWN):
            layer.reset_parameters = partial(_drawn, layer)  # type: ignore[method-assign]
            layer.reset_parameters()
    return model


@torch.no_grad()
def _drawn(layer: nn.Module) -> None:
    for values in layer.parameters():
        if values.ndim > 1:
            values.normal_(std=values[0].numel() ** -0.5)
        else:
            values.zero_()


def rescaled(model: nn.Module, factor: float) -> nn.Module:
    """A copy whose convolutions before a normalization have weights that are so many times as large.

    What the normalization divides by grows with them: no output changes, and their gradients are divided by
    the factor.
    """
    copy = deepcopy(model)
    with torch.no_grad():
        for conv, norm in normalized(copy):
            for values in (conv.weight, conv.bias, norm.running_mean):
                if values is not None:
                    values *= factor
            assert norm.running_var is not None
            norm.running_var *= factor**2
            norm.eps *= factor**2
    return copy


def normalized(model: nn.Module) -> Iterator[tuple[nn.Conv2d, nn.BatchNorm2d]]:
    """Convolutions with the normalization that follows them in a sequence."""
    for sequence in model.modules():
        if isinstance(sequence, nn.Sequential):
            for first, second in pairwise(sequence):
                if isinstance(first, nn.Conv2d) and isinstance(second, nn.BatchNorm2d):
                    yield first, second

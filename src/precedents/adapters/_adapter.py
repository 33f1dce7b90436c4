"""Reading: how a user's model, its data and its cases are understood, whatever kind of classifier it is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from precedents.classifier.classifier import Vectorise
from precedents.data.examples import Examples, Originals, as_batch
from precedents.data.inputs import Inputs, mapped


def one_or_several(x: Any, train: Examples) -> tuple[Inputs, bool]:
    """Inputs [m, ...] of cases shaped like the training instances; and whether it was one case."""
    return as_batch(x, mapped(lambda leaf: leaf[0], train.take([0]).inputs))


@dataclass(frozen=True, eq=False)
class Reading:
    """A user's model as a module over tensors, and how its owner's data become such tensors."""

    module: nn.Module  # returns logits [b, classes]
    examples: Callable[[Any, str], Examples] = Examples.of  # a set of the user's, what it is called in errors
    cases: Callable[[Any, Examples], tuple[Inputs, bool]] = one_or_several  # with the training set
    originals: Callable[[Any, Examples], Originals] | None = None  # the same cases as their owner has them
    numbered: Callable[[Any], Any] | None = None  # class numbers of the user's own labels
    classes: Sequence[str] | None = None  # their names, if the model knows them
    name: str | None = None  # what the model is called, if not by its type
    hidden: Sequence[str] | None = None  # the modules whose outputs are the hidden layers; found out without it
    render: Callable[[Any], Any] | None = None  # what a person sees of an instance (its original, if kept)
    vectorise: Vectorise | None = None  # how metrics on inputs see an instance

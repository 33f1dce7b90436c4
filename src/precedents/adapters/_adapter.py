"""Adapter: what a user brings, as a module over tensors. This file says what an adapter must give.

Required are `accepts` and a constructor that sets `module`. All else has a default that suits a torch module
whose training set is a dataset of pairs (x, y).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from torch import Tensor, nn

from precedents.adapters._columns import Columns
from precedents.classifier.classifier import Vectorise
from precedents.classifier.outputs import Place
from precedents.data.examples import Examples, Originals, as_batch
from precedents.data.frames import ColumnNames, refuse_another_order
from precedents.data.ids import Id, ids_among, index_ids
from precedents.data.inputs import Inputs, count, joined
from precedents.errors import InputError, UnknownNameError

TRAINING = "training set"  # what it is called in errors


class Adapter(ABC):
    """A user's model read as a module that returns logits, and how its owner's data become tensors."""

    before: ClassVar[
        Sequence[str]
    ] = ()  # the adapters, by name, that are asked only if this one does not accept

    reads: ClassVar[Sequence[str]] = ()  # of `text`, `image`, `labels` and `ids`, those that may name columns

    module: nn.Module  # returns logits [b, classes]
    name: str | None = None  # what the model is called, if not by its type
    classes: Sequence[str] | None = None  # the names of its classes, if the model knows them
    labels: Sequence[Any] | None = None  # what its owner calls them in labels, if not 0, 1, ...
    hidden: Sequence[str] | None = None  # modules whose outputs are the hidden layers; found out without it
    vectorise: Vectorise | None = None  # how metrics on inputs see an instance; flattened without it
    render: Callable[[Any], Any] | None = (
        None  # what a person sees of an instance; decided by its shape without it
    )
    train: Any = None  # the training set, if the model brings it with it,
    test: Any = None  # a test set,
    loss: Any = None  # and what it was trained with; cross entropy without it
    output: Place | None = None  # where the logits are in what the module returns, if that is known
    made_by: str | None = (
        None  # what makes its inputs of its owner's data, as "the tokenizer", if anything does
    )
    where: Columns = Columns()  # what the user said of columns

    @classmethod
    @abstractmethod
    def accepts(cls, model: Any) -> bool:
        """Whether a model is of this kind."""

    @abstractmethod
    def __init__(self, model: Any) -> None:
        """Reads a model that is accepted; one that cannot be explained is refused with the reason."""

    named_classes: Any = None  # what the user called them, in their order
    named_columns: ColumnNames = None  # those of the training set, if it is of a frame

    def told(self, columns: Columns, classes: Any) -> None:
        """What the user says of the data besides: the names of columns, and of the classes in their order."""
        for name in columns.said:
            if name not in self.reads:
                raise InputError(
                    f"{name}= says which column of a data set has it, but "
                    f"{self.name or type(self.module).__name__} reads no columns by name. Leave it out, and "
                    "pass the training set as the model takes it."
                )
        self.where, self.named_classes = columns, classes

    def examples(self, data: Any, what: str) -> Examples:
        """A training or test set from `data` of the user's; `what` it is called in errors."""
        column = self.where.ids if isinstance(self.where.ids, str) else None
        made = Examples.of(data, what, labels=self.where.labels, ids=column, classes=self.named_classes)
        if what == TRAINING:
            self.named_columns = made.columns
        else:
            refuse_another_order(made.columns, self.named_columns, what)
        return made

    def joined(self, batches: Sequence[Inputs]) -> Inputs:
        """The `batches` of instances as one; where they differ in length, filled up to the longest."""
        return joined(batches)

    def cases(self, x: Any, train: Examples) -> tuple[Inputs, bool]:
        """Inputs [m, ...] of one case or several, `x`, shaped like those of `train`; and whether it was one."""
        return as_batch(x, train.first, train.columns)

    def originals(self, x: Any, train: Examples) -> Originals | None:  # noqa: ARG002
        """The cases `x` as their owner has them, if that is not what the module is fed; `train` has its own."""
        return None

    def ids(self, x: Any, train: Examples) -> Sequence[Id] | None:  # noqa: ARG002
        """What the cases `x` are called beside those of `train`, where they are of a frame: by its index."""
        row = getattr(x, "ndim", 2) == 1 and hasattr(x, "name")
        return ids_among([x.name], unique=False) if row else index_ids(x, unique=False)

    def unknown(self, x: Any, train: Examples, inputs: Inputs) -> Sequence[str]:  # noqa: ARG002
        """For each case what the model does not know of it, as "any word of it"; empty where it knows it.

        `x` are the cases as they were given, `inputs` as the module is fed them, `train` is what it has seen.
        Here: texts of padding alone.
        """
        layers = (each for each in self.module.modules() if isinstance(each, (nn.Embedding, nn.EmbeddingBag)))
        padding = getattr(next(layers, None), "padding_idx", None)
        if padding is None or not isinstance(inputs, Tensor) or inputs.is_floating_point():
            return [""] * (len(inputs) if isinstance(inputs, Tensor) else count(inputs))
        empty = (inputs == padding).flatten(1).all(dim=1).tolist()
        return ["any token of it but padding" if each else "" for each in empty]

    def unnamed(self, label: str, names: Sequence[str] | None) -> Any:
        """What a `label` means that is a name and none of the classes' own `names`; here nothing."""
        if names is not None:
            raise UnknownNameError("class", label, names)
        raise InputError(
            f"The labels of the cases are no numbers, as {label!r}, and the classes have no names here. Pass "
            "class numbers 0, 1, ..., classes - 1, or the names in their order to the explainer: classes=[...]."
        )

    def numbered(self, labels: Any) -> Any:
        """Class numbers of the user's own labels."""
        return labels

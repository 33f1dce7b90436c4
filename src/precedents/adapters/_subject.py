"""Subject: the classifier, the training set, the names of the classes and how an instance is shown; made once.

`Explainer` and `audit` make one of what the user passes, and everything below them takes it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set, Sized
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from precedents.adapters._adapter import Adapter
from precedents.adapters._collated import ItemView, collation_of
from precedents.adapters._columns import Columns
from precedents.adapters._find import adapter_of
from precedents.classifier.classifier import Classifier
from precedents.classifier.construction import Told, refuse_keywords
from precedents.classifier.refusals import refuse_padding
from precedents.data.examples import Examples, InMemory, Originals, checked_labels, checked_range
from precedents.data.ids import Id
from precedents.data.inputs import Collated, Inputs, count, leaves, mapped
from precedents.errors import InputError, UnknownNameError
from precedents.runtime.sparse import SparseRows
from precedents.runtime.wording import a_type, none_there
from precedents.seen import clipped

if TYPE_CHECKING:
    from typing_extensions import Unpack


NOT_BROUGHT = "only a Trainer brings one along, or a module of Lightning that was trained or has loaders"


@dataclass(frozen=True, eq=False)
class Subject:
    """What is explained and judged. Make one with `Subject.of`."""

    classifier: Classifier
    train: Examples
    adapter: Adapter
    classes: Sequence[str] | None = None  # their names
    render: Callable[[Any], Any] | None = None  # what a person sees of an instance

    @classmethod
    def of(
        cls,
        model: Any,
        train: Any = None,
        *,
        classes: Sequence[str] | None = None,
        render: Callable[[Any], Any] | None = None,
        columns: Columns | None = None,
        **told: "Unpack[Told]",
    ) -> "Subject":
        """From a `model` that an adapter accepts and `train`; `told` is as for `Classifier.of`.

        What is not said (hidden layers, vectors, `classes`, `columns`, how to `render`), the adapter says.
        """
        given = {name: value for name, value in told.items() if value is not None}
        adapter = adapter_of(model)
        if columns is not None or classes is not None:
            adapter.told(columns or Columns(), classes)
        data = brought(adapter, "training set", "train") if train is None else train
        if adapter.test is None and hasattr(data, "train_dataloader"):
            adapter.test = data  # of which the test set may be asked for
        train = adapter.examples(data, "training set")
        if columns is not None:
            train = columns.named(train)
        if not Told.__optional_keys__ >= told.keys():
            refuse_keywords("Subject.of", told, sorted(Told.__optional_keys__))
        if render is not None and not callable(render):
            raise InputError(f"render is {a_type(render)}. Pass a function of an instance, as pr.images().")
        if not isinstance(model, Classifier):
            known = {"hidden": adapter.hidden, "vectorise": adapter.vectorise, "output": adapter.output}
            if "loss" not in given:
                known["loss"] = adapter.loss
            model = Classifier.of(adapter.module, train, **{**known, **given})  # type: ignore[arg-type]
        elif given:
            raise _too_late(given)
        names = _checked_names(adapter.classes if classes is None else classes, model, train.classes)
        shown = render or adapter.render
        if isinstance(model.sample, Collated):
            shown = ItemView(shown)
        return cls(model, train, adapter, names, shown)

    @property
    def name(self) -> str:
        """What the model is called."""
        return self.adapter.name or type(self.classifier.module).__name__

    def test(self, data: Any) -> Examples:
        """The test set that `data` are, or the model brings; without a collate_fn it has that of training."""
        data = brought(self.adapter, "test set", "test") if data is None else data
        collation = collation_of(self.train)
        loads = isinstance(data, (Examples, DataLoader)) or hasattr(data, "train_dataloader")
        if collation is not None and not loads:
            place = collation.form.label
            data = Examples.of(data, "test set", labels=place, collate_fn=collation.function)
        test = self.adapter.examples(data, "test set")
        checked_range(test.labels, self.classifier.classes, "test set")
        return test

    def cases(self, x: Any, labels: Any = None) -> Examples:
        """One case or a batch, with the model's own predictions as labels unless `labels` says otherwise.

        `x` may be a DataLoader or Examples, as some of a test set: these are what the model is fed already.
        """
        if _is_nothing(x):
            raise InputError(f"{none_there('cases')} Pass at least one.")
        inputs, originals, ids = self._asked(x)
        if not isinstance(x, Examples) and not isinstance(inputs, Collated):  # which its owner may change
            inputs = inputs.clone() if type(inputs) is Tensor else mapped(Tensor.clone, inputs)
        if isinstance(inputs, Collated) and not self.classifier.ragged:  # padding was not tried before
            refuse_padding(self.classifier, inputs)
        unlabelled = Examples(
            InMemory(inputs, self.train.source.ragged),
            torch.zeros(count(inputs), dtype=torch.long),
            originals,
            ids=ids,
        )
        if labels is None:
            return self.predicted(unlabelled)
        if not all(map(_finite, leaves(inputs))):
            self.predicted(unlabelled)  # names the cases whose loss is no number
        return unlabelled.relabelled(self.numbers_of(labels, len(unlabelled)))

    def numbers_of(self, labels: Any, m: int) -> Tensor:
        """Class numbers [m] of the labels of m cases, which may be names; what is no class is refused."""
        found = checked_labels(self._numbered(labels, m), m, "cases")
        checked_range(found, self.classifier.classes, "cases")
        return found

    def class_of(self, label: Any) -> int:
        """The number of the class that a `label` names or is the number of; what is no class is refused.

        Where labels are numbers of the user's own, these are meant.
        """
        label, names = label.item() if hasattr(label, "item") else label, self.classes
        own, count = self.adapter.labels or (), self.classifier.classes
        try:
            return int(self.numbers_of([label], 1)[0])
        except InputError as error:
            numbered = isinstance(label, int) and not isinstance(label, bool) and 0 <= label < count
            if numbered and own and all(isinstance(each, str) for each in own):
                return int(label)
            if names is not None and str(label) in names:
                raise  # the name of several classes
            if names is not None:
                raise UnknownNameError("class", str(label), names) from error
        raise InputError(
            f"There is no class {clipped(repr(label))}. Pass a number from 0 to {count - 1}, or name "
            "the classes to the explainer: classes=[...]."
        )

    def _asked(self, x: Any) -> tuple[Inputs, Originals | None, Sequence[Id] | None]:
        """The inputs of cases, the cases as their owner has them, and what they are called."""
        called = None
        if isinstance(x, DataLoader):
            x = self.test(x)
        if isinstance(x, Examples):
            inputs, called = x.take(range(len(x))).inputs, x.ids
            if x.originals is not None:  # what they were made into needs no reading again
                return inputs, x.originals, called
            x = inputs
        inputs, originals = self.adapter.cases(x, self.train)[0], self.adapter.originals(x, self.train)
        if called is None and (originals is not None or hasattr(x, "iloc")):
            called = self.adapter.ids(x, self.train)
        return inputs, originals, called

    def _numbered(self, labels: Any, m: int) -> Any:
        """Class numbers of the labels of m cases, which may be names; one case may have its label alone."""
        if _is_one(labels):
            if m > 1:
                raise InputError(
                    f"labels is {labels!r}, one label, but there are {m} cases. Pass a list with one for each."
                )
            labels = [labels.item() if hasattr(labels, "item") else labels]
        values = _listed(labels)
        if any(isinstance(each, str) for each in values):
            labels = [self._own(each) for each in values]
        return self.adapter.numbered(labels)

    def _own(self, label: Any) -> Any:
        """What the model's owner calls the class of this name; all but names of classes as it is."""
        own, names = self.adapter.labels, self.classes
        if not isinstance(label, str) or (own is not None and label in own):
            return label
        if names is None or label not in names:
            return self.adapter.unnamed(label, names)
        if names.count(label) > 1:
            raise InputError(f"{label!r} is the name of several classes. Pass the class number.")
        place = names.index(label)
        return place if own is None else own[place]

    def predicted(self, cases: Examples) -> Examples:
        """The cases with the model's predictions as their labels."""
        return replace(cases, labels=self.classifier.predicted(cases, "case"))

    def before(self, classifier: Classifier, train: Examples | None = None) -> "Subject":
        """The subject with another `classifier`, and with another training set `train` if that is given."""
        return replace(self, classifier=classifier, train=self.train if train is None else train)


def _too_late(given: Iterable[str]) -> InputError:
    """The error for what is said beside a Classifier."""
    return InputError(
        f"The model is a Classifier, which was made already, so that {' and '.join(given)} would do "
        f"nothing. Say it there: Classifier.of(module, train, {', '.join(f'{n}=...' for n in given)})."
    )


def _is_nothing(x: Any) -> bool:
    """Whether it holds no case; a text without letters is one."""
    if isinstance(x, Tensor):
        return x.ndim > 0 and x.size(0) == 0
    shape = getattr(x, "shape", None)
    if isinstance(shape, tuple):  # also of sparse rows, which have no length
        return len(shape) > 0 and shape[0] == 0
    return isinstance(x, Sized) and not isinstance(x, (str, bytes, Mapping)) and len(x) == 0


def _is_one(labels: Any) -> bool:
    """Whether it is a label by itself: a number, a name, or what holds just one number."""
    return isinstance(labels, str) or getattr(labels, "ndim", 1) == 0 or not isinstance(labels, Iterable)


def _listed(labels: Any) -> list[Any]:
    """What may be names, one by one: of a list or a column all, of a tensor and of tables nothing."""
    column = len(getattr(labels, "shape", ())) == 1 and not isinstance(labels, Tensor)
    return list(labels) if column or isinstance(labels, (list, tuple)) else []


def _finite(leaf: Tensor) -> bool:
    """Whether all numbers are; those of sparse rows were looked at when they were made."""
    return isinstance(leaf, SparseRows) or bool(leaf.isfinite().all())


def brought(adapter: Adapter, what: str, argument: str) -> Any:
    """The training or test set that a model brings with it; that there is none is an error."""
    found = getattr(adapter, argument)
    if found is None:
        trainer = getattr(adapter, "brought", None) is not None
        own = {"train": "train_dataset", "test": "eval_dataset"}[argument]
        reason = f"the Trainer has no {own}" if trainer else NOT_BROUGHT
        raise InputError(f"There is no {what}, and {reason}. Pass it: {argument}=...")
    if argument == "test" and isinstance(found, Mapping) and getattr(adapter, "brought", None) is not None:
        raise InputError(
            f"The Trainer has several test sets: {', '.join(map(str, found))}. Pass one of them: "
            f"test=trainer.eval_dataset[{next(iter(found), None)!r}]."
        )
    return found


def _checked_names(classes: Any, model: Classifier, known: Sequence[str] | None) -> list[str] | None:
    """The names of the classes as texts, from whatever holds one for each output of the model.

    Nothing said, they are those that are `known` of the training set, if there are as many.
    """
    if classes is None:
        return None if known is None or len(known) != model.classes else list(known)
    if isinstance(classes, (bytes, Set)) or not isinstance(classes, Iterable):
        raise InputError(
            f"classes is {a_type(classes)}. Pass the names of the {model.classes} classes in their order: a "
            "list, an array, an index, or a mapping from class numbers."
        )
    if isinstance(classes, Mapping):
        if set(classes) != set(range(model.classes)):
            raise InputError(f"classes is a mapping. Its keys must be 0 to {model.classes - 1}.")
        classes = [classes[i] for i in range(model.classes)]
    names = [str(name) for name in classes]
    if len(names) != model.classes:
        raise InputError(f"There are {len(names)} class names, but the model has {model.classes} outputs.")
    return names

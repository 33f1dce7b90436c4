"""Items: how what a dataset gives, one instance or a batch, is made of inputs and labels."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from precedents.data.inputs import Inputs, leaves, plain_array, tensors, unusable
from precedents.errors import InputError, UnknownNameError
from precedents.runtime.wording import a_type
from precedents.seen import clipped

KEYS = ("label", "labels", "target", "targets", "y")  # what a label is called in an item
DEEP = 5  # datasets within datasets that are asked for the names of classes
ATTRIBUTES = ("targets", "labels")  # and all of them as an attribute of the dataset
Names: TypeAlias = Mapping[str, int | None]  # of classes, and the number of each; none: several have it
LabelPlace: TypeAlias = str | int | None  # a key of the items, a position in them; none: not in the items

REGRESSION = (
    "Classes are numbered 0, 1, ..., classes - 1. A regressor, which predicts quantities, decides on no class: "
    "there is no decision to explain. Cut the quantity into classes and train a classifier on them."
)
SEVERAL = (
    "Several labels at a time make a multi-label task, and an explanation is of one decision. If one of them "
    "is set in each row, pass y.argmax(dim=1). Otherwise explain label j by itself: wrap the model so that it "
    "returns its output [:, j], and pass the labels y[:, j]."
)


@dataclass(frozen=True)
class ItemForm:
    """Where the label of an item is; the rest are the inputs."""

    label: LabelPlace
    names: Names | None = None  # that labels may be

    def named(self, names: Names | None) -> "ItemForm":
        """The same place, for labels that may be these names."""
        return self if names is None else replace(self, names=names)

    def parts(self, item: Any, where: str) -> tuple[Any, Any]:
        """The inputs and the label of an item; no label where items have none."""
        if self.label is None:
            return item, None
        if isinstance(item, Mapping) and self.label in item:
            return {key: value for key, value in item.items() if key != self.label}, item[self.label]
        if isinstance(self.label, int) and _has_part(item, self.label):
            place = range(len(item))[self.label]
            rest = [part for i, part in enumerate(item) if i != place]
            return rest[0] if len(rest) == 1 else tuple(rest), item[place]
        raise InputError(f"{where} is {_described(item)}, without the label {self.label!r} of the first one.")


def form_of(item: Any, labels: Any, dataset: Any, where: str) -> ItemForm:
    """The form of a set's items: as `labels` says, or a pair (x, y), or a dict with a label."""
    if isinstance(labels, int) and _has_part(item, labels):
        return ItemForm(labels)
    if isinstance(labels, str) and isinstance(item, Mapping) and labels in item:
        return ItemForm(labels)
    pair = isinstance(item, (tuple, list)) and len(item) == 2
    keys = [key for key in KEYS if key in item] if isinstance(item, Mapping) else []
    apart = separate(dataset, labels) is not None
    if pair and (labels is None or (apart and _is_label(item[1]))):
        return ItemForm(1)
    if len(keys) == 1 and (labels is None or apart):
        return ItemForm(keys[0])
    if apart:
        return ItemForm(None)
    said = "" if labels is None else f" and without a label {labels!r}"
    raise InputError(
        f"{where} is {_described(item)}, not a pair (x, y){said}. Labels are needed: make each item (input, "
        "class number), or say where the label is: Examples.of(data, labels='key'), labels=-1 for the last "
        "part of each item, or labels=y for the class numbers themselves."
    )


def separate(dataset: Any, labels: Any) -> Any:
    """Labels that are given by themselves: as a sequence, or as an attribute of the dataset."""
    if labels is not None and not isinstance(labels, (str, int)):
        return labels
    names = ATTRIBUTES if labels is None else (labels,)
    found = (getattr(dataset, name, None) for name in names if isinstance(name, str))
    return next((each for each in found if each is not None and not callable(each)), None)


def separate_from(form: ItemForm, dataset: Any, labels: Any) -> Any:
    """Labels that are given by themselves, unless those of the items are meant."""
    meant = labels is None or (isinstance(labels, (str, int)) and labels == form.label)
    return None if form.label is not None and meant else separate(dataset, labels)


def numbers(x: Any, what: str) -> Inputs:
    """A nest of tensors, or an error that says that `what` cannot become one."""
    refuse_masked(x, what)
    try:
        found = tensors(x)
        reasons = filter(None, map(unusable, leaves(found)))
        if (reason := next(reasons, None)) is not None:
            raise InputError(f"{what} {reason}.")
        return found
    except (TypeError, ValueError, RuntimeError) as error:
        if isinstance(error, InputError):
            raise
        raise _no_tensor(x, what) from None


def _are_tensors(nest: Any) -> bool:
    try:
        tensors(nest)
    except (TypeError, ValueError, RuntimeError):
        return False
    return True


def _no_tensor(x: Any, what: str) -> InputError:
    """That a value, or the first part of it that cannot, becomes no tensor."""
    texts = isinstance(x, str) or (isinstance(x, (list, tuple)) and all(isinstance(part, str) for part in x))
    nest = x.items() if isinstance(x, dict) else enumerate(x) if isinstance(x, tuple) and not texts else ()
    for key, part in nest:
        if not _are_tensors(part):
            where = f"The field {key!r}" if isinstance(x, dict) else f"Part {key}"
            return _no_tensor(part, f"{where} of {what[0].lower()}{what[1:]}")
    if getattr(getattr(x, "dtype", None), "kind", "") in ("m", "M"):
        return InputError(
            f"{what} holds dates, and a model computes with numbers. Make days of them: "
            "(x - x.min()) / numpy.timedelta64(1, 'D')."
        )
    if isinstance(x, np.ndarray) and x.dtype == object:
        found = _of_objects(x, "x.astype('float32')")
        return InputError(f"{what} is {found}")
    advice = "Convert it to tensors first, for example by a transform of the dataset."
    if texts:
        advice = "Leave it out of the items, or make batches without it: pr.Examples.of(data, collate_fn=...)."
    return InputError(f"{what} is {a_type(x)}, which is no tensor and cannot become one. {advice}")


def _of_objects(x: "np.ndarray[Any, Any]", line: str) -> str:
    """What an array of objects is: the first of them that is no number; or the line to type, if all are."""
    wrong = [each for each in x.flat if not _is_number(each)][:1]
    if wrong:
        found = f"{clipped(repr(wrong[0]))} is no number. Make numbers of all of it, or leave it out."
        return f"an array of objects (dtype object), and {found}"
    return f"an array of objects (dtype object). Make an array of numbers of it: {line}."


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError, RuntimeError):
        return False
    return True


def _no_numbers(y: Any, what: str) -> InputError:
    """That labels are none, and what to do about it."""
    if isinstance(y, np.ndarray) and y.dtype == object:
        found = _of_objects(y, "y.astype('int64')")
        return InputError(f"{what} are {found}")
    return InputError(f"{what} are no numbers. Encode them as class numbers 0, 1, ..., classes - 1.")


def refuse_masked(x: Any, what: str) -> None:
    """Refuses masked arrays of numpy whose values are hidden, which torch would compute with."""
    if isinstance(x, (dict, tuple)):
        for part in x.values() if isinstance(x, dict) else x:
            refuse_masked(part, what)
    if isinstance(x, list):
        for i, part in enumerate(x):
            if not isinstance(part, (int, float, str)):  # of which there may be many
                refuse_masked(part, f"Row {i} of {what[0].lower()}{what[1:]}")
    if isinstance(x, np.ma.MaskedArray) and np.ma.is_masked(x):
        hidden = np.argwhere(np.ma.getmaskarray(x)).tolist()
        first = f", the first at {hidden[0]}" if x.ndim else ""
        raise InputError(
            f"{what} is a masked array with {len(hidden)} hidden value(s){first}, and a model would compute "
            "with what is below. Fill them, as by x.filled(0), or leave these out."
        )


def class_number(y: Any, where: str, names: Names | None = None) -> int:
    """The label of one item, a number or one of the names."""
    if type(y) is int:
        return y
    if isinstance(y, str):
        return _numbered([y], where, names)[0]
    refuse_masked(y, f"The label of {where}")
    try:
        known = isinstance(y, (float, Tensor)) or hasattr(y, "dtype")
        label = torch.as_tensor(plain_array(y)) if known else None
    except (TypeError, ValueError, RuntimeError):  # of objects or texts
        label = None
    if label is not None and label.numel() > 1:
        raise InputError(f"The label of {where} has the shape {tuple(label.shape)}. {SEVERAL}")
    if label is None or label.numel() == 0 or not _are_numbers(label):
        raise InputError(f"The label of {where} is {y!r}. Labels must be whole class numbers. {REGRESSION}")
    return int(label)


def checked_labels(y: Any, count: int, what: str, names: Names | None = None) -> Tensor:
    """The labels of so many instances as an int64 vector, or an error that says what is wrong with them.

    They may be `names` of classes.
    """
    if y is None:
        raise InputError(f"The {what} has no labels. Pass a pair (inputs, labels).")
    refuse_masked(y, f"The label vector of the {what}")
    try:
        values = y.to_numpy() if hasattr(y, "to_numpy") else y
        labels = (
            torch.as_tensor(plain_array(values) if isinstance(values, np.ndarray) else values).detach().cpu()
        )
    except (TypeError, ValueError, RuntimeError, OverflowError):
        values = [] if isinstance(y, str) or not isinstance(y, Iterable) else list(y)
        if any(isinstance(value, str) for value in values):
            return checked_labels(_numbered(values, f"the {what}", names), count, what)
        raise _no_numbers(y, f"The labels of the {what}") from None
    if labels.layout is not torch.strided:
        raise InputError(f"The labels of the {what} are a sparse tensor. Make them dense: y.to_dense().")
    if labels.is_complex() or labels.dtype == torch.bool:
        raise InputError(f"The labels of the {what} are {labels.dtype}; class numbers are integers: y.long().")
    if labels.shape == (count, 1):
        labels = labels[:, 0]
    if labels.shape != (count,):
        wrong = (
            f"The labels of the {what} have the shape {tuple(labels.shape)}; {count} inputs need ({count},)."
        )
        raise InputError(f"{wrong} {SEVERAL}" if labels.ndim > 1 and len(labels) == count else wrong)
    if not _are_numbers(labels):
        i = int((~(labels.isfinite() & (labels == labels.trunc()))).nonzero()[0])
        raise InputError(
            f"The labels of the {what} are {labels.dtype}; class numbers are integers, but instance {i} has "
            f"{float(labels[i])}. {REGRESSION}"
        )
    return labels.long().clone()  # the user's own may change


def class_names(data: Any, classes: Any) -> Names | None:
    """The names that labels may be: those of `classes`, in their order, or else those that a dataset has."""
    if classes is not None:
        return _counted(classes)
    for _ in range(DEEP):
        found = getattr(data, "class_to_idx", None), getattr(data, "classes", None)
        names = next((each for each in map(_counted, found) if each), None)
        if names is not None:
            return names
        data = getattr(data, "dataset", None)  # of a loader, or of a part of a dataset
    return None


def shared_names(*sets: Any) -> Names | None:
    """A number for each name that labels of these sets are; none if they have none, or numbers as well."""
    given = [labels for labels in sets if isinstance(labels, Iterable) and not isinstance(labels, Tensor)]
    every = [each for labels in given for each in labels]
    if not every or not all(isinstance(each, str) for each in every):
        return None
    return {name: i for i, name in enumerate(sorted(set(every)))}


def in_order(names: Names | None) -> list[str] | None:
    """The names of the classes 0, 1, ..., if each has one."""
    every = {} if names is None else {place: name for name, place in names.items()}
    return [every[i] for i in range(len(every))] if every and set(every) == set(range(len(every))) else None


def _counted(classes: Any) -> Names | None:
    """The number of each name, from a list of them or a mapping; none of anything else."""
    if isinstance(classes, Mapping):
        pairs = [(name, i) if isinstance(name, str) else (i, name) for name, i in classes.items()]
        return numbered_names((name, i) for name, i in pairs if isinstance(i, int))
    if isinstance(classes, (str, bytes, Set)) or not isinstance(classes, Iterable):
        return None
    return numbered_names((name, i) for i, name in enumerate(classes))


def numbered_names(pairs: Iterable[tuple[Any, int]]) -> dict[str, int | None]:
    """The number of each name; none of what several classes are called.

    >>> numbered_names([("cat", 0), ("dog", 1), ("cat", 2)])
    {'cat': None, 'dog': 1}
    """
    found: dict[str, int | None] = {}
    for name, i in pairs:
        found[str(name)] = i if found.get(str(name), i) == i else None
    return found


def _numbered(labels: Sequence[Any], where: str, names: Names | None) -> list[Any]:
    """Class numbers in place of names, all else as it is."""
    for i, label in enumerate(labels):
        if isinstance(label, str) and label not in (names or ()):
            which = where if len(labels) == 1 else f"instance {i} of {where}"
            if names:
                raise UnknownNameError(f"class (the label of {which})", label, names)
            raise InputError(
                f"The label of {which} is {clipped(repr(label))}, and names are no numbers. Pass whole class "
                "numbers 0, 1, ..., classes - 1, or the names of the classes in their order: classes=[...]."
            )
    return [number_of(label, names, where) if isinstance(label, str) and names else label for label in labels]


def number_of(name: str, names: Names, where: str) -> int:
    """The number of the class of this name; what several classes are called is refused."""
    found = names[name]
    if found is None:
        raise InputError(
            f"A label of {where} is {clipped(repr(name))}, which is the name of several classes. Pass class "
            "numbers, or classes=[...] with names that differ."
        )
    return found


def _has_part(item: Any, place: int) -> bool:
    return isinstance(item, (tuple, list)) and len(item) > 1 and -len(item) <= place < len(item)


def _is_label(part: Any) -> bool:
    """Whether the second part of a pair is its label, or those of a batch, and no second input."""
    ndim = getattr(part, "ndim", 0 if isinstance(part, (int, float)) else 2)
    return ndim == 0 or (ndim == 1 and not torch.as_tensor(plain_array(part)).is_floating_point())


def _are_numbers(labels: Tensor) -> bool:
    """Whether these are whole numbers; floating point ones are, as in the labels of a binary cross entropy."""
    if labels.dtype == torch.bool or labels.is_complex():
        return False
    return not labels.is_floating_point() or bool((labels == labels.trunc()).all() and labels.isfinite().all())


def _described(item: Any) -> str:
    if isinstance(item, Mapping):
        return f"{a_type(item)} with {', '.join(map(repr, item))}"
    parts = f" of {len(item)} parts" if isinstance(item, Sequence) and not isinstance(item, str) else ""
    return f"{a_type(item)}{parts}"

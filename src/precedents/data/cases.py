"""Cases as a user passes them, one or several, as inputs that are shaped like training instances.

They are tensors, or a labelled pair of them, an item of a dataset, a list of items, or a dataset.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from precedents.data.collated_cases import collated_cases
from precedents.data.frames import ColumnNames, in_order, numeric, numeric_row
from precedents.data.inputs import Collated, Inputs, count, leaves, mapped, shapes, stacked
from precedents.data.labels import numbers
from precedents.errors import InputError
from precedents.runtime.users_code import users
from precedents.runtime.wording import none_there

ARRAYS = ("__array__", "shape", "columns", "iloc")  # of which what has any is no dataset


def as_batch(x: Any, like: Inputs, columns: ColumnNames = None) -> tuple[Inputs, bool]:
    """Inputs [m, ...] of one case or several, shaped `like` an instance; and whether it was one case.

    `columns` are the names of those of the training set, where it is of a frame.
    """
    if isinstance(like, Collated):
        return collated_cases(x, like.together)  # type: ignore[arg-type]
    if _is_dataset(x):
        return _several(x, like, columns), False
    try:
        return _as_they_are(x, like, columns)
    except InputError:
        found = _of_items(x, like, columns) if isinstance(x, (tuple, list)) else None
        if found is None:
            raise
        return found


def _as_they_are(x: Any, like: Inputs, columns: ColumnNames) -> tuple[Inputs, bool]:
    """Cases without labels, in tensors or what becomes tensors."""
    if isinstance(like, dict) and isinstance(x, Mapping) and set(like) <= set(x):
        x = {key: x[key] for key in like}  # a label may be among the rest
    if hasattr(x, "iloc"):  # a frame of pandas, or a row of one
        x = in_order(x, columns)
        x = numeric(x, "cases") if hasattr(x, "columns") else numeric_row(x, "cases")
    inputs = _typed(numbers(x, "What was passed as cases"), like)
    wanted, given = shapes(like), shapes(inputs)
    if given == wanted:
        return mapped(lambda leaf: leaf[None], inputs), True
    if [shape[1:] for shape in given] == wanted and all(shape[0] for shape in given):
        return inputs, False
    if [shape[1:] for shape in given] == wanted:
        raise InputError(f"{none_there('cases')} Pass at least one.")
    one, many = (", ".join(map(str, each)) for each in (wanted, [("m", *shape) for shape in wanted]))
    raise InputError(
        f"The cases have the shape {', '.join(map(str, given))}, but the training instances have {one}. "
        f"Pass one case {one} or a batch {many.replace(chr(39), '')}."
    )


def _is_dataset(x: Any) -> bool:
    """Whether it is a map-style dataset, whose items are cases."""
    known = isinstance(x, (Tensor, Sequence, Mapping)) or any(hasattr(x, name) for name in ARRAYS)
    return not known and hasattr(x, "__getitem__") and hasattr(x, "__len__")


def _of_items(x: Any, like: Inputs, columns: ColumnNames) -> tuple[Inputs, bool] | None:
    """Cases that are an item with its label, a labelled pair or a list of items; none if they are not."""
    found = _without_label(x, like, columns)
    if found is not None or not isinstance(x, list) or not x:
        return found
    try:
        _one(x[0], like, columns)
    except InputError:
        return None
    return _several(x, like, columns), False


def _several(items: Any, like: Inputs, columns: ColumnNames) -> Inputs:
    """The items of a list or a dataset, with or without labels, as a batch."""
    found = []
    for i in range(len(items)):
        with users(f"item {i} of the cases"):
            item = items[i]
        try:
            found.append(_one(item, like, columns))
        except InputError as error:
            raise InputError(f"Item {i} of the cases is none: {error}") from None
    return stacked(found)


def _one(item: Any, like: Inputs, columns: ColumnNames) -> Inputs:
    """One case, with or without its label."""
    found = _without_label(item, like, columns) if isinstance(item, (tuple, list)) else None
    inputs, single = found or _as_they_are(item, like, columns)
    if not single:
        raise InputError("It is a batch. Pass its cases one by one, or the batch by itself.")
    return mapped(lambda leaf: leaf[0], inputs)


def _without_label(x: Sequence[Any], like: Inputs, columns: ColumnNames) -> tuple[Inputs, bool] | None:
    """Inputs beside one label, last or first, or beside one for each; none if there are no such."""
    for place in (len(x) - 1, 0) if len(x) > 1 else ():
        rest = (*x[:place], *x[place + 1 :])
        try:
            inputs, single = _as_they_are(rest[0] if len(rest) == 1 else rest, like, columns)
        except InputError:
            continue
        if _shape(x[place]) == (() if single else (count(inputs),)):
            return inputs, single
    return None


def _shape(labels: Any) -> tuple[int, ...] | None:
    """Of labels, numbers or names; none of anything else."""
    if hasattr(labels, "shape"):
        return tuple(labels.shape)
    if isinstance(labels, (list, tuple)):
        return (len(labels),) if all(_shape(label) == () for label in labels) else None
    return () if isinstance(labels, (int, float, str)) else None


def _typed(inputs: Inputs, like: Inputs) -> Inputs:
    """Whole numbers as floating point ones, where training instances are; the other way round is refused."""
    single = isinstance(inputs, Tensor), isinstance(like, Tensor)
    if all(single) and inputs.is_floating_point() == like.is_floating_point():  # type: ignore[union-attr]
        return inputs
    own, wanted = leaves(inputs), leaves(like)
    if len(own) != len(wanted) or len(set(single)) > 1:
        raise InputError(f"The cases are {_form(inputs)}, but the training instances are {_form(like)}.")
    for leaf, other in zip(own, wanted, strict=True):
        if leaf.is_floating_point() and not other.is_floating_point():
            raise InputError(
                f"The cases are {leaf.dtype}, but the training instances are {other.dtype}, as token numbers "
                "are. Pass whole numbers: x.long()."
            )
    kinds = iter(wanted)

    def typed(leaf: Tensor) -> Tensor:
        other = next(kinds)
        return leaf.to(other.dtype) if other.is_floating_point() and not leaf.is_floating_point() else leaf

    return mapped(typed, inputs)


def _form(inputs: Inputs) -> str:
    """How a nest of tensors is made."""
    if isinstance(inputs, dict):
        return f"a dict with {', '.join(map(repr, inputs))}"
    return f"a tuple of {len(inputs)} tensors" if isinstance(inputs, tuple) else "one tensor"

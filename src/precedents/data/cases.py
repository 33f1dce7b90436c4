"""Cases as a user passes them, one or several, as inputs that are shaped like training instances."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from precedents.data.collated_cases import collated_cases
from precedents.data.frames import ColumnNames, in_order, numeric, numeric_row
from precedents.data.inputs import Collated, Inputs, leaves, mapped, shapes
from precedents.data.labels import numbers
from precedents.errors import InputError
from precedents.runtime.wording import none_there


def as_batch(x: Any, like: Inputs, columns: ColumnNames = None) -> tuple[Inputs, bool]:
    """Inputs [m, ...] of one case or several, shaped `like` an instance; and whether it was one case.

    `columns` are the names of those of the training set, where it is of a frame.
    """
    if isinstance(like, Collated):
        return collated_cases(x, like.together)  # type: ignore[arg-type]
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

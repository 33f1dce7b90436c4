"""Frames of pandas as numbers: columns stand in one order; texts, dates and missing values are named."""

from collections.abc import Hashable, Iterable
from itertools import zip_longest
from typing import Any, TypeAlias

import numpy as np

from precedents.errors import InputError
from precedents.runtime.wording import a_type
from precedents.seen import clipped

ColumnNames: TypeAlias = tuple[Hashable, ...] | None  # the names of a frame's columns, where there is one


def numeric(frame: Any, what: str) -> Any:
    """The values of a frame, truth values as 0 and 1 beside numbers; a column of texts or dates is named."""
    for i, (name, kind) in enumerate(zip(frame.columns, frame.dtypes, strict=True)):
        if getattr(kind, "kind", "f") not in "biufc":
            raise _no_number(name, str(kind), what)
        missing = frame.iloc[:, i].isna() if hasattr(kind, "numpy_dtype") else None
        if missing is not None and missing.any():
            raise _missing(name, what, f", first at {str(frame.index[missing.argmax()])!r}")
    if not hasattr(frame, "iloc"):  # of another library
        return frame.to_numpy()
    return frame.to_numpy(
        np.result_type(np.bool_, *(getattr(kind, "numpy_dtype", kind) for kind in frame.dtypes))
    )


def numeric_row(row: Any, what: str) -> Any:
    """The values of a row of a frame, as `numeric` has them."""
    for name, value in row.items():
        if type(value).__name__ == "NAType":
            raise _missing(name, what)
        if not isinstance(value, (bool, int, float, complex, np.bool_, np.number)):
            raise _no_number(name, a_type(value), what)
    return np.array(row.tolist(), None if row.dtype == object else getattr(row.dtype, "numpy_dtype", row.dtype))


def in_order(x: Any, columns: ColumnNames) -> Any:
    """Cases, a frame or a row, with the columns of the training set in its order; other names are refused.

    What has no names (0, 1, ...) is taken as it stands, and columns that the training set has not are left out.
    """
    own = list(x.columns if hasattr(x, "columns") else x.index)
    if columns is None or own in (list(columns), list(range(len(own)))):
        return x
    missing = [name for name in columns if name not in own]
    if missing:
        raise InputError(
            f"The cases have no column {_listed(missing)}, as the training set has. Their columns are "
            f"{_listed(own)}. Name them alike, or pass the values alone, in its order: x.to_numpy()."
        )
    return x[list(columns)]


def refuse_another_order(own: ColumnNames, columns: ColumnNames, what: str) -> None:
    """Refuses a set whose columns are others than those of the training set, or in another order."""
    if own is None or columns is None or own in (columns, tuple(range(len(columns)))):
        return
    pairs = enumerate(zip_longest(own, columns))
    i, (one, other) = next((i, pair) for i, pair in pairs if pair[0] != pair[1])
    raise InputError(
        f"Column {i} of the {what} is {one!r}, and of the training set it is {other!r}. Pass its columns, "
        "in its order: frame[list(columns)]."
    )


def _no_number(name: Hashable, kind: str, what: str) -> InputError:
    return InputError(
        f"The column {str(name)!r} of the {what} holds {kind}, and a torch.nn.Module computes with "
        "numbers. Make numbers of it, as the days of a date, or leave it out."
    )


def _missing(name: Hashable, what: str, where: str = "") -> InputError:
    return InputError(
        f"There is no value (NA) in the column {str(name)!r} of the {what}{where}. Fill such values, as by "
        "fillna, or drop the rows."
    )


def _listed(names: Iterable[Hashable]) -> str:
    return clipped(", ".join(map(str, names)))

"""Containers: instances as their owner has them, in a frame, an array, a sparse matrix or a list."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from precedents.errors import InputError
from precedents.runtime.wording import none_there
from precedents.seen import clipped


class Container(Protocol):
    """Instances in the container that scikit-learn is given."""

    @property
    def data(self) -> Any:
        """The container."""

    def __len__(self) -> int: ...

    def __getitem__(self, i: int, /) -> Any:
        """One instance, as a person would see it."""

    def first(self, count: int) -> Any:
        """A container of the first instances."""

    def chosen(self, indices: Sequence[int]) -> "Container":
        """Some of the instances, in such a container."""

    def cases(self, x: Any) -> tuple["Container", bool]:
        """One case or several in such a container; and whether it was one."""


@dataclass(frozen=True, eq=False)
class Frame:
    """A table of pandas or polars; an instance is a dict of its values by column."""

    data: Any

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, i: int) -> dict[str, Any]:
        polars = hasattr(self.data, "row")
        values = self.data.row(i) if polars else [column.iat[i] for _, column in self.data.items()]
        plain = (
            value.item() if isinstance(value, np.generic) and value.dtype.kind not in "mM" else value
            for value in values
        )
        return dict(zip(self.columns, plain, strict=True))

    @property
    def columns(self) -> list[str]:
        """Their names."""
        return list(self.data.columns)

    def first(self, count: int) -> Any:
        """A frame of the first instances."""
        return self.data.head(count)

    def chosen(self, indices: Sequence[int]) -> Container:
        """Some of the instances."""
        polars = hasattr(self.data, "row")
        return Frame(self.data[list(indices)] if polars else self.data.iloc[list(indices)])

    def cases(self, x: Any) -> tuple[Container, bool]:
        """From a frame, a Series, dicts by column, or values in the order of the columns."""
        if isinstance(x, type(self.data)):
            self._check(list(x.columns))
            return Frame(self._dated(x[self.columns])), False
        records, single = self._records(x)
        for record in records:
            self._check(list(record))
        columns = {name: [record[name] for record in records] for name in self.columns}
        return Frame(self._dated(type(self.data)(columns))), single

    def _dated(self, frame: Any) -> Any:
        """With dates where the training instances have dates, from texts or whatever says a date."""
        if hasattr(frame, "row"):  # polars
            return frame
        import pandas as pd

        frame = frame.copy()
        for name, kind in self.data.dtypes.items():
            if (kind.kind in "mM" or isinstance(kind, pd.PeriodDtype)) and frame[name].dtype != kind:
                try:
                    frame[name] = _as_dates(frame[name], kind)
                except (ValueError, TypeError, OverflowError):
                    said = clipped(repr(frame[name].iloc[0]))
                    raise InputError(
                        f"The column {name!r} holds dates ({kind}), but that of a case is {said}. Pass a date, "
                        "as pandas.Timestamp('2024-02-29'), or a text that pandas.to_datetime reads."
                    ) from None
        return frame

    def _records(self, x: Any) -> tuple[list[Mapping[str, Any]], bool]:
        if isinstance(x, Mapping):
            return [x], True
        if is_frame(x):
            frame = Frame(x)
            return [frame[i] for i in range(len(frame))], False
        if hasattr(x, "to_dict"):  # a Series: a row of a pandas frame
            return [x.to_dict()], True
        if isinstance(x, Sequence) and x and all(isinstance(each, Mapping) for each in x):
            return list(x), False
        values, single = batch(x, len(self.columns), mixed=True)
        return [dict(zip(self.columns, row, strict=True)) for row in values.tolist()], single

    def _check(self, given: list[str]) -> None:
        missing = [name for name in self.columns if name not in given]
        if missing:
            raise InputError(
                f"A case has no column {', '.join(map(repr, missing))}. The training instances have: "
                f"{', '.join(map(str, self.columns))}."
            )


@dataclass(frozen=True, eq=False)
class Matrix:
    """An array; an instance is one of its rows."""

    data: "np.ndarray[Any, Any]"

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, i: int) -> "np.ndarray[Any, Any]":
        return self.data[i]

    def first(self, count: int) -> Any:
        """An array of the first instances."""
        return self.data[:count]

    def chosen(self, indices: Sequence[int]) -> Container:
        """Some of the instances."""
        return Matrix(self.data[list(indices)])

    def cases(self, x: Any) -> tuple[Container, bool]:
        """From whatever becomes an array [d] or [m, d]."""
        if isinstance(x, Mapping):
            raise InputError(
                "The case is a mapping, but the training instances have no column names: they are an array. "
                "Pass the values as an array, or the training set as a frame."
            )
        x = x.toarray() if is_sparse(x) else x
        values, single = batch(x, self.data.shape[1], mixed=self.data.dtype == object)
        return Matrix(values), single


@dataclass(frozen=True, eq=False)
class Sparse:
    """A sparse matrix; an instance is one of its rows, sparse too."""

    data: Any  # compressed by rows

    def __len__(self) -> int:
        return self.data.shape[0]

    def __getitem__(self, i: int) -> Any:
        return self.data[i : i + 1]

    def first(self, count: int) -> Any:
        """A matrix of the first instances."""
        return self.data[:count]

    def chosen(self, indices: Sequence[int]) -> Container:
        """Some of the instances."""
        return Sparse(self.data[list(indices)])

    def cases(self, x: Any) -> tuple[Container, bool]:
        """From sparse or dense rows."""
        if not is_sparse(x):
            return Matrix(np.zeros((0, self.data.shape[1]))).cases(x)
        wide = x.reshape(1, -1) if x.ndim == 1 else x
        if wide.shape[1] != self.data.shape[1] or wide.shape[0] == 0:
            raise wrong_shape(x.shape, self.data.shape[1])
        return Sparse(wide.tocsr()), len(x.shape) == 1


class Entries(dict[str, float]):
    """The numbers of a sparse row, by column; what is not there is zero."""

    def get(self, name: str, default: Any = 0.0) -> Any:
        """Zero, unless something else is asked for."""
        return super().get(name, default)


@dataclass(frozen=True, eq=False)
class Listed:
    """Texts, or whatever else a vectorizer takes one by one."""

    data: list[Any]

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, i: int) -> Any:
        return self.data[i]

    def first(self, count: int) -> Any:
        """A list of the first instances."""
        return self.data[:count]

    def chosen(self, indices: Sequence[int]) -> Container:
        """Some of the instances."""
        return Listed([self.data[i] for i in indices])

    def cases(self, x: Any) -> tuple[Container, bool]:
        """From one of them or several."""
        if isinstance(x, (str, Mapping)):
            return Listed([x]), True
        several = rows_of(x, "cases")
        if not isinstance(several, Listed) or type(several[0]) is not type(self[0]):
            raise InputError(
                f"The cases are a {type(x).__name__}, but the training instances are "
                f"{type(self[0]).__name__}s. Pass one {type(self[0]).__name__} or a list of them."
            )
        return several, False


def _as_dates(values: Any, kind: Any) -> Any:
    """A column as dates of this kind: with its time zone, periods, or spans of time."""
    import pandas as pd

    if isinstance(kind, pd.PeriodDtype):
        return pd.Series(pd.PeriodIndex(values.astype(str), freq=kind.freq))
    if kind.kind == "m":
        return pd.to_timedelta(values).astype(kind)
    if isinstance(kind, pd.DatetimeTZDtype):
        found = pd.to_datetime(values)
        zoned = found.dt.tz_localize(kind.tz) if found.dt.tz is None else found.dt.tz_convert(kind.tz)
        return zoned.astype(kind)
    return pd.to_datetime(values).astype(kind)


def rows_of(x: Any, what: str) -> Container:
    """The instances of a set in the container they came in."""
    rows = _held(x, what)
    if len(rows) == 0:
        raise InputError(f"{none_there(what)} Pass at least one instance.")
    return rows


def _held(x: Any, what: str) -> Container:
    if is_frame(x):
        return Frame(x)
    if is_sparse(x):
        return Sparse(x.tocsr())
    if is_tabular(x):  # a column of one
        return Listed(list(x))
    if isinstance(x, (list, tuple)) and len(x) and isinstance(x[0], (str, Mapping)):
        return Listed(list(x))
    array = as_array(x, mixed=False)
    if array.ndim == 1 and array.dtype.kind in "OU":
        return Listed(array.tolist())
    if array.ndim != 2:
        raise InputError(
            f"The inputs of the {what} are a {type(x).__name__} of the shape {array.shape}. scikit-learn takes "
            "a table [n, columns]: an array, a sparse matrix, a frame of pandas or polars, or a list of texts."
        )
    return Matrix(array)


def is_frame(x: Any) -> bool:
    """Whether it is a DataFrame of pandas or polars."""
    return is_tabular(x) and hasattr(x, "columns")


def is_tabular(x: Any) -> bool:
    """Whether it is a DataFrame or a column, which has the same kind of values throughout."""
    package = type(x).__module__.partition(".")[0]
    return package in ("pandas", "polars") and hasattr(x, "shape")


def is_sparse(x: Any) -> bool:
    """Whether it is a matrix of scipy."""
    return hasattr(x, "tocsr")


def as_array(x: Any, *, mixed: bool) -> "np.ndarray[Any, Any]":
    """As an array; of objects, if texts and numbers may stand side by side."""
    try:
        array = np.asarray(x, dtype=object if mixed else None)
        if array.dtype.kind == "U" and not hasattr(x, "dtype"):
            array = np.asarray(x, dtype=object)  # numbers in it stay numbers
    except (TypeError, ValueError, RuntimeError):
        raise InputError(
            f"A {type(x).__name__} cannot become an array. Pass rows of one length: an array, a sparse matrix, "
            "a frame of pandas or polars, or a list of texts."
        ) from None
    return array


def batch(x: Any, width: int, *, mixed: bool) -> tuple["np.ndarray[Any, Any]", bool]:
    """Values [m, width] of one case or several; and whether it was one."""
    array = as_array(x, mixed=mixed)
    if array.shape == (width,):
        return array[None], True
    if array.ndim == 2 and array.shape[1] == width and len(array):
        return array, False
    raise wrong_shape(array.shape, width)


def wrong_shape(shape: tuple[int, ...], width: int) -> InputError:
    """The error for cases that are no rows of this width."""
    return InputError(
        f"The cases have the shape {shape}, but the training instances have {width} columns. "
        f"Pass one case ({width},) or a batch (m, {width})."
    )


def own(x: Any) -> Any:
    """A copy of what its owner may change: a frame of pandas, an array, a sparse matrix, dicts in a list."""
    if isinstance(x, (list, tuple)):
        return [dict(row) if type(row) is dict else row for row in x]
    return x.copy() if (is_frame(x) or hasattr(x, "dtype")) and hasattr(x, "copy") else x

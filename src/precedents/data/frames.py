"""Frames of pandas as numbers: texts, dates and missing values of nullable columns are named."""

from typing import Any

from precedents.errors import InputError


def numeric(frame: Any, what: str) -> Any:
    """The values of a frame; a column of texts or dates is named."""
    kinds = zip(frame.columns, frame.dtypes, strict=True)
    for name, kind in kinds:
        if getattr(kind, "kind", "f") not in "biufc":
            raise InputError(
                f"The column {str(name)!r} of the {what} holds {kind}, and a torch.nn.Module computes with "
                "numbers. Make numbers of it, as the days of a date, or leave it out."
            )
    return without_nulls(frame, f"The {what}")


def without_nulls(frame: Any, what: str) -> Any:
    """The values of a frame or a row of pandas, of whose nullable types none may be NA."""
    columns = [(name, frame[name]) for name in frame.columns] if hasattr(frame, "columns") else [("", frame)]
    for name, column in columns:
        if _is_nullable(column) and column.isna().any():
            place = column.index[column.isna().argmax()]
            where = f"in the column {str(name)!r}, " if hasattr(frame, "columns") else ""
            raise InputError(
                f"{what} has no value (NA) {where}first at {str(place)!r}. Fill such values, as by fillna, or "
                "drop the rows."
            )
    kinds = {name: column.dtype.numpy_dtype for name, column in columns if _is_nullable(column)}
    if not kinds:
        return frame.to_numpy()
    return frame.astype(kinds if hasattr(frame, "columns") else kinds[""]).to_numpy()


def _is_nullable(column: Any) -> bool:
    return hasattr(getattr(column, "dtype", None), "numpy_dtype")

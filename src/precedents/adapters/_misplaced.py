"""Rows on the wrong side of scikit-learn's transformers: a transformed matrix for texts, or the reverse."""

from collections.abc import Sequence
from datetime import date
from typing import Any

import numpy as np

from precedents.adapters._containers import is_frame, is_sparse
from precedents.errors import InputError

DATED = ("date", "time", "period", "dtype")  # words of errors about dates,
UNFILLED = ("nan", "infinity", "missing values")  # and about numbers that are none
MISSING = ("nan", "None", "<NA>", "NaT", "inf", "-inf")


def misplaced(model: Any, last: Any, x: Any, what: str) -> InputError | None:
    """The error for inputs that come from after or before the model's first step; None for any others."""
    name, verb = type(model).__name__, "are" if what == "cases" else "is"
    width, wanted = getattr(model, "n_features_in_", None), getattr(last, "n_features_in_", None)
    if width is not None and _are_texts(x):
        columns = getattr(model, "feature_names_in_", None)
        advice = (
            "Pass what the vectorizer makes of them, vectorizer.transform(texts), or explain both together: "
            "make_pipeline(vectorizer, model)."
            if columns is None
            else f"Pass rows with its columns: {', '.join(columns)}."
        )
        return InputError(
            f"The {name} was fitted on tables of {width} columns, but the {what} {verb} texts. {advice}"
        )
    shape, first = _shape(x), _first(model)
    texts = hasattr(first, "build_analyzer")
    fits = bool(shape) and shape[-1] == wanted != width
    if first is last or not (fits or (texts and len(shape) == 2 and what != "cases")):
        return None
    takes = "texts" if texts else "rows as they were before it"
    own = "model.best_estimator_[-1]" if hasattr(model, "best_estimator_") else "model[-1]"
    after = ", as its last step takes them" if fits else ""
    return InputError(
        f"The {name} begins with a {type(first).__name__}, which takes {takes}, but the {what} {verb} a matrix "
        f"of {shape[-1]} columns{after}. Pass the {takes}, or explain the last step alone: {own}."
    )


def undated(title: str, x: Any, what: str, said: str) -> InputError | None:
    """The error for dates that a model is given as they are; None without them, or if `said` is another."""
    if not any(word in said.lower() for word in DATED):
        return None
    columns = [str(name) for name in x.columns if _are_dates(x[name])] if is_frame(x) else []
    if not columns and _are_dates(x):
        columns = ["..."]
    if not columns:
        return None
    which = f"column {columns[0]!r} of the {what}" if is_frame(x) else what
    return InputError(
        f"The {which} holds dates, which the {title} cannot compute with. Make numbers of them in a pipeline "
        "before it, as by FunctionTransformer(lambda dates: dates.apply(lambda column: column.dt.day_of_week))."
    )


def unfilled(title: str, x: Any, what: str, said: str) -> InputError | None:
    """The error for numbers that are missing or not finite, with the first place; None if `said` is another."""
    if not any(word in said.lower() for word in UNFILLED):
        return None
    columns = {name: x[name] for name in x.columns} if is_frame(x) else dict(enumerate(_columns(x)))
    for name, column in columns.items():
        values = np.asarray(column)
        wrong = _lacking(values)
        if wrong.any():
            row = int(wrong.argmax())
            return InputError(
                f"The {what}: row {row} has {values[row]} in the column {name!r}, which the {title} "
                "cannot take. Fill such values, as by SimpleImputer() in a pipeline, or drop the row."
            )
    return None


def _columns(x: Any) -> Any:
    """Of rows that are numbers; none of others."""
    rows = np.asarray(x) if isinstance(x, (list, tuple, np.ndarray)) else np.empty((0, 0))
    return rows.reshape(len(rows), -1).T if rows.size else ()


def _lacking(column: Any) -> Any:
    """Where there is no number, or no finite one."""
    if column.dtype.kind == "f":
        return ~np.isfinite(column)
    return np.array([str(each) in MISSING for each in column], dtype=bool)


def _are_dates(column: Any) -> bool:
    """Whether a column or an array holds dates, periods or spans of time."""
    kind = getattr(column, "dtype", None)
    if getattr(kind, "kind", "") in ("m", "M") or str(kind).startswith(("period", "Date", "Duration")):
        return True
    values = column if getattr(kind, "kind", "") == "O" and getattr(column, "ndim", 0) == 1 else ()
    return len(values) > 0 and isinstance(next(iter(values)), date)


def _are_texts(x: Any) -> bool:
    if isinstance(x, str):
        return True
    column = isinstance(x, Sequence) or len(getattr(x, "shape", ())) == 1
    return column and len(x) > 0 and all(isinstance(each, str) for each in x)


def _shape(x: Any) -> tuple[int, ...]:
    """Of a table or a vector of numbers; of anything else an empty one."""
    if is_frame(x) or is_sparse(x):
        return tuple(x.shape)
    try:
        array = np.asarray(x)
    except (TypeError, ValueError, RuntimeError):
        return ()
    return array.shape if array.dtype.kind in "iuf" and array.ndim in (1, 2) else ()


def _first(model: Any) -> Any:
    """The step that receives the rows as they are given."""
    if hasattr(model, "best_estimator_"):
        return _first(model.best_estimator_)
    return _first(model.steps[0][1]) if hasattr(model, "steps") else model

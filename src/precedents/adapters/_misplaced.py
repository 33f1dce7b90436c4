"""Rows on the wrong side of scikit-learn's transformers: a transformed matrix for texts, or the reverse."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from precedents.adapters._containers import is_frame, is_sparse
from precedents.errors import InputError


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

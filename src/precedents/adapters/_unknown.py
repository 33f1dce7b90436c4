"""What transformers of scikit-learn do not know of a row: categories and words that the fit has not seen."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from precedents.adapters._containers import is_sparse
from precedents.seen import clipped

Found = list[list[str]]  # for each row


def unknown(step: Any, x: Any, n: int) -> Found:
    """For each of n rows what a fitted transformer does not know of it; nothing where that cannot be told."""
    found: Found = [[] for _ in range(n)]
    try:
        for i, said in _unknown(step, x):
            found[i].append(said)
    except Exception:
        return [[] for _ in range(n)]
    return found


def _unknown(step: Any, x: Any) -> Iterator[tuple[int, str]]:
    """By place: what a step, or what is inside of it, does not know."""
    for part, given in _parts(step, x):
        yield from _unknown(part, given)
    if hasattr(step, "categories_") and getattr(step, "handle_unknown", "error") != "error":
        yield from _categories(step, x)
    elif hasattr(step, "vocabulary_") or hasattr(step, "build_analyzer"):
        yield from _words(step.transform(x))


def _parts(step: Any, x: Any) -> Iterator[tuple[Any, Any]]:
    """The transformers that one is made of, and what each is given; none for one that is not made of others."""
    for _, part in getattr(step, "steps", ()):  # of a pipeline
        if hasattr(part, "transform"):
            yield part, x
            x = part.transform(x)
    for _, part, columns in getattr(step, "transformers_", ()):  # of some columns each
        if hasattr(part, "transform"):
            yield part, _columns(x, columns)
    for _, part in getattr(step, "transformer_list", ()):  # of all columns each
        yield part, x


def _columns(x: Any, columns: Any) -> Any:
    from sklearn.utils import _safe_indexing

    return _safe_indexing(x, columns, axis=1)


def _categories(encoder: Any, x: Any) -> Iterator[tuple[int, str]]:
    table = x.to_numpy() if hasattr(x, "to_numpy") else np.asarray(x, dtype=object)
    names = [str(name) for name in getattr(encoder, "feature_names_in_", range(table.shape[1]))]
    for name, column, known in zip(names, table.T, encoder.categories_, strict=True):
        every = set(known.tolist())
        for i, value in enumerate(column.tolist()):
            if value not in every and not (value != value and any(each != each for each in every)):
                yield i, f"the category {clipped(repr(value))} of column {clipped(name)}"


def _words(counts: Any) -> Iterator[tuple[int, str]]:
    filled = counts.getnnz(axis=1) if is_sparse(counts) else np.count_nonzero(counts, axis=1)
    for i in np.flatnonzero(np.asarray(filled) == 0).tolist():
        yield i, "any word of it"

"""What the columns are called that the transformers of a pipeline make, as far as these or their inputs say it.

scikit-learn gives no name at all where one transformer has none, as any FunctionTransformer of one's own. Here
the others keep theirs, and what a nameless one makes is called by its one input column, or by its block.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np


def names_out(steps: Iterable[Any], given: Sequence[str] | None = None, block: str = "") -> list[str] | None:
    """The names after all steps, of columns that are called as `given`; within a `block` of this name, if any.

    >>> from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures
    >>> squared = PolynomialFeatures(2, include_bias=False).fit([[1.0]])
    >>> names_out([FunctionTransformer(), squared], ["income"], "money")
    ['income', 'income^2']
    """
    found = None if given is None else list(given)
    for step in steps:
        if found is None and given is not None:
            found = _stood_in(given, getattr(step, "n_features_in_", 0), block)
        found = _after(step, found, block)
    return found


def _after(step: Any, given: Sequence[str] | None, block: str) -> list[str] | None:
    """The names after one step: its own, or those of its parts."""
    if step is None or isinstance(step, str):  # passthrough
        return None if given is None else list(given)
    found = None if given is None else _asked(step, given)
    found = _asked(step) if found is None else found
    if found is not None:
        return found
    if hasattr(step, "steps"):
        return names_out([each for _, each in step.steps], given, block)
    return _of_blocks(step, given) if hasattr(step, "output_indices_") else None


def _asked(step: Any, *given: Sequence[str]) -> list[str] | None:
    """What scikit-learn says; none where a transformer has no names, takes none, or was fitted on others."""
    try:
        return [str(name) for name in step.get_feature_names_out(*given)]
    except (AttributeError, TypeError, ValueError):
        return None


def _of_blocks(step: Any, given: Sequence[str] | None) -> list[str] | None:
    """The names after a ColumnTransformer, each after that of its block, unless that is not wished."""
    known = getattr(step, "feature_names_in_", None) if given is None else given
    inputs = np.array([f"x{i}" for i in range(step.n_features_in_)] if known is None else known, dtype=object)
    places = getattr(step, "_transformer_to_input_indices", None)
    if places is None:
        return None
    named: dict[int, tuple[str, str]] = {}
    for block, transformer, _ in step.transformers_:
        span, own = step.output_indices_[block], inputs[places[block]].tolist()
        width = span.stop - span.start
        found = names_out([transformer], own, block) if width else []
        if found is None or len(found) != width:
            found = _stood_in(own, width, block)
        named |= {span.start + i: (block, name) for i, name in enumerate(found)}
    bare = [named[i][1] for i in range(len(named))]
    alone = step.verbose_feature_names_out is False and len(set(bare)) == len(bare)
    return bare if alone else [f"{block}__{name}" for block, name in map(named.__getitem__, range(len(named)))]


def _stood_in(inputs: Sequence[str], width: int, block: str) -> list[str]:
    """Names for so many columns that nobody named, made of the one input, or of the block."""
    name = inputs[0] if len(inputs) == 1 else block
    return [name] if width == 1 else [f"{name} {i}" for i in range(width)]

"""How a batch of a collate_fn goes to a model's forward: by name, by position, or as a whole."""

import inspect
from collections.abc import Mapping
from typing import Any

from torch import nn

POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
WHOLE = ("batch", "inputs", "data", "sample", "features")  # what forward calls what it takes apart itself


def arguments(module: nn.Module, batch: Any) -> Any:
    """A tuple of positional arguments or a dict of named ones, as the model's forward takes them."""
    taken = list(inspect.signature(module.forward).parameters.values())
    names = [each.name for each in taken if each.kind in POSITIONAL]
    if isinstance(batch, Mapping):
        return _by_name(dict(batch), taken, names)
    any_number = any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in taken)
    return (batch,) if len(names) == 1 < len(batch) and not any_number else batch


def _by_name(batch: dict[str, Any], taken: list[inspect.Parameter], names: list[str]) -> Any:
    """By name what forward has a name for; by position, if it has none of the names; or the dict itself."""
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in taken):
        return batch
    named = {each.name for each in taken if each.kind is not inspect.Parameter.POSITIONAL_ONLY}
    known = {key: value for key, value in batch.items() if key in named}
    if known:
        return known
    if len(names) == 1 and (len(batch) > 1 or names[0] in WHOLE):
        return (batch,)
    return tuple(batch.values())

"""Code marks: a text that differs when a function's code does, or what it has at hand: closure, defaults, globals.

For functions whose values are too dear to be compared (a training). The same text does not prove that two functions
do the same, as when one reads a file; another text does not prove that they do not.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from hashlib import blake2b
from inspect import isclass
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
from torch import Tensor, nn

DEPTH = 6  # of functions that call functions, and of values in values
PACKAGE = __name__.partition(".")[0]


def code_mark(value: Any) -> str:
    """The mark of a function, or of anything that can be called."""
    digest = blake2b(digest_size=16)
    for text in _texts(value, DEPTH, set()):
        digest.update(text + b"\0")
    return digest.hexdigest()


def is_foreign(value: Any) -> bool:
    """Whether a part was written by somebody else than this package."""
    kind = value if isinstance(value, (FunctionType, type)) else type(value)
    return getattr(kind, "__module__", "").partition(".")[0] != PACKAGE


def _texts(value: Any, depth: int, seen: set[int]) -> Iterator[bytes]:
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        yield repr(value).encode(errors="backslashreplace")
    elif depth == 0 or id(value) in seen or isinstance(value, ModuleType):
        yield type(value).__name__.encode()
    else:
        seen.add(id(value))
        for part in _parts(value):
            yield from _texts(part, depth - 1, seen)


def _parts(value: Any) -> Iterator[Any]:
    """What a value is made of, as far as it matters here."""
    yield type(value).__name__
    if isinstance(value, FunctionType):
        yield from _function(value)
    elif isinstance(value, CodeType):
        yield from (value.co_code, value.co_names, value.co_consts)
    elif isinstance(value, MethodType):
        yield from (value.__func__, value.__self__)
    elif isinstance(value, partial):
        yield from (value.func, value.args, value.keywords)
    elif isinstance(value, (Tensor, np.ndarray)):
        array = value.detach().cpu().contiguous().float().numpy() if isinstance(value, Tensor) else value
        yield blake2b(np.ascontiguousarray(array), digest_size=16).digest()
    elif isinstance(value, nn.Module):
        yield from (str(value), dict(value.state_dict()), type(value))
    elif isinstance(value, Mapping):
        yield from (part for pair in value.items() for part in pair)
    elif isinstance(value, (tuple, list)):
        yield from value
    elif isinstance(value, (set, frozenset)):
        yield from sorted(map(repr, value))
    elif isclass(value):
        yield value.__qualname__
        yield from (part for part in vars(value).values() if is_foreign(value) and isinstance(part, FunctionType))
    elif is_foreign(value):
        yield type(value)
        yield from (part for pair in sorted(getattr(value, "__dict__", {}).items()) for part in pair)
    else:
        plain = {name: part for name, part in getattr(value, "__dict__", {}).items() if _is_plain(part)}
        yield from (part for pair in sorted(plain.items()) for part in pair)


def _function(function: FunctionType) -> Iterator[Any]:
    """Code, defaults, closure, and of the globals that it names plain values and functions of its own module."""
    yield function.__qualname__
    code = function.__code__
    yield from (code, function.__defaults__, function.__kwdefaults__)
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not filled yet
            yield None
    for name in code.co_names:
        found = function.__globals__.get(name)
        if _is_plain(found) or (isinstance(found, FunctionType) and found.__module__ == function.__module__):
            yield found


def _is_plain(value: Any) -> bool:
    return isinstance(value, (bool, int, float, str, tuple)) or hasattr(value, "__dataclass_fields__")

"""Code marks: a text that differs when a function's code does, or what it has at hand: closure, defaults,
globals.

For functions whose values are too dear to be compared (a training). The same text does not prove that two
functions do the same, as when one reads a file; another text does not prove that they do not.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from hashlib import blake2b
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
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
    for kinds, parts in PARTS:
        if isinstance(value, kinds):
            yield from parts(value)
            return
    every = vars(value) if hasattr(value, "__dict__") else {}
    if is_foreign(value):
        yield type(value)
        yield from _named(every)
    else:
        yield from _named({name: part for name, part in every.items() if _is_plain(part)})


def _named(values: Mapping[str, Any]) -> Iterator[Any]:
    yield from (part for pair in sorted(values.items(), key=lambda pair: str(pair[0])) for part in pair)


def _bytes(value: Any) -> Iterator[bytes]:
    array = value.detach().cpu().float().numpy() if isinstance(value, Tensor) else value
    yield blake2b(array.tobytes(), digest_size=16).digest()


def _methods(kind: type) -> Iterator[Any]:
    yield kind.__qualname__
    if is_foreign(kind):
        yield from (part for part in vars(kind).values() if isinstance(part, FunctionType))


def _function(function: FunctionType) -> Iterator[Any]:
    """Code, defaults, closure, and of the globals that it names plain values and functions of its own
    module.
    """
    yield function.__qualname__
    code = function.__code__
    yield from (code, function.__defaults__, function.__kwdefaults__)
    yield from (cell.cell_contents for cell in function.__closure__ or () if cell != CellType())
    for name in code.co_names:
        found = function.__globals__.get(name)
        if _is_plain(found) or (isinstance(found, FunctionType) and found.__module__ == function.__module__):
            yield found


def _is_plain(value: Any) -> bool:
    return isinstance(value, (bool, int, float, str, tuple)) or hasattr(value, "__dataclass_fields__")


PARTS: tuple[tuple[Any, Callable[[Any], Iterable[Any]]], ...] = (
    (FunctionType, _function),
    (CodeType, lambda code: (code.co_code, code.co_names, code.co_consts)),
    (MethodType, lambda method: (method.__func__, method.__self__)),
    (partial, lambda made: (made.func, made.args, made.keywords)),
    ((Tensor, np.ndarray), _bytes),
    (nn.Module, lambda module: (str(module), dict(module.state_dict()), type(module))),
    (Mapping, _named),
    ((tuple, list), iter),
    ((set, frozenset), lambda values: sorted(map(repr, values))),
    (type, _methods),
)

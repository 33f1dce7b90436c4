"""Attributes: the plain values that a module's `forward` reads beside its weights, as `self.scale = 0.5`.

They are in no state. Which of them matter the code says: what neither a forward nor what it calls has a name
for is a note of the owner's (a path, a learning rate, a list of losses), and what these store is a counter.
"""

from collections.abc import Callable, Iterator
from dis import get_instructions
from functools import partial
from hashlib import blake2b
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any

from torch import nn

CHANGING = "changes in a pass"
PLAIN = (bool, int, float, str, type(None))
HARMLESS = ("training", "checkpoint", "device", "verbose", "debug")  # in names of what changes no answer
ALIEN = ("torch", "lightning", "pytorch_lightning", "lightning_fabric")  # whose functions are not followed
SHOWN = 60  # letters of a value

Values = dict[str, str]


def attributes(module: nn.Module, run: Callable[[nn.Module], object]) -> Values:
    """The values by name that the forwards of a module read, as texts; what a `run` changes is called so.

    >>> attributes(nn.Sequential(nn.LeakyReLU(0.2), nn.Flatten(2)), lambda module: None)
    {'0.inplace': 'False', '0.negative_slope': '0.2', '1.end_dim': '-1', '1.start_dim': '2'}
    """
    wanted = _wanted(module)
    before = dict(_values(module, wanted))
    run(module)
    after = dict(_values(module, wanted))
    both = {**after, **before}
    return {name: value if after.get(name) == value else CHANGING for name, value in both.items()}


def _values(module: nn.Module, wanted: set[str]) -> Iterator[tuple[str, str]]:
    """The plain values of these names, of each part or of its class."""
    for path, part in module.named_modules():
        known = {name: value for kind in reversed(_kinds(part)) for name, value in vars(kind).items()}
        known |= vars(part)
        for name in sorted(wanted & known.keys()):
            if _is_plain(known[name]):
                yield f"{path}.{name}" if path else name, _text(known[name])


def _wanted(module: nn.Module) -> set[str]:
    """The names that the forwards of all parts, and what they call, read and do not store."""
    methods: dict[str, list[Any]] = {}
    for kind in {kind for part in module.modules() for kind in _kinds(part)}:
        for name, value in vars(kind).items():
            methods.setdefault(name, []).append(value)
    own = [vars(part)["forward"] for part in module.modules() if "forward" in vars(part)]
    left, seen = [*methods.get("forward", ()), *own], dict[int, FunctionType]()
    read, stored = set[str](), set[str]()
    while left:
        function = _function(left.pop())
        if function is None or id(function) in seen:
            continue
        seen[id(function)] = function
        names = set[str]()
        for code in _codes(function.__code__):
            names |= {*code.co_names, *(each for each in code.co_consts if isinstance(each, str))}
            stored |= {each.argval for each in get_instructions(code) if each.opname == "STORE_ATTR"}
        read |= names
        left += [each for name in names if not name.startswith("__") for each in methods.get(name, ())]
        left += _reached(function, names)
    return {name for name in read - stored if not name.startswith("_") and not _is_harmless(name)}


def _kinds(part: nn.Module) -> list[type]:
    """The classes of a part whose functions are followed."""
    every = (kind for kind in type(part).__mro__ if kind not in (nn.Module, object))
    return [kind for kind in every if kind.__module__.partition(".")[0] not in ALIEN[1:]]


def _function(value: Any) -> FunctionType | None:
    """What is called, of a method, a property or a partial one."""
    if isinstance(value, (MethodType, staticmethod, classmethod)):
        value = value.__func__
    elif isinstance(value, property):
        value = value.fget
    elif isinstance(value, partial):
        value = value.func
    return value if isinstance(value, FunctionType) else None


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Of a function and of those within it."""
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each)


def _reached(function: FunctionType, names: set[str]) -> list[Any]:
    """The functions that it has by name, or wraps."""
    found = [value for name in names if isinstance(value := function.__globals__.get(name), FunctionType)]
    found += [cell.cell_contents for cell in function.__closure__ or () if cell != CellType()]
    return [each for each in found if getattr(each, "__module__", "").partition(".")[0] not in ALIEN]


def _is_harmless(name: str) -> bool:
    return any(word in name for word in HARMLESS)


def _is_plain(value: Any) -> bool:
    if type(value) in (tuple, list):
        return all(map(_is_plain, value))
    if type(value) is dict:
        return all(type(key) in PLAIN and _is_plain(each) for key, each in value.items())
    return type(value) in PLAIN


def _text(value: Any) -> str:
    """A value as it is typed; a long one begins so and ends in what differs when it does."""
    text = repr(value)
    return (
        text if len(text) <= SHOWN else f"{text[:SHOWN]}... {blake2b(text.encode(), digest_size=8).hexdigest()}"
    )

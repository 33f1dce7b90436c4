"""Plain values that a user passes: numbers within their ranges, folders and lists, or a refusal by name."""

from collections.abc import Iterable
from math import inf
from numbers import Real
from operator import index
from os import PathLike
from pathlib import Path
from typing import Any

from precedents.errors import InputError
from precedents.runtime.wording import a_type
from precedents.seen import clipped

SEEDS = 2**63  # below which a seed is


def whole_number(value: Any, name: str, least: int = 1, most: float = inf, advice: str = "") -> int:
    """A whole number from `least` to `most`, as Python, numpy or torch have it; neither a bool nor a text.

    `advice` says what to pass, if that is not plain from the range.

    >>> whole_number(3, "k")
    3
    """
    try:
        number = None if isinstance(value, bool) else index(value)
    except (TypeError, ValueError):
        number = None
    if number is None or not least <= number <= most:
        said = advice or f"Pass a whole number {_range(least, most)}"
        raise InputError(f"{name} is {_told(value)}. {said}.")
    return number


def real(value: Any, name: str, advice: str) -> float:
    """A positive and finite number, neither a bool nor a text; `advice` says what to pass.

    >>> real(0.5, "afford", "Pass seconds")
    0.5
    """
    number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else inf
    if not 0 < number < inf:
        raise InputError(f"{name} is {_told(value)}. {advice}.")
    return number


def seed(value: Any, name: str = "seed") -> int:
    """A whole number that random numbers can begin with."""
    return whole_number(value, name, 0, SEEDS - 1)


def share(value: Any, name: str) -> float:
    """A number from 0 to 1."""
    number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else inf
    if not 0 <= number <= 1:
        raise InputError(f"{name} is {_told(value)}. Pass a number from 0 to 1, for example 0.95.")
    return number


def path(value: Any, name: str) -> Path:
    """A path, from a text or a path."""
    if not isinstance(value, (str, PathLike)) or "\0" in str(value):
        raise InputError(f"{name} is {_told(value)}. Pass the name of a folder.")
    return Path(value)


def several(value: Any, name: str, *alone: type) -> list[Any]:
    """The values of a list or the like; a text, or a value of one of the types `alone`, is a list by itself."""
    if isinstance(value, (str, *alone)):
        return [value]
    if not isinstance(value, Iterable):
        raise InputError(f"{name} is {a_type(value)}. Pass a list of them.")
    return list(value)


def _told(value: Any) -> str:
    return clipped(repr(value))


def _range(least: int, most: float) -> str:
    return f"of at least {least}" if most == inf else f"from {least} to {most}"

"""Kept: values computed once for as long as their owner lives."""

from collections.abc import Callable, Hashable
from threading import RLock
from typing import Any, TypeVar, cast

T = TypeVar("T")


class Kept:
    """A value for each key, computed at the first call that asks for it."""

    def __init__(self) -> None:
        self._values: dict[Hashable, Any] = {}
        self._lock = RLock()

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of `make`, computed at the first call with this key."""
        with self._lock:
            if key not in self._values:
                self._values[key] = make()
            return cast("T", self._values[key])

    def get(self, key: Hashable) -> Any:
        """The value for this key, or None."""
        return self._values.get(key)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._values

"""Cache: values that are computed once, each in a slot of its own type, for as long as their owner lives.

A slot is declared once, beside what it holds: `GRAM: Slot[Tensor] = Slot("Gram matrix", large=True)`. What is
large may be put away when its memory is needed, and is made again when it is asked for.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from threading import RLock
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")


class Slot(Generic[T]):
    """A place for one value: its name, which of several it is (`of`), and whether the value is large.

    >>> roots = Slot[float]("square root")
    >>> cache = Cache()
    >>> cache.once(roots.at(4), lambda: 2.0), roots.at(4) in cache, roots.at(9) in cache
    (2.0, True, False)
    """

    def __init__(self, name: str, of: tuple[Hashable, ...] = (), *, large: bool = False) -> None:
        self.name, self.of, self.large = name, of, large
        self._hash = hash((name, of))

    def at(self, *of: Hashable) -> "Slot[T]":
        """The slot for these: a feature map, a rank, a damping."""
        return Slot(self.name, of, large=self.large)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Slot) and (self.name, self.of) == (other.name, other.of)


class Cache:
    """A value for each slot, computed by the first call that asks for it."""

    def __init__(self) -> None:
        self._values: dict[Slot[Any], Any] = {}
        self._lock = RLock()

    def once(self, slot: Slot[T], make: Callable[[], T]) -> T:
        """The value of `make`, computed at the first call with this slot, and again after it was put away."""
        with self._lock:
            if slot not in self._values:
                self._values[slot] = make()
            return cast("T", self._values[slot])

    def blocks(
        self, slot: Slot[Sequence[T]], rest: Callable[[T | None], Iterable[T]], fits: Callable[[T], bool]
    ) -> Iterator[T]:
        """Blocks one by one: those that are kept, then what `rest` gives after the last of them.

        At the first time, the first blocks are kept for the next time, as long as `fits` says so.
        """
        known, last = self._values.get(slot), None
        for block in known or ():
            yield block
            last = block
        made, keep = [], known is None
        for block in rest(last):
            keep = keep and fits(block)
            if keep:
                made.append(block)
            yield block
            del block  # its memory is free for the next ones
        if made:
            self.put(slot, made)

    def get(self, slot: Slot[T]) -> T | None:
        """The value in this slot, or None."""
        return self._values.get(slot)

    def put(self, slot: Slot[T], value: T) -> None:
        """Fills a slot, unless it is filled already."""
        with self._lock:
            self._values.setdefault(slot, value)

    def put_away(self) -> None:
        """Forgets what is large, unless another thread is at work on it."""
        if self._lock.acquire(blocking=False):
            try:
                self._values = {slot: value for slot, value in self._values.items() if not slot.large}
            finally:
                self._lock.release()

    def __contains__(self, slot: Slot[Any]) -> bool:
        return slot in self._values

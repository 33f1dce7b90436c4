"""Cache: values that are computed once, each in a slot of its own type, for as long as their owner lives.

A slot is declared once, beside what it holds: `GRAM: Slot[Tensor] = Slot("Gram matrix", large=True)`. What is
large may be put away when its memory is needed, and is made again when it is asked for. Threads that ask for
a value which is being made wait for it; those that ask for what is there do not.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import chain
from threading import RLock
from typing import Any, Generic, TypeVar, cast

from precedents.runtime.guards import GUARDED

T = TypeVar("T")
MISSING = object()


class Slot(Generic[T]):
    """A place for one value: its name, which of several it is (`of`), and whether the value is large.

    What `travels` goes with its cache to another process, where all else is made again.

    >>> roots = Slot[float]("square root")
    >>> cache = Cache()
    >>> cache.once(roots.at(4), lambda: 2.0), roots.at(4) in cache, roots.at(9) in cache
    (2.0, True, False)
    """

    def __init__(
        self, name: str, of: tuple[Hashable, ...] = (), *, large: bool = False, travels: bool = False
    ) -> None:
        self.name, self.of, self.large, self.travels = name, of, large, travels
        self._hash = hash((name, of))

    def at(self, *of: Hashable) -> "Slot[T]":
        """The slot for these: a feature map, a rank, a damping."""
        return Slot(self.name, of, large=self.large, travels=self.travels)

    def __reduce__(self) -> tuple[Any, ...]:
        """Made anew in another process, where texts have other hashes."""
        return _travelled, (self.name, self.of)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Slot) and (self.name, self.of) == (other.name, other.of)


class Cache:
    """A value for each slot, computed by the first call that asks for it."""

    def __init__(self) -> None:
        self._values: dict[Slot[Any], Any] = {}
        self.lock: Any = RLock()
        GUARDED.add(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """What goes to another process: what travels, in a cache of its own."""
        return Cache, (), {slot: value for slot, value in list(self._values.items()) if slot.travels}

    def __setstate__(self, values: dict[Slot[Any], Any]) -> None:
        self._values = values

    def once(self, slot: Slot[T], make: Callable[[], T]) -> T:
        """The value of `make`, computed at the first call with this slot, and again after it was put away."""
        found = self._values.get(slot, MISSING)
        if found is MISSING:
            with self.lock:
                if slot not in self._values:
                    self._values[slot] = make()
                found = self._values[slot]
        return cast("T", found)

    def blocks(
        self, slot: Slot[Sequence[T]], rest: Callable[[T | None], Iterable[T]], fits: Callable[[T], bool]
    ) -> Iterator[T]:
        """Blocks one by one: those that are kept, then what `rest` gives after the last of them.

        At the first time, one thread makes the first blocks for all; they are kept as long as `fits` says so.
        """
        known, following = self._values.get(slot), None
        if known is None:
            with self.lock:
                known = self._values.get(slot)
                if known is None:
                    following = iter(rest(None))
                    known, beyond = _first_that_fit(following, fits)
                    following = chain(beyond, following)
                    self._values[slot] = known
        last = None
        for last in known:
            yield last
        following = iter(rest(last)) if following is None else following
        del last  # its memory is free for the next ones
        yield from following

    def get(self, slot: Slot[T]) -> T | None:
        """The value in this slot, or None."""
        return self._values.get(slot)

    def put(self, slot: Slot[T], value: T) -> None:
        """Fills a slot, unless it is filled already."""
        with self.lock:
            self._values.setdefault(slot, value)

    def put_away(self) -> None:
        """Forgets what is large, unless another thread is at work on it."""
        lock = self.lock
        if lock.acquire(blocking=False):
            try:
                self._values = {slot: value for slot, value in self._values.items() if not slot.large}
            finally:
                lock.release()

    def __contains__(self, slot: Slot[Any]) -> bool:
        return slot in self._values


def _travelled(name: str, of: tuple[Hashable, ...]) -> Slot[Any]:
    """A slot of another process."""
    return Slot(name, of, travels=True)


def _first_that_fit(blocks: Iterator[T], fits: Callable[[T], bool]) -> tuple[list[T], list[T]]:
    """The first blocks, as long as they fit, and the one that does not if there is one."""
    made: list[T] = []
    for block in blocks:
        if not fits(block):
            return made, [block]
        made.append(block)
    return made, []

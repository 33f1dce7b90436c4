"""Cache: values computed once for as long as their owner lives; a listener may be told what is asked for."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import RLock
from typing import Any, TypeVar, cast

T = TypeVar("T")

Note = Callable[[Hashable, Any, int | None], None]  # a key, its value or one block of it, the block's place

_listener: ContextVar[tuple[object, Note] | None] = ContextVar("listener", default=None)
END = object()


class Cache:
    """A value for each key, computed at the first call that asks for it."""

    def __init__(self) -> None:
        self._values: dict[Hashable, Any] = {}
        self._large: set[Hashable] = set()
        self._lock = RLock()

    def once(self, key: Hashable, make: Callable[[], T], large: bool = False) -> T:
        """The value of `make`, computed at the first call with this key; again if it was large and put away."""
        with self._lock:
            if key not in self._values:
                with _listening(None):
                    made = make()
                self._values[key] = made
                if large:
                    self._large.add(key)
            value = cast("T", self._values[key])
        self._tell(key, value)
        return value

    def blocks(
        self, key: Hashable, rest: Callable[[T | None], Iterable[T]], fits: Callable[[T], bool]
    ) -> Iterator[T]:
        """Blocks one by one: those that are known, then what `rest` gives after the last of them.

        At the first time, the first blocks are kept for the next time, as long as `fits` says so.
        """
        known, last, place = self._values.get(key), None, 0
        for block in _silent(lambda: known or ()):
            self._tell(key, block, place)
            yield block
            last, place = block, place + 1
        made, keep = [], known is None
        for block in _silent(lambda: rest(last)):
            self._tell(key, block, place)
            keep = keep and fits(block)
            if keep:
                made.append(block)
            yield block
            del block  # its memory is free for the next ones
            place += 1
        if made:
            with self._lock:
                self._values.setdefault(key, made)
                self._large.add(key)

    def put_away(self) -> None:
        """Forgets what is large, unless another thread is at work on it."""
        if self._lock.acquire(blocking=False):
            try:
                for key in self._large:
                    self._values.pop(key, None)
                self._large.clear()
            finally:
                self._lock.release()

    def get(self, key: Hashable) -> Any:
        """The value for this key, or None."""
        return self._values.get(key)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._values

    @contextmanager
    def told(self, note: Note) -> Iterator[None]:
        """Tells `note` what this thread asks for within, but not what that in turn is made of."""
        with _listening((self, note)):
            yield

    def _tell(self, key: Hashable, value: Any, place: int | None = None) -> None:
        owner, note = _listener.get() or (None, None)
        if note is not None and owner is self:
            note(key, value, place)


def _silent(make: Callable[[], Iterable[T]]) -> Iterator[T]:
    """Goes through what is made; what is asked for meanwhile is told to nobody."""
    with _listening(None):
        source = iter(make())
    while True:
        with _listening(None):
            block = next(source, cast("T", END))
        if block is END:
            return
        yield block
        del block


@contextmanager
def _listening(listener: tuple[object, Note] | None) -> Iterator[None]:
    before = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(before)

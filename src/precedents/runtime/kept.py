"""Kept: values computed once for as long as their owner lives; a listener may be told what is asked for."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import RLock
from typing import Any, TypeVar, cast

T = TypeVar("T")

Note = Callable[[Hashable, Any, int | None], None]  # a key, its value or one block of it, the block's place

_listener: ContextVar[tuple[object, Note] | None] = ContextVar("listener", default=None)
END = object()


class Kept:
    """A value for each key, computed at the first call that asks for it."""

    def __init__(self) -> None:
        self._values: dict[Hashable, Any] = {}
        self._lock = RLock()

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of `make`, computed at the first call with this key."""
        with self._lock:
            if key not in self._values:
                with _listening(None):
                    self._values[key] = make()
            value = cast("T", self._values[key])
        self._tell(key, value)
        return value

    def blocks(self, key: Hashable, make: Callable[[], Iterable[T]], keep: bool) -> Iterator[T]:
        """What `make` gives, block by block; all of it is there for the next time if it is to be kept."""
        known, made = self._values.get(key), []
        with _listening(None):
            source = iter(make() if known is None else known)
        place = 0
        while True:
            with _listening(None):
                block = next(source, cast("T", END))
            if block is END:
                break
            self._tell(key, block, place)
            if keep and known is None:
                made.append(block)
            yield block
            del block  # its memory is free for the next ones
            place += 1
        if keep and known is None:
            with self._lock:
                self._values.setdefault(key, made)

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


@contextmanager
def _listening(listener: tuple[object, Note] | None) -> Iterator[None]:
    before = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(before)

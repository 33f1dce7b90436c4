"""ByteCache: what was made lately, within so many bytes."""

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Any


class ByteCache:
    """Texts of bytes by key; the least lately used make room.

    >>> cache = ByteCache(3)
    >>> cache.put("a", b"12")
    >>> cache.put("b", b"34")
    >>> cache.get("a"), cache.get("b"), cache.size
    (None, b'34', 2)
    """

    def __init__(self, most: int) -> None:
        self.most, self.size = most, 0
        self._kept: OrderedDict[Hashable, bytes] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable) -> bytes | None:
        """What was put there, if it still is."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def put(self, key: Hashable, content: bytes) -> None:
        """Keeps it, unless it is too large by itself."""
        with self._lock:
            self.size -= len(self._kept.pop(key, b""))
            if len(content) <= self.most:
                self._kept[key] = content
                self.size += len(content)
            while self.size > self.most:
                self.size -= len(self._kept.popitem(last=False)[1])


class Recent:
    """The values that were put lately, so many of them, of so many bytes; and those that stay.

    >>> recent = Recent(most=64, room=10)
    >>> for name, size in (("a", 4), ("b", 4), ("c", 4)):
    ...     recent.put(name, name.upper(), size)
    >>> recent.keys(), recent.get("a"), recent.get("c")
    (['b', 'c'], None, 'C')
    """

    def __init__(self, most: int = 64, room: int = 2**62) -> None:
        self.most, self.room, self.size = most, room, 0
        self._kept: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._staying: dict[Hashable, Any] = {}
        self._lock = Lock()

    def get(self, key: Hashable) -> Any:
        """What was put there, or None."""
        with self._lock:
            return self._staying[key] if key in self._staying else self._kept.get(key, (None, 0))[0]

    def stay(self, key: Hashable, value: Any) -> None:
        """Keeps it for good: there are few of these, and to make one again takes long."""
        with self._lock:
            self._staying[key] = value

    def put(self, key: Hashable, value: Any, size: int = 0) -> None:
        """Keeps it in the place of the oldest; the latest is always kept."""
        with self._lock:
            self.size += size - self._kept.pop(key, (None, 0))[1]
            self._kept[key] = value, size
            while len(self._kept) > 1 and (len(self._kept) > self.most or self.size > self.room):
                self.size -= self._kept.popitem(last=False)[1][1]

    def keys(self) -> list[Any]:
        """What is there, the latest last."""
        with self._lock:
            return list(self._kept)

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
    """The values that were put lately, so many of them."""

    def __init__(self, most: int = 64) -> None:
        self.most = most
        self._kept: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable) -> Any:
        """What was put there, or None."""
        return self._kept.get(key)

    def put(self, key: Hashable, value: Any) -> None:
        """Keeps it in the place of the oldest."""
        with self._lock:
            self._kept[key] = value
            while len(self._kept) > self.most:
                self._kept.popitem(last=False)

    def keys(self) -> list[Any]:
        """What is there, the latest last."""
        return list(self._kept)

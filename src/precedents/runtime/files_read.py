"""Which files Python opens while a function runs, and whether they are what they were since."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Stamps = dict[str, list[int]]  # path: bytes and time of the last change in nanoseconds

OWN = tuple(
    {os.path.realpath(path) for path in (sys.prefix, sys.base_prefix)}
)  # packages are known by versions,
SYSTEM = ("/proc/", "/sys/", "/dev/")  # what these tell changes by itself,
CODE = (".py", ".pyc", ".so")  # and code by itself
_OPENED: list[set[str]] = []  # of those who listen
_HOOKED: list[bool] = []


@contextmanager
def files_read() -> Iterator[Stamps]:
    """Files that are opened meanwhile, in any thread of this process; filled at the end."""
    if not _HOOKED:
        sys.addaudithook(_hear)  # it cannot be taken back, so there is one
        _HOOKED.append(True)
    heard, found = set[str](), Stamps()
    _OPENED.append(heard)
    try:
        yield found
    finally:
        _OPENED.remove(heard)
        found.update(
            stamps(
                path
                for path in sorted(heard)
                if not path.startswith((*OWN, *SYSTEM)) and not path.endswith(CODE)
            )
        )


def stamps(paths: Iterator[str] | Mapping[str, Any]) -> Stamps:
    """Of those that are regular files."""
    known = {path: Path(path).stat() for path in paths if Path(path).is_file()}
    return {path: [each.st_size, each.st_mtime_ns] for path, each in known.items()}


def _hear(event: str, args: tuple[Any, ...]) -> None:
    if not _OPENED or event != "open":
        return
    path, _, flags = args
    if isinstance(path, (str, bytes, os.PathLike)) and flags & os.O_ACCMODE == os.O_RDONLY:
        whole = os.path.realpath(os.fsdecode(path))
        for heard in _OPENED:
            heard.add(whole)

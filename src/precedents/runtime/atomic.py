"""Files and folders that are there whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree


def write(path: Path, content: str | bytes) -> None:
    """Writes a file under a temporary name in the same folder, then gives it its own."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        fresh.write_bytes(content.encode() if isinstance(content, str) else content)
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


@contextmanager
def whole(folder: Path) -> Iterator[Path]:
    """A new folder to fill, which takes the place of `folder` if all goes well and vanishes otherwise."""
    fresh, old = (folder.with_name(f".{folder.name}.{os.getpid()}.{state}") for state in ("new", "old"))
    fresh.mkdir(parents=True)
    try:
        yield fresh
        if folder.exists():
            folder.replace(old)
        fresh.replace(folder)
    finally:
        rmtree(fresh, ignore_errors=True)
        rmtree(old, ignore_errors=True)

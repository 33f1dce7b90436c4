"""Files and folders that are there whole or not at all, whoever is killed and whoever else writes them.

What is written stands beside its place under a name `.NAME.PID-NUMBER.new` until it is complete and on the
disk. A folder changes places with the one that it replaces in one step where the system can do that (Linux:
renameat2); elsewhere the old one is moved out of the way first, and is put back by the next writer if a kill
came between the two steps. Leftovers of killed processes are swept by the next writer of the same place: who
is at work holds a lock on what it writes, so no other's work is taken for a leftover.
"""

import ctypes
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from shutil import copy2, rmtree

from precedents.errors import InputError, StoreError
from precedents.runtime.locks import locked, released, taken

EXCHANGE, HERE = 2, -100  # RENAME_EXCHANGE and AT_FDCWD of Linux
NUMBERS = count()
ROOM = "Make room there, and the same call goes on; or name another folder."

Own = Callable[[Path], bool]  # whether a file, by its path within the folder, is of our making


def write(path: Path, content: str | bytes) -> None:
    """Writes a file under a temporary name in the same folder, then gives it its own."""
    _written(path, content, Path.replace)


def create(path: Path, content: str | bytes) -> bool:
    """Writes a file unless it is there: of many who create it one does. Whether that is this one."""
    try:
        _written(path, content, _first)
    except FileExistsError:
        return False
    return True


def stored(path: Path, content: str | bytes) -> None:
    """Writes a file of many; one that cannot be written is refused, and the others are kept."""
    with writable(path, ROOM):
        write(path, content)


def _first(fresh: Path, path: Path) -> None:
    """Gives a file its name, unless there is one of that name; where a disk has no links, if none is seen."""
    try:
        os.link(fresh, path)
    except OSError as error:
        if isinstance(error, FileExistsError) or path.exists():
            raise FileExistsError(path) from error
        fresh.replace(path)


def _written(path: Path, content: str | bytes, named: Callable[[Path, Path], object]) -> None:
    fresh = _beside(path, "new")
    if not path.parent.is_dir():
        raise InputError(f"There is no folder {path.parent}. Create it first: mkdir -p {path.parent}")
    with locked(path.parent):
        sweep(path)
        file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        taken(file, wait=False)
    try:
        complete(file, content.encode() if isinstance(content, str) else content)
        os.fsync(file)
        named(fresh, path)
        settled(path.parent)
    finally:
        released(file)
        fresh.unlink(missing_ok=True)


def complete(file: int, content: bytes) -> None:
    """Writes all of it: one write takes less than that when a disk fills, or when a signal comes."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(file, rest) :]


@contextmanager
def whole(folder: Path, own: Own = lambda path: True) -> Iterator[Path]:  # noqa: ARG005
    """A new folder to fill, which takes the place of `folder` if all goes well and vanishes otherwise.

    Files that are not `own` go with it: they are in the new folder when the old one is gone.
    """
    folder = folder.resolve() if folder.is_symlink() else folder
    fresh = _beside(folder, "new")
    with writable(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with locked(folder.parent):
            sweep(folder)
            fresh.mkdir()
            file = os.open(fresh, os.O_RDONLY)
            taken(file, wait=False)
    try:
        yield fresh
        for path in fresh.rglob("*"):
            settled(path)
        settled(fresh)
        with writable(folder), locked(folder.parent):
            _replace(folder, fresh, own)
    finally:
        released(file)
        rmtree(fresh, ignore_errors=True)


def written_to(path: Path, content: str | bytes) -> None:
    """Writes a file of a folder that is being filled."""
    with writable(path):
        path.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def writable(path: Path, instead: str = "Name a folder that can be.") -> Iterator[None]:
    """Refuses what cannot be written, with what to do instead."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error}. {instead}") from error


def _replace(folder: Path, fresh: Path, own: Own) -> None:
    """Puts the fresh folder into the place of the other, whose files that are not our own it gets first."""
    if not folder.is_dir():
        fresh.replace(folder)
    else:
        for path in _foreign(folder, own):
            if (fresh / path).exists():
                raise InputError(f"{folder / path} is in the way and not of our making. Move it elsewhere.")
            _linked(folder / path, fresh / path)
        old = fresh
        if not exchanged(fresh, folder):
            old = _beside(folder, "old")
            folder.replace(old)
            fresh.replace(folder)
        for path in _foreign(old, own):  # what came meanwhile
            if not (folder / path).exists():
                _linked(old / path, folder / path)
        rmtree(old, ignore_errors=True)
    settled(folder.parent)


def _foreign(folder: Path, own: Own) -> list[Path]:
    """The files in a folder, by their paths within it, that are not our own."""
    every = (path for path in sorted(folder.rglob("*")) if path.is_symlink() or not path.is_dir())
    return [path for path in (each.relative_to(folder) for each in every) if not own(path)]


def _linked(path: Path, place: Path) -> None:
    """The same file in a second place; a copy where a disk has no links."""
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(path, place, follow_symlinks=False)
    except OSError:
        copy2(path, place, follow_symlinks=False)


def exchanged(one: Path, other: Path) -> bool:
    """Whether two folders have changed places, in one step; False where the system cannot do that."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None) if os.name == "posix" else None
    return rename is not None and rename(HERE, os.fsencode(one), HERE, os.fsencode(other), EXCHANGE) == 0


def sweep(path: Path) -> None:
    """Removes what killed writers of this place have left beside it; whoever is at work is let alone.

    A folder that was moved out of the way is put back if nothing has taken its place. Call it with the parent
    locked.
    """
    ours = re.compile(rf"\.{re.escape(path.name)}\.(\d+)-\d+\.(new|old)")
    with suppress(OSError):
        for left in list(path.parent.iterdir()):
            if (name := ours.fullmatch(left.name)) is not None:
                _swept(left, int(name[1]), path)


def _swept(left: Path, process: int, path: Path) -> None:
    with suppress(OSError):
        file = os.open(left, os.O_RDONLY)
        try:
            if not taken(file, wait=False, process=process):
                return
            if not left.is_dir():
                left.unlink()
            elif left.name.endswith(".old") and not path.exists():
                left.replace(path)
            else:
                rmtree(left)
        finally:
            released(file)


def recovered(folder: Path) -> None:
    """Puts a folder back that was moved out of the way when its writer was killed."""
    if not folder.exists():
        with locked(folder.parent):
            sweep(folder)


def settled(path: Path) -> None:
    """Brings a file, or which files are in a folder, to the disk, where that can be asked for."""
    with suppress(OSError):
        file = os.open(path, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)


def _beside(path: Path, state: str) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}-{next(NUMBERS)}.{state}")

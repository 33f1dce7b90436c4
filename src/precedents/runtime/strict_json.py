"""JSON of files that others may have changed: read as it was written, or refused; never a hang or a guess."""

import json
from collections.abc import Sequence
from pathlib import Path
from stat import S_ISREG
from typing import Any, NoReturn

from precedents.errors import FormatError

LARGEST = 2**30  # bytes of a file of JSON


def loads(text: str | bytes) -> Any:
    """The value of a text; a ValueError if it is nested too deep, says a key twice or has what is no number."""
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def text_of(path: Path) -> str:
    """The text of a file; what is no regular file or too large is refused before it is opened."""
    regular(path)
    if path.stat().st_size > LARGEST:
        raise FormatError(f"{path} is larger than any file of ours: {path.stat().st_size} bytes.")
    return path.read_text(encoding="utf-8")


def regular(path: Path) -> Path:
    """The path, if there is a regular file: a pipe would wait for ever, and a device has no end."""
    if path.exists() and not S_ISREG(path.stat().st_mode):
        raise FormatError(f"{path} is no regular file, but a folder, a device or a pipe.")
    return path


def inside(folder: Path, name: str) -> Path:
    """A file of a folder by its name; a name that leads out of the folder is refused."""
    path = folder / name
    if Path(name).name != name or not path.resolve().is_relative_to(folder.resolve()):
        raise FormatError(f"{name!r} is no file of the folder {folder}, but leads out of it.")
    return regular(path)


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("it says a key twice")
    return found


def _no_number(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number of JSON")

"""Records: what a setting's repeats have come to, one line each, only ever appended.

FOLDER/DATASET-MODEL.jsonl begins with a line {"format", "setting", "protocol", "data", "note"}; each other line
is a finished piece of work {"repeat", "piece", "value"}. Several processes may append to one file. A last line
that a kill cut short is cut off at the next start, and its piece is done again. Measured seconds, which are not
the same twice, are in FOLDER/costs.jsonl.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from precedents.errors import FormatError, InputError, StaleError
from precedents.runtime.atomic import write

FORMAT = 1
COSTS = "costs.jsonl"

Piece = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Records:
    """The records of one setting."""

    path: Path
    header: Mapping[str, Any]
    values: dict[tuple[int, Piece], Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, folder: Path, setting: str, header: Mapping[str, Any] | None = None) -> "Records":
        """Those of a setting in the folder. With a header they are begun, or must have been begun with it."""
        path = folder / f"{setting.replace('/', '-')}.jsonl"
        if header is not None:
            header = json.loads(json.dumps({"format": FORMAT, "setting": setting, **header}))
            _begun(path, header)
        found, values = _read(path)
        if header is not None and found != header:
            differing = [name for name in {**header, **found} if found.get(name) != header.get(name)]
            told = ", ".join(f"{name} ({found.get(name)!r}, not {header.get(name)!r})" for name in differing)
            raise StaleError(f"{path} holds records that differ in: {told}. Name another folder by --out.")
        return cls(path, found, values)

    @property
    def setting(self) -> str:
        """Data set and model."""
        return str(self.header["setting"])

    def once(self, repeat: int, piece: Piece, make: Callable[[], Any]) -> Any:
        """The value of a piece, recorded when it is made."""
        key = (repeat, piece)
        if key not in self.values:
            value = _rounded(make())
            append(self.path, {"repeat": repeat, "piece": piece, "value": value})
            self.values[key] = value
        return self.values[key]

    def has(self, repeat: int, piece: Piece) -> bool:
        """Whether the piece is done."""
        return (repeat, piece) in self.values


def every(folder: Path) -> list[Records]:
    """The records of all settings in the folder, by name."""
    if not folder.is_dir():
        raise InputError(
            f"{folder} is no folder. Make records: precedents reproduction run --settings digits/mlp"
        )
    return [Records(path, *_read(path)) for path in sorted(folder.glob("*.jsonl")) if path.name != COSTS]


def costs(folder: Path) -> list[dict[str, Any]]:
    """The measured seconds, if there are any."""
    path = folder / COSTS
    return [_line(line, i, path) for i, line in enumerate(_whole(path), 1)] if path.exists() else []


def append(path: Path, record: Mapping[str, Any]) -> None:
    """One line more, whole, also when several processes append."""
    line = json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode() + b"\n"
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(file, line)  # in one piece
        os.fsync(file)
    finally:
        os.close(file)


def mended(path: Path) -> None:
    """Cuts off a last line without its end; only when nobody appends."""
    if path.exists():
        content = path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            os.truncate(path, whole)


def _begun(path: Path, header: Mapping[str, Any]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path.parent} is no folder and cannot become one: {error}.") from error
    if not path.exists():
        write(path, json.dumps(header, ensure_ascii=False, separators=(",", ":")) + "\n")


def _read(path: Path) -> tuple[dict[str, Any], dict[tuple[int, Piece], Any]]:
    lines = _whole(path)
    header = _line(next(lines, b""), 1, path)
    if header.get("format") != FORMAT or "setting" not in header:
        raise FormatError(f"{path} does not begin as records of format {FORMAT} do. Name another folder.")
    values = {}
    for i, line in enumerate(lines, start=2):
        record = _line(line, i, path)
        try:
            values[int(record["repeat"]), tuple(record["piece"])] = record["value"]
        except (KeyError, TypeError, ValueError):
            raise _damaged(i, path) from None
    return header, values


def _whole(path: Path) -> Iterator[bytes]:
    content = path.read_bytes()
    yield from content[: content.rfind(b"\n") + 1].splitlines()


def _line(line: bytes, i: int, path: Path) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError:
        record = None
    if not isinstance(record, dict):
        raise _damaged(i, path)
    return record


def _damaged(i: int, path: Path) -> FormatError:
    return FormatError(f"Line {i} of {path} is damaged. Delete the line, and its piece is done again.")


def _rounded(value: Any) -> Any:
    """Six digits of every number: records stay small, and rounding of the last digits is not recorded."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, Mapping):
        return {str(key): _rounded(part) for key, part in value.items()}
    return [_rounded(part) for part in value] if isinstance(value, (list, tuple)) else value

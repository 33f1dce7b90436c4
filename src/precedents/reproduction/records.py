"""Records: what a setting's repeats have come to, one line each, only ever appended.

FOLDER/DATASET-MODEL.jsonl begins with a line {"format", "setting", "protocol", "data", "note", "versions"};
each other line is a finished piece of work {"repeat", "piece", "value"}; each ends with its checksum. Records
of format 1, which have neither checksums nor versions, are read and added to as they are. Several processes
may append to one file. A last line that a kill cut short is cut off, and its piece is done again. Measured
seconds, which are not the same twice, are in FOLDER/costs.jsonl.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from precedents._version import __version__
from precedents.errors import FormatError, InputError, StaleError
from precedents.runtime.atomic import write
from precedents.runtime.log import Log

FORMAT, OLDER = 2, 1
KEYS = {"repeat", "piece", "value"}
COSTS = "costs.jsonl"
ADVICE = "Delete the line, and its piece is done again."

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
        path = path_of(folder, setting)
        if header is not None:
            versions = {"precedents": __version__, "torch": version("torch")}
            header = json.loads(
                json.dumps({"format": FORMAT, "setting": setting, **header, "versions": versions})
            )
            _begun(path, header)
        elif not path.exists():
            advice = f"Make some: precedents reproduction run --settings {setting}"
            raise InputError(f"{folder} has no records of {setting}. {advice}")
        found, values = _read(path)
        if header is not None:
            _same(path, found, header)
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
            log(self.path).append({"repeat": repeat, "piece": piece, "value": value})
            self.values[key] = value
        return self.values[key]

    def has(self, repeat: int, piece: Piece) -> bool:
        """Whether the piece is done."""
        return (repeat, piece) in self.values


def path_of(folder: Path, setting: str) -> Path:
    """The file of a setting's records in a folder."""
    return folder / f"{setting.replace('/', '-')}.jsonl"


def every(folder: Path) -> list[Records]:
    """The records of all settings in the folder, by name."""
    if not folder.is_dir():
        raise InputError(
            f"{folder} is no folder. Make records: precedents reproduction run --settings digits/mlp"
        )
    return [Records(path, *_read(path)) for path in sorted(folder.glob("*.jsonl")) if path.name != COSTS]


def costs(folder: Path) -> list[dict[str, Any]]:
    """The measured seconds, if there are any."""
    return list(log(folder / COSTS).read(dict))


def log(path: Path, *, strict: bool = False) -> Log:
    """A file of records or of costs, without spaces; if it is not `strict`, lines may have no checksum."""
    return Log(path, ADVICE, (",", ":"), strict)


def _same(path: Path, found: Mapping[str, Any], header: Mapping[str, Any]) -> None:
    """Refuses records that were begun otherwise; those of an older format do not say by which versions."""
    ignored = {"format", "versions"} if found["format"] == OLDER else set()
    names = [name for name in {**header, **found} if name not in ignored]
    differing = [name for name in names if found.get(name) != header.get(name)]
    if differing:
        told = ", ".join(f"{name} ({found.get(name)!r}, not {header.get(name)!r})" for name in differing)
        raise StaleError(f"{path} holds records that differ in: {told}. Name another folder by --out.")


def _begun(path: Path, header: Mapping[str, Any]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path.parent} is no folder and cannot become one: {error}.") from error
    if not path.exists():
        write(path, log(path).line(header))


def _read(path: Path) -> tuple[dict[str, Any], dict[tuple[int, Piece], Any]]:
    header = next(log(path).read(dict), None)
    if header is None:
        raise log(path).damaged(1)
    if header.get("format") not in (FORMAT, OLDER) or "setting" not in header:
        raise FormatError(f"{path} does not begin as records of format {FORMAT} do. Name another folder.")
    lines = log(path, strict=header["format"] == FORMAT)
    return next(lines.read(dict)), dict(lines.read(_piece, start=2))


def _piece(record: Mapping[str, Any]) -> tuple[tuple[int, Piece], Any]:
    if set(record) != KEYS:
        raise KeyError
    return (int(record["repeat"]), tuple(record["piece"])), record["value"]


def _rounded(value: Any) -> Any:
    """Six digits of every number: records stay small, and rounding of the last digits is not recorded."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, Mapping):
        return {str(key): _rounded(part) for key, part in value.items()}
    return [_rounded(part) for part in value] if isinstance(value, (list, tuple)) else value

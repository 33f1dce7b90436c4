"""Ledger: finished pieces of work in a folder, so that what was killed goes on where it stopped.

manifest.json   what the work is of: a format number, fingerprints, settings; written first
records.jsonl   one line {"piece": [names], "value": anything} for each finished piece, only ever appended

A last line that a kill cut short has no end; it is dropped, and its piece is done again.
"""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from precedents.errors import FormatError, InputError, StaleError

FORMAT = 1
INSTEAD = "Pass another folder as keep, or delete this one."


class Ledger:
    """Values by piece; in memory alone without a folder."""

    def __init__(self, folder: str | Path | None, manifest: Mapping[str, Any]) -> None:
        self.values: dict[tuple[str, ...], Any] = {}
        self.records: Path | None = None
        if folder is not None:
            self.records = _opened(Path(folder), _plain({"format": FORMAT, **manifest}))
            self.values = _read(self.records)

    def once(self, piece: tuple[str, ...], make: Callable[[], Any]) -> Any:
        """The plain value of a piece, recorded when it is made."""
        if piece not in self.values:
            line = json.dumps({"piece": piece, "value": make()}, allow_nan=False)
            if self.records is not None:
                _append(self.records, line)
            self.values[piece] = json.loads(line)["value"]
        return self.values[piece]


def _opened(folder: Path, manifest: Mapping[str, Any]) -> Path:
    """The file of records in a folder with this manifest, which is written if there is none."""
    file, records = folder / "manifest.json", folder / "records.jsonl"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"keep is {folder}, which is no folder and cannot become one: {error}.") from error
    if not file.exists():
        if records.exists():
            raise FormatError(f"{records} has no manifest beside it. {INSTEAD}")
        draft = folder / f"manifest.json.{os.getpid()}"
        draft.write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
        draft.replace(file)
        return records
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        differing = [name for name in {**manifest, **found} if found.get(name) != manifest.get(name)]
    except (ValueError, TypeError, AttributeError):
        raise FormatError(f"{file} is no manifest of an audit. {INSTEAD}") from None
    if differing:
        told = ", ".join(f"{name} ({found.get(name)!r}, not {manifest.get(name)!r})" for name in differing)
        raise StaleError(f"{folder} holds an audit that differs in: {told}. {INSTEAD}")
    return records


def _read(records: Path) -> dict[tuple[str, ...], Any]:
    """The finished pieces; a last line without its end is cut off."""
    if not records.exists():
        return {}
    content = records.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        os.truncate(records, len(whole))
    return dict(_record(line, f"Line {i + 1} of {records}") for i, line in enumerate(whole.splitlines()))


def _record(line: bytes, what: str) -> tuple[tuple[str, ...], Any]:
    try:
        record = json.loads(line)
        return tuple(record["piece"]), record["value"]
    except (ValueError, TypeError, KeyError):
        raise FormatError(f"{what} is damaged. {INSTEAD}") from None


def _append(records: Path, line: str) -> None:
    with records.open("ab") as file:
        file.write(line.encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def _plain(value: Mapping[str, Any]) -> Any:
    return json.loads(json.dumps(value))

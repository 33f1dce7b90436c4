"""Ledger: finished pieces of work in a folder, so that what was killed goes on where it stopped.

manifest.json   what the work is of: a format number, fingerprints, settings; written first
records.jsonl   one line {"piece": [names], "value": anything} for each finished piece, only ever appended

A last line that a kill cut short has no end; it is dropped, and its piece is done again.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from precedents.errors import FormatError, InputError, StaleError
from precedents.runtime.atomic import write
from precedents.runtime.log import Log
from precedents.runtime.strict_json import loads, text_of

FORMAT = 1
INSTEAD = "Pass another folder as keep, or delete this one."


class Ledger:
    """Values by piece; in memory alone without a folder."""

    def __init__(self, folder: str | Path | None, manifest: Mapping[str, Any]) -> None:
        self.values: dict[tuple[str, ...], Any] = {}
        self.log: Log | None = None
        if folder is not None:
            self.log = Log(_opened(Path(folder), _plain({"format": FORMAT, **manifest})), INSTEAD)
            self.log.mend()
            self.values = dict(self.log.read(lambda record: (tuple(record["piece"]), record["value"])))

    def once(self, piece: tuple[str, ...], make: Callable[[], Any]) -> Any:
        """The plain value of a piece, recorded when it is made."""
        if piece not in self.values:
            record = _plain({"piece": piece, "value": make()})
            if self.log is not None:
                self.log.append(record)
            self.values[piece] = record["value"]
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
        write(file, json.dumps(manifest, indent=2) + "\n")
        return records
    try:
        found = loads(text_of(file))
        differing = [name for name in {**manifest, **found} if found.get(name) != manifest.get(name)]
    except (ValueError, TypeError, AttributeError):
        raise FormatError(f"{file} is no manifest of an audit. {INSTEAD}") from None
    if differing:
        told = ", ".join(f"{name} ({found.get(name)!r}, not {manifest.get(name)!r})" for name in differing)
        raise StaleError(f"{folder} holds an audit that differs in: {told}. {INSTEAD}")
    return records


def _plain(value: Mapping[str, Any]) -> Any:
    """As JSON gives it back; what is no number is refused."""
    return json.loads(json.dumps(value, allow_nan=False))

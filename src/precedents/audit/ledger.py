"""Ledger: finished pieces of work in a folder, so that what was killed goes on where it stopped.

behaviour.safetensors  what the model and the functions beside it make of the training set; written first
manifest.json          what the work is of: a format number, fingerprints, settings
records.jsonl          one line {"piece": [names], "value": anything} for each finished piece, only appended

All have checksums. A last line that a kill cut short has no end; it is dropped, and its piece is done again.
What was left out, or failed, is not recorded: other limits, or a repaired part, try again.
One process at a time works in a folder; another one is told.
"""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from precedents.audit.schema import checked_piece
from precedents.classifier.behaviour import Behaviour, differences
from precedents.errors import FormatError, InputError, StaleError, StoreError
from precedents.runtime.atomic import write
from precedents.runtime.locks import released, taken
from precedents.runtime.log import Log
from precedents.runtime.sealed import is_sealed, sealed
from precedents.runtime.strict_json import loads, text_of
from precedents.runtime.tensor_files import TensorFiles

FORMAT = 2
MANIFEST, RECORDS, BEHAVIOUR = "manifest.json", "records.jsonl", "behaviour.safetensors"
LOCK = ".lock"  # who works in the folder has it; it stays there, empty
WITNESS = "behaviour"  # the first word of pieces that are what functions gave
INSTEAD = "Pass another folder as keep, or delete this one."
PASSING = ("left out", "error")  # kinds of reasons that another try may not have


class Ledger:
    """Values by piece; in memory alone without a folder. Close it, or use it by `with`.

    `behaviour` is compared with what was kept of it, within a tolerance: `within`.
    """

    def __init__(
        self,
        folder: str | Path | None,
        manifest: Mapping[str, Any],
        behaviour: Behaviour | None = None,
        within: float = 0.0,
    ) -> None:
        self.values: dict[tuple[str, ...], Any] = {}
        self.log: Log | None = None
        self.within = within
        self._lock: int | None = None
        self.folder = None if folder is None else Path(folder)
        if self.folder is not None:
            self._lock = _entered(self.folder)
            try:
                self._open(self.folder, _plain({"format": FORMAT, **manifest}), behaviour or {})
            except BaseException:
                self.close()
                raise

    def _open(self, folder: Path, manifest: dict[str, Any], behaviour: Behaviour) -> None:
        _begun(folder, manifest, behaviour)
        found = read_manifest(folder)
        files = found.pop("files", {})
        differing = [name for name in {**manifest, **found} if found.get(name) != manifest.get(name)]
        told = [f"{name} ({found.get(name)!r}, not {manifest.get(name)!r})" for name in differing]
        if not told and files:
            told = list(differences(_read(folder, files), behaviour, self.within))
        if told:
            raise StaleError(f"{folder} holds an audit that differs in: {', '.join(told)}. {INSTEAD}")
        self.log = Log(folder / RECORDS, INSTEAD)
        self.log.mend()
        self.values = dict(self.log.read(_piece))

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Lets others into the folder."""
        if self._lock is not None:
            released(self._lock)
            self._lock = None

    def once(self, piece: tuple[str, ...], make: Callable[[], Any]) -> Any:
        """The plain value of a piece, recorded when it is made, unless another try may give another."""
        if piece not in self.values:
            record = _plain({"piece": piece, "value": make()})
            if self.log is not None and not _passing(record["value"]):
                self.log.append(record)
            self.values[piece] = record["value"]
        return self.values[piece]

    def witness(self, name: str, rows: Tensor) -> None:
        """Records what a function of the user gave, or refuses it if it gave something else before."""
        then = self.once((WITNESS, name), rows.tolist)
        if self.log is not None:
            for told in differences({name: rows.new_tensor(then)}, {name: rows}, self.within):
                raise StaleError(f"{self.folder} holds an audit that differs in: what {told} gives. {INSTEAD}")


def _piece(record: Mapping[str, Any]) -> tuple[tuple[str, ...], Any]:
    """The name and the value of a record; what is none is refused."""
    name, value = tuple(record["piece"]), record["value"]
    if not all(isinstance(part, str) for part in name):
        raise TypeError("no name")
    checked_piece(name, value)
    return name, value


def _passing(value: Any) -> bool:
    return isinstance(value, dict) and value.get("kind") in PASSING


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of an audit in a folder; one of another format, or a damaged one, is refused."""
    file = folder / MANIFEST
    try:
        content = text_of(file).encode()
        found = loads(content)
        known = found["format"]
    except (ValueError, TypeError, KeyError):
        raise FormatError(f"{file} is no manifest of an audit. {INSTEAD}") from None
    except OSError as error:
        raise StoreError(f"{file} cannot be read: {error}. {INSTEAD}") from error
    if known != FORMAT:
        raise FormatError(f"{folder} holds an audit of format {known}; this version reads {FORMAT}. {INSTEAD}")
    if not is_sealed(content):
        raise FormatError(f"{file} is damaged: its checksum differs. {INSTEAD}")
    found.pop("checksum")
    return dict(found)


def _entered(folder: Path) -> int:
    """The folder, made if need be, for one process at a time."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise InputError(f"keep is {folder}, which is no folder and cannot become one: {error}.") from error
    if not taken(file, wait=False):
        os.close(file)
        raise StoreError(
            f"Another audit is at work in {folder}. Wait until it ends, or pass another folder as keep."
        )
    return file


def _begun(folder: Path, manifest: Mapping[str, Any], behaviour: Behaviour) -> None:
    """Writes behaviour and manifest, unless there is one."""
    records = folder / RECORDS
    if (folder / MANIFEST).exists():
        return
    if records.exists():
        raise FormatError(f"{records} has no manifest beside it. {INSTEAD}")
    files = TensorFiles(folder)
    try:
        if behaviour:
            files.write(behaviour, BEHAVIOUR)
        write(folder / MANIFEST, sealed(json.dumps({**manifest, "files": files.known}, indent=2)) + "\n")
    except OSError as error:
        raise StoreError(f"{folder} cannot be written: {error}. {INSTEAD}") from error


def _read(folder: Path, files: dict[str, dict[str, Any]]) -> Mapping[str, Tensor]:
    try:
        return TensorFiles(folder, files).read(BEHAVIOUR)
    except FormatError as error:
        raise FormatError(f"{error} {INSTEAD}") from error
    except (KeyError, TypeError) as error:
        raise FormatError(f"{folder / MANIFEST} is damaged: {error!r}. {INSTEAD}") from error


def _plain(value: Mapping[str, Any]) -> Any:
    """As JSON gives it back; what is no number is refused."""
    return json.loads(json.dumps(value, allow_nan=False))

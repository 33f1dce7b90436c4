"""What an explorer keeps in a folder: measures and answers, as long as they are of this model and these data.

explorer.json        what it was made of (fingerprints, behaviour, versions), which file has what, checksums
0000.safetensors ... measures of both sets, then the answers of one metric each, then maps
partial/             a map that is being drawn

What was made of something else is made again, and pages say what differs. One process at a time writes.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from precedents import __version__
from precedents.adapters._subject import Subject
from precedents.classifier.behaviour import behaviour, logits, summarised_alike, summary, tolerance
from precedents.data.examples import Examples
from precedents.errors import FormatError, InputError, NotApplicable, StoreError
from precedents.explorer.guard import refused
from precedents.runtime.atomic import write
from precedents.runtime.locks import released, taken
from precedents.runtime.sealed import is_sealed, sealed
from precedents.runtime.strict_json import loads
from precedents.runtime.tensor_files import TensorFiles

FORMAT = 1
MANIFEST, LOCK = "explorer.json", ".lock"
ALIKE = ("logits", "losses", "vectors", "logits of the cases")  # marks that rounding may change

Marks = Mapping[str, str]


def refuse_file(folder: Path | None, how: str) -> None:
    """Refuses a file where a folder is wanted, before anything is computed; `how` is how one names another."""
    if folder is None:
        return
    taken_by = next((path for path in (folder, *folder.parents) if path.exists() and not path.is_dir()), None)
    if taken_by is not None:
        raise InputError(f"{taken_by} is a file, but answers and tags are kept in a folder. Name one by {how}.")


def marks_of(subject: Subject, test: Examples) -> dict[str, str]:
    """By what kept work knows the model, its functions and both sets, in words."""
    model = subject.classifier
    try:
        found = behaviour(model, subject.train, seen=True)
    except NotApplicable:
        found = behaviour(model, subject.train, seen=False)
    found["logits of the cases"] = logits(model, test)
    return {
        "version of precedents": __version__,
        "version of torch": str(torch.__version__),
        "model": model.fingerprint(),
        "training set": subject.train.fingerprint(),
        "test set": test.fingerprint(),
        "hidden layers": " ".join(map(str, model.taps)),
        "trainable parameters": " ".join(n for n, p in model.module.named_parameters() if p.requires_grad),
        **{name: summary(rows) for name, rows in found.items()},
    }


def differences_of(then: Marks, now: Marks, within: float) -> list[str]:
    """The names of the marks that differ; rounding is no difference."""
    alike = (n for n in ALIKE if n in then and n in now and summarised_alike(then[n], now[n], within))
    same = {*alike, *(name for name in now if then.get(name) == now[name])}
    return [name for name in {**now, **then} if name not in same]


@dataclass
class Store:
    """A folder of kept work; without a folder, or while another process writes there, nothing is kept."""

    folder: Path | None
    marks: Marks
    within: float
    holds: dict[str, str] = field(default_factory=dict)  # by what it is, the file
    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    differing: list[str] = field(default_factory=list)  # what differs from what was kept before
    problem: str = ""  # why something is not kept
    _lock: int | None = field(default=None, repr=False)

    @classmethod
    def open(cls, folder: Path | None, subject: Subject, test: Examples) -> "Store":
        """The kept work of this model and these data, or a new beginning."""
        store = cls(folder, marks_of(subject, test), tolerance(subject.classifier))
        if folder is not None:
            store._enter(folder)
            store._read(folder)
        return store

    def __contains__(self, what: str) -> bool:
        return what in self.holds

    def tensors(self, what: str) -> dict[str, Tensor]:
        """What was kept, mapped from its file."""
        assert self.folder is not None
        return TensorFiles(self.folder, self.files).read(self.holds[what])

    def put(self, what: str, tensors: Mapping[str, Tensor]) -> None:
        """Keeps it; a file counts once the manifest names it. What cannot be kept is in memory alone."""
        folder = self.own
        if folder is None:
            return
        path = folder / f"{len(self.files):04}.safetensors"
        try:
            path.unlink(missing_ok=True)  # others may have it mapped
            self._put(folder, what, tensors)
        except (StoreError, OSError) as error:
            self.files.pop(self.holds.pop(what, path.name), None)
            with suppress(OSError):
                path.unlink(missing_ok=True)
            self._told(error if isinstance(error, StoreError) else StoreError(f"{MANIFEST}: {error}."))

    def _put(self, folder: Path, what: str, tensors: Mapping[str, Tensor]) -> None:
        self.holds[what] = TensorFiles(folder, self.files).write(tensors)
        content = {"format": FORMAT, "marks": self.marks, "holds": self.holds, "files": self.files}
        write(folder / MANIFEST, sealed(json.dumps(content, indent=1)) + "\n")

    def _told(self, error: StoreError) -> None:
        self.problem = (
            f"What is computed cannot be kept, and is computed again at the next start. {refused(error).text}"
        )

    @property
    def own(self) -> Path | None:
        """The folder, if it is ours to write in."""
        return self.folder if self._lock is not None else None

    def close(self) -> None:
        """Lets others write."""
        if self._lock is not None:
            released(self._lock)
            self._lock = None

    def _enter(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            file = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            self._told(StoreError(f"{folder} cannot be written: {error}. Name another folder by --keep."))
            return
        if taken(file, wait=False):
            self._lock = file
        else:
            os.close(file)

    def _read(self, folder: Path) -> None:
        """Takes what is of the same; what is not, or is damaged, is made again."""
        try:
            kept = _manifest(folder / MANIFEST)
        except FileNotFoundError:
            return
        except (FormatError, OSError):
            self.differing = ["the manifest, which is damaged or of another version"]
            return
        self.differing = differences_of(kept["marks"], self.marks, self.within)
        if not self.differing:
            whole = dict(_whole(folder, kept))
            self.holds, self.files = whole, {name: kept["files"][name] for name in whole.values()}


def _whole(folder: Path, kept: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What has a file that is there, unchanged."""
    files = TensorFiles(folder, dict(kept["files"]))
    for what, name in kept["holds"].items():
        try:
            files.read(name)
        except (FormatError, KeyError):
            continue
        yield what, name


def _manifest(path: Path) -> dict[str, Any]:
    content = path.read_bytes()
    try:
        found = loads(content)
        known = found["format"] == FORMAT and is_sealed(content)
        maps = all(isinstance(found[name], dict) for name in ("marks", "holds", "files"))
    except (ValueError, KeyError, TypeError):
        known = maps = False
    if not (known and maps):
        raise FormatError(f"{path} is no manifest of an explorer.")
    return dict(found)

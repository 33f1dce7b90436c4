"""A fitted relevance in a folder, so that a question about a case is answered without fitting it again.

explainer.json     format, version, metric, fingerprints of the model, what is kept, a checksum of each file
train.safetensors  the labels of the training set, and eight bytes for each row that differ when it differs
0000.safetensors   the tensors of one value, or of one block of the training set; and so on

The rule: kept are the fitted inverse and what one question asks for besides (rows or coordinates of the
training set, squared lengths), as far as it is made of tensors and plain values. What these were computed
from is not kept. Blocks are read, and their checksums compared, when the first question comes.
"""

import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from shutil import disk_usage
from typing import Any

import torch
from torch import Tensor

from precedents import __version__
from precedents.classifier.classifier import Classifier
from precedents.data.examples import Examples, fingerprint
from precedents.errors import BudgetError, FormatError, InputError, StaleError, StoreError
from precedents.gradients.rows import Rows
from precedents.metrics.metric import Relevance
from precedents.runtime.atomic import whole
from precedents.runtime.budget import readable
from precedents.runtime.serialize import UnwritableError, read, written
from precedents.runtime.tensor_files import TensorFiles

FORMAT = 1
MANIFEST, TRAIN = "explainer.json", "train.safetensors"
ALIKE = 1e-2  # of its length, within which a vector is the same when it is computed on another machine

Item = Mapping[str, Any]  # a value, and the name of the file with its tensors


@dataclass(frozen=True)
class Manifest:
    """What is in a folder."""

    metric: str
    classes: list[str] | None
    model: str  # the fingerprint of the classifier
    weights: Mapping[str, str]  # a mark of each weight and buffer
    inverse: Item | None
    kept: Sequence[Mapping[str, Any]]  # keys with an item or with blocks, which are items
    files: dict[str, dict[str, Any]]
    version: str = __version__
    format: int = FORMAT


def save(relevance: Relevance, folder: Path, classes: list[str] | None) -> None:
    """Asks one question, about the first training instance, and keeps what it asks for."""
    _checked_place(folder, relevance.disk)
    workspace, inverse = relevance.workspace, relevance.inverse
    workspace.reused(relevance.metric.features)
    with _whole(folder) as fresh:
        known = {id(value): name for name, value in _known(relevance).items()}
        writer = Writer(TensorFiles(fresh), known)
        fitted = writer.item(inverse)
        if fitted is not None:
            known[id(inverse)] = "inverse"
        with workspace.cache.told(writer.note):
            for _ in relevance.kernels(workspace.train.selected([0])):
                pass
        writer.files.write(_marks(workspace.train), TRAIN)
        manifest = Manifest(
            metric=str(relevance.metric),
            classes=classes,
            model=workspace.classifier.fingerprint(),
            weights=_weights(workspace.classifier),
            inverse=fitted,
            kept=list(writer.kept.values()),
            files=writer.files.known,
        )
        (fresh / MANIFEST).write_text(json.dumps(asdict(manifest), indent=1), encoding="utf-8")


@dataclass
class Writer:
    """Writes the values and blocks that it is told of, each to a file of its own."""

    files: TensorFiles
    known: Mapping[int, str]
    kept: dict[Hashable, dict[str, Any]] = field(default_factory=dict)

    def note(self, key: Hashable, value: Any, place: int | None) -> None:
        """What a question asks for: a value, or the block at this place of one."""
        there = self.kept.get(key)
        if place is None and there is not None:
            return
        if place is not None and place != (0 if there is None else len(there["blocks"])):
            return  # it is there, or the first block could not be written
        name = self.item(key)
        item = None if name is None else self.item(value)
        if name is None or item is None:
            return
        if place is None:
            self.kept[key] = {"key": name["value"], "item": item}
        else:
            self.kept.setdefault(key, {"key": name["value"], "blocks": []})["blocks"].append(item)

    def item(self, value: Any) -> Item | None:
        """None if it is not made of tensors and plain values."""
        tensors: dict[str, Tensor] = {}
        try:
            nest = written(value, self.known, tensors)
        except UnwritableError:
            return None
        return {"value": nest, "file": self.files.write(tensors)} if tensors else {"value": nest}


@dataclass(frozen=True)
class Saved:
    """A folder that is read."""

    folder: Path
    manifest: Manifest

    @classmethod
    def open(cls, folder: Path) -> "Saved":
        """Refuses what is not complete, or of another format or version."""
        path = folder / MANIFEST
        if not path.is_file():
            state = "has no saved explainer in it" if folder.is_dir() else "is no folder"
            raise InputError(f"{folder} {state}. Save one there: explainer.save({str(folder)!r})")
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            found = content["format"], content["version"]
        except (ValueError, KeyError, TypeError):
            raise FormatError(f"{path} is no manifest of an explainer. {_again(folder)}") from None
        if found != (FORMAT, __version__):
            raise FormatError(
                f"{folder} has the format {found[0]} of version {found[1]}; this is version {__version__}, "
                f"which reads its own format {FORMAT}. {_again(folder)}"
            )
        with _damage(folder):
            saved = cls(folder, Manifest(**content))
            saved.files.complete()
        return saved

    @property
    def files(self) -> TensorFiles:
        """Its tensors."""
        return TensorFiles(self.folder, self.manifest.files)

    def restore(self, relevance: Relevance) -> None:
        """Gives the relevance what was kept; refuses what was saved of another one."""
        marks = _marks(relevance.workspace.train)
        with _damage(self.folder):
            self._refuse(list(self._differences(relevance, marks)))
            known = _known(relevance)
            if self.manifest.inverse is not None:
                known["inverse"] = self.value(self.manifest.inverse, known)
            for entry in self.manifest.kept:
                key: Any = read(entry["key"], known, {}.__getitem__)  # type: ignore[arg-type]
                blocks = "blocks" in entry
                value = Blocks(self, entry["blocks"], known) if blocks else self.value(entry["item"], known)
                there: Any = relevance.workspace.once(key, lambda value=value: value)  # type: ignore[misc]
                if there is not value and not _alike(there, value):
                    self._refuse(["the features of the first instance, so pass the same hidden and vectorise"])

    def _refuse(self, differences: Sequence[str]) -> None:
        if differences:
            said = "; ".join(differences)
            raise StaleError(f"{self.folder} does not fit, for these differ: {said}. {_again(self.folder)}")

    def _differences(self, relevance: Relevance, marks: Mapping[str, Tensor]) -> Iterator[str]:
        if str(relevance.metric) != self.manifest.metric:
            yield f"the metric ({self.manifest.metric} then, {relevance.metric} now)"
        model, then = relevance.workspace.classifier, self.manifest.weights
        now = _weights(model)
        changed = [name for name in {**then, **now} if then.get(name) != now.get(name)]
        if changed:
            yield f"the weights ({changed[0]}{f' and {len(changed) - 1} more' if changed[1:] else ''})"
        elif self.manifest.model != model.fingerprint():
            yield "the architecture of the model"
        before = self.files.read(TRAIN)
        n, m = len(before["labels"]), len(marks["labels"])
        if n != m:
            yield f"the number of training instances ({n} then, {m} now)"
        else:
            for name in ("labels", "rows"):
                places = (before[name] != marks[name]).reshape(n, -1).any(dim=1).nonzero().flatten().tolist()
                if places:
                    yield f"the {name} of the training set ({len(places)} of {n}, the first at {places[0]})"

    def value(self, item: Item, known: Mapping[str, Any]) -> Any:
        """A value that was written."""
        tensors = self.files.read(item["file"]) if "file" in item else {}
        return read(item["value"], known, tensors.__getitem__)


class Blocks:
    """The blocks of a value, read when they are first asked for; their tensors stay mapped to the files."""

    def __init__(self, saved: Saved, items: Sequence[Item], known: Mapping[str, Any]) -> None:
        self.saved, self.items, self.known = saved, items, known
        self._read: dict[int, Any] = {}

    def __iter__(self) -> Iterator[Any]:
        for place, item in enumerate(self.items):
            if place not in self._read:
                with _damage(self.saved.folder):
                    self._read[place] = self.saved.value(item, self.known)
            yield self._read[place]


def _known(relevance: Relevance) -> dict[str, Any]:
    """What is there on both sides, by name."""
    workspace, metric = relevance.workspace, relevance.metric
    parameters = {f"parameter {name}": p for name, p in workspace.classifier.module.named_parameters()}
    return {
        **parameters,
        "workspace": workspace,
        "features": metric.features,
        "preconditioner": metric.preconditioner,
    }


def _weights(model: Classifier) -> dict[str, str]:
    state = model.module.state_dict().items()
    return {name: fingerprint(value, 0).hex() for name, value in state if isinstance(value, Tensor)}


def _marks(train: Examples) -> dict[str, Tensor]:
    rows = torch.frombuffer(bytearray(b"".join(train.marks())), dtype=torch.uint8).reshape(len(train), -1)
    return {"labels": train.labels, "rows": rows}


def _alike(one: Any, other: Any) -> bool:
    """Whether two vectors are the same but for rounding."""
    if not (isinstance(one, Rows) and isinstance(other, Rows)) or one.width != other.width:
        return False
    left, right = (rows.dense().nan_to_num() for rows in (one, other))
    return bool((left - right).norm() <= ALIKE * left.norm())


def _checked_place(folder: Path, size: int) -> None:
    """Refuses to overwrite what is no saved explainer, and a disk without room."""
    if folder.exists() and not (folder / MANIFEST).is_file() and not _is_empty(folder):
        raise InputError(f"{folder} is there and no saved explainer: it is not overwritten. Name a new folder.")
    there = next(parent for parent in folder.absolute().parents if parent.exists())
    free = disk_usage(there).free
    if size > free:
        raise BudgetError(
            f"Saving to {folder} needs {readable(size)}, but the disk has {readable(free)} left. "
            "Name a folder on another disk."
        )


def _is_empty(folder: Path) -> bool:
    return folder.is_dir() and not any(folder.iterdir())


@contextmanager
def _whole(folder: Path) -> Iterator[Path]:
    """A folder to fill; one that cannot be made is refused."""
    with ExitStack() as stack:
        try:
            fresh = stack.enter_context(whole(folder))
        except OSError as error:
            raise StoreError(f"{folder} cannot be written: {error}. Name a folder that can be.") from error
        yield fresh


@contextmanager
def _damage(folder: Path) -> Iterator[None]:
    """What the manifest lacks, or has and should not have, is a damage."""
    try:
        yield
    except FormatError as error:
        raise FormatError(f"{error} {_again(folder)}") from error
    except (KeyError, TypeError, ValueError, AttributeError, ImportError) as error:
        raise FormatError(f"{folder / MANIFEST} is damaged: {error!r}. {_again(folder)}") from error


def _again(folder: Path) -> str:
    return f"Save it again: Explainer(model, train).save({str(folder)!r})"

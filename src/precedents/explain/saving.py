"""A fitted relevance in a folder, so that a question about a case is answered without fitting it again.

explainer.json     format, version, metric, fingerprints of the model, what is kept, a checksum of each file
train.safetensors  the labels of the training set, and eight bytes for each row that differ when it differs
0000.safetensors   the tensors of one value, or of one block of the training set; and so on

What is kept is declared: the fitted inverse, and its `holdings`, which its kernels read (the vectors of the
training set, or their coordinates), as far as these are made of tensors and plain values. Blocks are read, and
their checksums compared, when the first question comes.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from shutil import disk_usage
from typing import Any

import torch
from torch import Tensor

from precedents._version import __version__
from precedents.classifier.classifier import Classifier
from precedents.data.examples import Examples, fingerprint
from precedents.errors import BudgetError, FormatError, InputError, PrecedentsError, StaleError, StoreError
from precedents.gradients.rows import Rows
from precedents.metrics.relevance import Relevance
from precedents.metrics.vectors import Holding, Vectors
from precedents.runtime.atomic import whole
from precedents.runtime.budget import readable
from precedents.runtime.serialize import UnwritableError, read, written
from precedents.runtime.strict_json import loads, text_of
from precedents.runtime.tensor_files import TensorFiles
from precedents.runtime.users_code import out_of_memory

FORMAT = 2
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
    inverse: Item | None  # none: it is fitted again
    sample: Item | None  # the vector of one instance
    holdings: Mapping[str, Sequence[Item]]  # what questions read of the training set, by the name of its slot
    files: dict[str, dict[str, Any]]
    version: str = __version__
    format: int = FORMAT


def save(relevance: Relevance, folder: Path, classes: Sequence[str] | None) -> None:
    """Keeps the fitted inverse, one vector to know the features by, and what of the training set is read."""
    _checked_place(folder, relevance.disk)
    workspace, inverse, vectors = relevance.workspace, relevance.inverse, relevance.vectors
    with _whole(folder) as fresh:
        files = TensorFiles(fresh)
        known = {id(value): name for name, value in _known(relevance).items()}
        manifest = Manifest(
            metric=str(relevance.metric),
            classes=None if classes is None else list(classes),
            model=workspace.classifier.fingerprint(),
            weights=_weights(workspace.classifier),
            inverse=_item(inverse, known, files),
            sample=_item(_sample(vectors), known, files),
            holdings={each.slot.name: _items(each, known, files) for each in inverse.holdings(vectors)},
            files=files.known,
        )
        files.write(_marks(workspace.train), TRAIN)
        (fresh / MANIFEST).write_text(json.dumps(asdict(manifest), indent=1), encoding="utf-8")


def _items(holding: Holding[Any], known: Mapping[int, str], files: TensorFiles) -> list[Item]:
    """The blocks of a holding, each written as it is read; none if they cannot be written."""
    items = []
    for block in holding.read():
        item = _item(block, known, files)
        if item is None:
            return []
        items.append(item)
    return items


def _item(value: Any, known: Mapping[int, str], files: TensorFiles) -> Item | None:
    """A value as JSON beside a file of its tensors; None if it is not made of tensors and plain values."""
    tensors: dict[str, Tensor] = {}
    try:
        nest = written(value, known, tensors)
    except UnwritableError:
        return None
    return {"value": nest, "file": files.write(tensors)} if tensors else {"value": nest}


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
            content = loads(text_of(path))
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
        marks, cache, vectors = _marks(relevance.workspace.train), relevance.workspace.cache, relevance.vectors
        with _damage(self.folder):
            self._refuse(list(self._differences(relevance, marks)))
            known, manifest = _known(relevance), self.manifest
            if manifest.sample is None or not _alike(_sample(vectors), self.value(manifest.sample, known)):
                self._refuse(["the features of the first instance, so pass the same hidden and vectorise"])
            if manifest.inverse is not None:
                fitted = self.value(manifest.inverse, known)
                cache.put(relevance.slot, fitted)
            for holding in relevance.inverse.holdings(vectors):
                items = manifest.holdings[holding.slot.name]
                if items:
                    cache.put(holding.slot, SavedBlocks(self, items, known))

    def reading(self) -> AbstractContextManager[None]:
        """Around a question: tensors of other shapes than those that were saved are a damage of the folder."""
        return _damage(self.folder)

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


class SavedBlocks(Sequence[Any]):
    """The blocks of a holding, read when they are first asked for; their tensors stay mapped to the files."""

    def __init__(self, saved: Saved, items: Sequence[Item], known: Mapping[str, Any]) -> None:
        self.saved, self.items, self.known = saved, items, known
        self._read: dict[int, Any] = {}

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, place: Any) -> Any:
        if place not in self._read:
            item = self.items[place]  # an IndexError ends an iteration
            with _damage(self.saved.folder):
                self._read[place] = self.saved.value(item, self.known)
        return self._read[place]


def _sample(vectors: Vectors) -> Rows:
    """The vector of one instance, the largest where they differ."""
    train = vectors.workspace.train
    return next(vectors.rows(train.selected(train.largest[:1])))[1]


def _known(relevance: Relevance) -> dict[str, Any]:
    """What is there on both sides, by name."""
    workspace = relevance.workspace
    parameters = {f"parameter {name}": p for name, p in workspace.classifier.module.named_parameters()}
    return {**parameters, "workspace": workspace}


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
        if _again(folder) in str(error):
            raise
        raise FormatError(f"{error} {_again(folder)}") from error
    except PrecedentsError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, ImportError, IndexError, RuntimeError) as error:
        if out_of_memory(error):
            raise
        raise FormatError(f"{folder / MANIFEST} is damaged: {error!r}. {_again(folder)}") from error


def _again(folder: Path) -> str:
    return f"Save it again: Explainer(model, train).save({str(folder)!r})"

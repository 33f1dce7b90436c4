"""A fitted relevance in a folder, so that a question about a case is answered without fitting it again.

explainer.json     format, versions, metric, fingerprints of the model, what is kept, checksums of all files
train.safetensors  the labels of the training set, eight bytes for each row that differ when it differs, and
                   what the model, its loss and its vectors make of it
0000.safetensors   the tensors of one value, or of one block of the training set; and so on

What is kept is declared: the fitted inverse, and its `holdings`, which its kernels read (the vectors of the
training set, or their coordinates), as far as these are made of tensors and plain values. All files are mapped
when the folder is opened, so that another saver may replace it meanwhile; blocks are read, and their checksums
compared, when the first question comes.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from shutil import disk_usage
from typing import Any

import torch
from torch import Tensor

from precedents.adapters._subject import Subject
from precedents.classifier.behaviour import Behaviour, behaviour, differences, tolerance
from precedents.classifier.classifier import Classifier
from precedents.data.examples import Examples, fingerprint
from precedents.errors import BudgetError, InputError, StaleError, StoreError
from precedents.explain.manifest import (
    MANIFEST,
    TRAIN,
    Item,
    Manifest,
    again,
    damage,
    identity,
    manifest_of,
    own_files,
)
from precedents.gradients.rows import Rows
from precedents.index.recall import Recall
from precedents.metrics.features.inputs import inputs
from precedents.metrics.preconditioners.hessian import CURVATURE
from precedents.metrics.relevance import Relevance
from precedents.metrics.vectors import Holding, Vectors
from precedents.runtime.atomic import recovered, whole, written_to
from precedents.runtime.sealed import sealed
from precedents.runtime.serialize import UnwritableError, read, written
from precedents.runtime.tensor_files import TensorFiles
from precedents.runtime.wording import readable

ALIKE = 30  # tolerances of logits, of its length, within which a vector is the same on another machine
TRIES = 5  # readings of a folder that others replace meanwhile


def save(relevance: Relevance, folder: Path, subject: Subject) -> None:
    """Keeps the fitted inverse, one vector to know the features by, and what of the training set is read.

    That are whole vectors where they are kept in memory too, and else their codes, where there can be any.
    """
    workspace, inverse, vectors, recall = (
        relevance.workspace,
        relevance.inverse,
        relevance.vectors,
        Recall(relevance),
    )
    _checked_place(folder, recall.disk)
    holdings = [recall.holding] if recall.wanted else inverse.holdings(vectors)
    workspace.train.unchanged(whole=True)
    with whole(folder, own_files(folder)) as fresh:
        files = TensorFiles(fresh)
        known = {id(value): name for name, value in _known(relevance).items()}
        manifest = Manifest(
            metric=str(relevance.metric),
            classes=None if subject.classes is None else list(subject.classes),
            model=workspace.classifier.fingerprint(),
            weights=_weights(workspace.classifier),
            inverse=_item(inverse, known, files),
            sample=_item(_sample(vectors), known, files),
            holdings={each.slot.name: _items(each, known, files) for each in holdings},
            files=files.known,
            curvature=workspace.cache.get(CURVATURE),
            ids=None if subject.train.ids is None else list(subject.train.ids),
        )
        files.write(_marks(workspace.train) | _behaviour(relevance), TRAIN)
        workspace.train.unchanged(whole=True)
        written_to(fresh / MANIFEST, sealed(json.dumps(asdict(manifest), indent=1)) + "\n")


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
        """Refuses what is not complete, or of another format or version; one that is replaced is read again."""
        recovered(folder)
        for left in reversed(range(TRIES)):
            before = identity(folder)
            try:
                saved = cls(folder, manifest_of(folder))
                with damage(folder):
                    saved.files.open()
            except (StoreError, InputError):
                if left and identity(folder) != before:
                    continue
                raise
            if identity(folder) == before:
                return saved
        raise StoreError(f"{folder} is being replaced again and again by others. Load it when they are done.")

    @cached_property
    def files(self) -> TensorFiles:
        """Its tensors."""
        return TensorFiles(self.folder, self.manifest.files)

    def restore(self, relevance: Relevance) -> None:
        """Gives the relevance what was kept; refuses what was saved of another one."""
        marks, cache, vectors = _marks(relevance.workspace.train), relevance.workspace.cache, relevance.vectors
        with damage(self.folder):
            self._refuse(list(self._differences(relevance, marks)))
            known, manifest = _known(relevance), self.manifest
            self._refuse(list(self._otherwise(relevance, known)))
            if manifest.curvature is not None:
                cache.put(CURVATURE, manifest.curvature)
            if manifest.inverse is not None:
                fitted = self.value(manifest.inverse, known)
                cache.put(relevance.slot, fitted)
            holdings = {each.slot.name: each.slot for each in relevance.inverse.holdings(vectors)}
            codes = Recall(relevance).holding.slot
            for name in [codes.name] if codes.name in manifest.holdings else holdings:
                if items := manifest.holdings[name]:
                    cache.put({codes.name: codes, **holdings}[name], SavedBlocks(self, items, known))

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Around a question: files that were cut, and tensors of other shapes, are a damage of the folder."""
        with damage(self.folder):
            for name in self.files.mapped:
                self.files.whole(name)
            yield

    def _refuse(self, differences: Sequence[str]) -> None:
        if differences:
            said = "; ".join(differences)
            raise StaleError(f"{self.folder} does not fit, for these differ: {said}. {again(self.folder)}")

    def _differences(self, relevance: Relevance, marks: Mapping[str, Tensor]) -> Iterator[str]:
        for name, then, now in (
            ("metric", self.manifest.metric, str(relevance.metric)),
            ("version of torch", self.manifest.torch, str(torch.__version__)),
        ):
            if then != now:
                yield f"the {name} ({then} then, {now} now)"
        model, kept = relevance.workspace.classifier, self.manifest.weights
        found = _weights(model)
        changed = [name for name in {**kept, **found} if kept.get(name) != found.get(name)]
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

    def _otherwise(self, relevance: Relevance, known: Mapping[str, Any]) -> Iterator[str]:
        """What behaves otherwise, the first of it: the rest follows from that."""
        within = tolerance(relevance.workspace.classifier)
        then, now = self.files.read(TRAIN), _behaviour(relevance)
        unlike = [*differences({name: then[name] for name in ("logits", "losses")}, now, within)]
        one = None if self.manifest.sample is None else self.value(self.manifest.sample, known)
        if not unlike and not _alike(_sample(relevance.vectors), one, ALIKE * within):
            unlike = ["the features of the first instance, so pass the same hidden and vectorise"]
        yield from unlike or differences({name: then[name] for name in now}, now, within)

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
            with damage(self.saved.folder):
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


def _behaviour(relevance: Relevance) -> Behaviour:
    """What the model, its loss and, where they are compared, its vectors of inputs make of the training set."""
    workspace = relevance.workspace
    return behaviour(workspace.classifier, workspace.train, seen=relevance.metric.features is inputs)


def _alike(one: Any, other: Any, within: float) -> bool:
    """Whether two vectors are the same but for rounding."""
    if not (isinstance(one, Rows) and isinstance(other, Rows)) or one.width != other.width:
        return False
    left, right = (rows.dense().nan_to_num() for rows in (one, other))
    return bool((left - right).norm() <= within * left.norm())


def _checked_place(folder: Path, size: int) -> None:
    """Refuses to overwrite what is no saved explainer, and a disk without room."""
    empty = folder.is_dir() and not any(folder.iterdir())
    if folder.exists() and not (folder / MANIFEST).is_file() and not empty:
        raise InputError(f"{folder} is there and no saved explainer: it is not overwritten. Name a new folder.")
    there = next(parent for parent in folder.absolute().parents if parent.exists())
    free = disk_usage(there).free
    if size > free:
        raise BudgetError(
            f"Saving to {folder} needs {readable(size)}, but the disk has {readable(free)} left. "
            "Name a folder on another disk."
        )

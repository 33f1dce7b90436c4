"""A fitted relevance in a folder, so that a question about a case is answered without fitting it again.

What is kept are codes where whole vectors are large: then the folder is an index (`index/contents.py`). Else:

index.json         format, versions, metric, fingerprints of the model, what is kept, checksums of all files
train.safetensors  the labels of the training set, eight bytes for each row that differ when it differs, and
                   what the model, its loss and its vectors make of it
0000.safetensors   the tensors of one value, or of one block of the training set; and so on

What is kept is declared: the fitted inverse, and its `holdings`, which its kernels read (the vectors of the
training set, or their coordinates), as far as these are made of tensors and plain values. All files are mapped
when the folder is opened, so that another saver may replace it meanwhile; blocks are read, and their checksums
compared, when the first question comes.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from shutil import disk_usage
from typing import Any, TypeVar

from torch import Tensor

from precedents.adapters._subject import Subject
from precedents.classifier.behaviour import Behaviour, behaviour, differences, tolerance
from precedents.data.examples import Examples
from precedents.errors import BudgetError, InputError, StaleError, StoreError
from precedents.explain.manifest import (
    BEFORE,
    MANIFEST,
    TRAIN,
    Item,
    Manifest,
    again,
    damage,
    identity,
    kind_of,
    manifest_of,
    own_files,
)
from precedents.index.build import saved_codes
from precedents.index.contents import KIND, IndexFolder, named
from precedents.index.origin import Origin, or_made_by, other_features, other_rows, row_marks
from precedents.index.plan import PLAN, vectors_of_few
from precedents.index.recall import Recall
from precedents.metrics.features.inputs import inputs
from precedents.metrics.metric import Metric
from precedents.metrics.preconditioners.hessian import CURVATURE
from precedents.metrics.relevance import Relevance
from precedents.metrics.vectors import Holding
from precedents.runtime.atomic import recovered, whole, written_to
from precedents.runtime.sealed import sealed
from precedents.runtime.serialize import UnwritableError, read, written
from precedents.runtime.tensor_files import TensorFiles
from precedents.runtime.wording import readable

T = TypeVar("T")

TRIES = 5  # readings of a folder that others replace meanwhile


def save(relevance: Relevance, folder: Path, subject: Subject) -> None:
    """Keeps the fitted inverse, a few vectors' marks to know the features by, and what is read of all rows.

    That are whole vectors where they are kept in memory too, and else their codes, where there can be any.
    """
    workspace, inverse, vectors, recall = (
        relevance.workspace,
        relevance.inverse,
        relevance.vectors,
        Recall(relevance),
    )
    _checked_text(relevance.metric)
    _checked_place(folder, recall.disk)
    workspace.train.unchanged(whole=True)
    if recall.wanted:
        with whole(folder, own_files(folder)) as fresh:
            saved_codes(recall, fresh)
            workspace.train.unchanged(whole=True)
        return
    holdings = inverse.holdings(vectors)
    with whole(folder, own_files(folder)) as fresh:
        files = TensorFiles(fresh)
        known = {id(value): name for name, value in _known(relevance).items()}
        manifest = Manifest(
            metric=str(relevance.metric),
            classes=None if subject.classes is None else list(subject.classes),
            origin=Origin.of(relevance),
            inverse=_item(inverse, known, files),
            vectors=vectors_of_few(relevance, range(len(workspace.train))),
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


def opened(folder: Path) -> "Saved | SavedCodes":
    """What was saved; refuses what is not complete, or of another format or version."""
    recovered(folder)
    return settled(folder, lambda: _opened(folder))


def _opened(folder: Path) -> "Saved | SavedCodes":
    if (folder / PLAN).is_file() or kind_of(folder) == KIND:
        return SavedCodes(folder, IndexFolder.open(folder))
    saved = Saved(folder, manifest_of(folder))
    with damage(folder):
        saved.files.open()
    return saved


def settled(folder: Path, reading: Callable[[], T]) -> T:
    """What is read of a folder; one that is replaced meanwhile is read again."""
    for left in reversed(range(TRIES)):
        before = identity(folder)
        try:
            found = reading()
        except (StoreError, InputError):
            if left and identity(folder) != before:
                continue
            raise
        if identity(folder) == before:
            return found
    raise StoreError(f"{folder} is being replaced again and again by others. Load it when they are done.")


@dataclass(frozen=True)
class SavedCodes:
    """An index of codes that is read."""

    folder: Path
    index: IndexFolder

    @property
    def metric(self) -> str:
        """Of the explainer that was saved, or that the index was built for."""
        return self.index.plans[0].metric

    def named(self, subject: Subject) -> Subject:
        """The subject with the names that were saved, where it has none."""
        return named(subject, self.index.contents.classes, self.index.contents.ids)

    def restore(self, relevance: Relevance) -> None:
        """Gives the relevance its codes; refuses what was made of another one."""
        settled(self.folder, lambda: IndexFolder.open(self.folder).restore(relevance))

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Around a question: the codes are in memory."""
        yield


@dataclass(frozen=True)
class Saved:
    """A folder of whole vectors that is read."""

    folder: Path
    manifest: Manifest

    @property
    def metric(self) -> str:
        """Of the explainer that was saved."""
        return self.manifest.metric

    def named(self, subject: Subject) -> Subject:
        """The subject with the names that were saved, where it has none."""
        return named(subject, self.manifest.classes, self.manifest.ids)

    @cached_property
    def files(self) -> TensorFiles:
        """Its tensors."""
        return TensorFiles(self.folder, self.manifest.files)

    def restore(self, relevance: Relevance) -> None:
        """Gives the relevance what was kept; refuses what was saved of another one."""
        marks, cache, vectors = _marks(relevance.workspace.train), relevance.workspace.cache, relevance.vectors
        with damage(self.folder):
            self._refuse(list(self._differences(relevance, marks)))
            self._refuse(list(self._otherwise(relevance)))
            known, manifest = _known(relevance), self.manifest
            if manifest.curvature is not None:
                cache.put(CURVATURE, manifest.curvature)
            if manifest.inverse is not None:
                fitted = self.value(manifest.inverse, known)
                cache.put(relevance.slot, fitted)
            for each in relevance.inverse.holdings(vectors):
                if items := manifest.holdings[each.slot.name]:
                    cache.put(each.slot, SavedBlocks(self, items, known))

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
        yield from self.manifest.origin.differences(Origin.of(relevance))
        yield from other_rows(self.files.read(TRAIN), marks, or_made_by(relevance))

    def _otherwise(self, relevance: Relevance) -> Iterator[str]:
        """What behaves otherwise, the first of it: the rest follows from that."""
        within = tolerance(relevance.workspace.classifier)
        then, now = self.files.read(TRAIN), _behaviour(relevance)
        unlike = [*differences({name: then[name] for name in ("logits", "losses")}, now, within)]
        unlike = unlike or other_features(self.manifest.vectors, relevance, within)
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


def _known(relevance: Relevance) -> dict[str, Any]:
    """What is there on both sides, by name."""
    workspace = relevance.workspace
    parameters = {f"parameter {name}": p for name, p in workspace.classifier.module.named_parameters()}
    return {**parameters, "workspace": workspace}


def _marks(train: Examples) -> dict[str, Tensor]:
    return {"labels": train.labels, "rows": row_marks(train, range(len(train)))}


def _behaviour(relevance: Relevance) -> Behaviour:
    """What the model, its loss and, where they are compared, its vectors of inputs make of the training set."""
    workspace = relevance.workspace
    return behaviour(workspace.classifier, workspace.train, seen=relevance.metric.features is inputs)


def _checked_text(metric: Metric) -> None:
    """Refuses a metric whose text means another one; where it means none, the metric is passed to `load`."""
    try:
        same = Metric.read(str(metric)) == metric
    except InputError:
        return
    if not same:
        raise InputError(
            f"{metric} cannot be saved: its text is that of a metric of the package, which would be read in "
            "its place. Give your own function or class another name."
        )


def _checked_place(folder: Path, size: int) -> None:
    """Refuses to overwrite what is no saved explainer, and a disk without room."""
    empty = folder.is_dir() and not any(folder.iterdir())
    if folder.exists() and not any((folder / name).is_file() for name in (MANIFEST, *BEFORE)) and not empty:
        raise InputError(f"{folder} is there and no saved explainer: it is not overwritten. Name a new folder.")
    there = next(parent for parent in folder.absolute().parents if parent.exists())
    free = disk_usage(there).free
    if size > free:
        raise BudgetError(
            f"Saving to {folder} needs {readable(size)}, but the disk has {readable(free)} left. "
            "Name a folder on another disk."
        )

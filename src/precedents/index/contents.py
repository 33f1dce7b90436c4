"""The contents of an index: read whole, compared with the model and the training set of today, or refused.

index.json is written last: which plans are done, and the list of rows that were removed since.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from shlex import quote
from typing import Any

import torch
from torch import Tensor

from precedents._version import __version__
from precedents.adapters._subject import Subject
from precedents.classifier.behaviour import Behaviour, behaviour, differences, tolerance
from precedents.data.examples import Examples
from precedents.errors import FormatError, InputError, StoreError
from precedents.index.basis import BASIS, CodeBasis
from precedents.index.codes import Codes
from precedents.index.origin import Origin, or_made_by, other_rows, row_marks
from precedents.index.plan import (
    PLAN,
    IndexPlan,
    Write,
    again,
    build_of,
    number_of,
    otherwise,
    refuse,
    refuse_grown,
)
from precedents.index.recall import CODE, Recall
from precedents.index.shards import CODES, is_whole, read_plans, read_shard, shard_path
from precedents.metrics.metric import Metric
from precedents.metrics.relevance import Relevance
from precedents.metrics.workspace import Workspace
from precedents.runtime.advice import typed
from precedents.runtime.atomic import stored
from precedents.runtime.progress import tracked
from precedents.runtime.sealed import sealed, unsealed
from precedents.runtime.strict_json import loads, text_of

INDEX = "index.json"
FORMAT = 5  # of index.json, of whole vectors and of codes
KIND = "codes"


@dataclass(frozen=True)
class Contents:
    """What index.json says of an index of codes."""

    plans: Sequence[str]  # their hashes
    removed: Sequence[int] = ()  # places, as they were when nothing was removed
    classes: Sequence[str] | None = None
    ids: Sequence[str | int] | None = None  # what the training instances are called
    behaviour: Mapping[str, Any] | None = None  # if any were removed, what the model makes of a few others
    kind: str = KIND
    version: str = __version__
    format: int = FORMAT

    def write(self, folder: Path, by: Write = stored) -> None:
        """Whole or not at all."""
        by(folder / INDEX, sealed(json.dumps(asdict(self), indent=1)) + "\n")

    @classmethod
    def read(cls, folder: Path) -> "Contents":
        """What was written; a folder that is not complete is refused, with what is missing."""
        path = folder / INDEX
        if not path.is_file():
            raise InputError(_incomplete(folder))
        try:
            content = unsealed(text_of(path).encode())
            if content is None:
                raise ValueError("it has no checksum")
            values = loads(content)
            if (values["format"], values["version"]) != (FORMAT, __version__):
                raise FormatError(
                    f"{folder} has the format {values['format']} of version {values['version']}; this is "
                    f"version {__version__}, which reads its own format {FORMAT}. {again(folder)}"
                )
            if values["kind"] != KIND:
                raise InputError(
                    f"{folder} holds whole vectors, and no codes. They answer by {_asked(folder)}."
                )
            return cls(**values)
        except OSError as error:
            raise StoreError(f"{path} cannot be read: {error}.") from error
        except (ValueError, KeyError, TypeError) as error:
            if isinstance(error, (FormatError, InputError)):
                raise
            raise FormatError(f"{path} is damaged: {error}. {again(folder)}") from None


def _incomplete(folder: Path) -> str:
    """What a folder without index.json lacks."""
    if not (folder / PLAN).is_file():
        state = "has no index in it" if folder.is_dir() else "is no folder"
        return f"{folder} {state}. Build one: {build_of(folder)}"
    plans = read_plans(folder)
    count = sum(len(plan.shards) for plan in plans)
    there = sum(shard_path(folder, number).is_file() for number in range(count))
    return (
        f"The index in {folder} is not complete: {there} of {count} shards are there. It goes on by "
        f"{build_of(folder)}, with the model and the training set that it was begun with."
    )


@dataclass(frozen=True)
class State:
    """How far an index is."""

    compares: str  # its features and preconditioner
    rows: int
    removed: int
    shards: int
    made: int  # of the shards, those that are there and whole
    complete: bool
    bytes: int

    def __str__(self) -> str:
        gone = f" ({self.removed:,} removed)" if self.removed else ""
        shards = f"{self.shards} shard{'s' if self.shards > 1 else ''}"
        state = "complete" if self.complete else f"{self.made} of them made"
        return f"index of {self.compares}: {self.rows:,} rows{gone} in {shards}, {state}"

    def to_dict(self) -> dict[str, object]:
        """All of it as plain values."""
        return asdict(self)


def state(folder: Path) -> State:
    """How far the index of a folder is; every shard is read."""
    if not (folder / PLAN).is_file():
        raise InputError(_incomplete(folder))
    plans = read_plans(folder)
    contents = Contents.read(folder) if (folder / INDEX).is_file() else None
    count = sum(len(plan.shards) for plan in plans)
    made = sum(is_whole(folder, plans, number) for number in range(count))
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    complete = contents is not None and len(contents.plans) == len(plans) and made == count
    removed = 0 if contents is None else len(contents.removed)
    return State(plans[0].origin.compares, plans[-1].places.stop, removed, count, made, complete, size)


@dataclass(frozen=True, eq=False)
class IndexFolder:
    """A complete index of codes."""

    folder: Path
    contents: Contents
    plans: Sequence[IndexPlan]

    @classmethod
    def open(cls, folder: Path) -> "IndexFolder":
        """Refuses what is not complete, or damaged."""
        contents = Contents.read(folder)
        plans = read_plans(folder)[: len(contents.plans)]
        if [plan.hash for plan in plans] != list(contents.plans):
            raise FormatError(f"{folder / INDEX} is of another plan than {folder / PLAN}. {again(folder)}")
        return cls(folder, contents, plans)

    @property
    def total(self) -> int:
        """Of all rows that were ever coded."""
        return self.plans[-1].places.stop

    @cached_property
    def kept(self) -> Tensor:
        """The places [n] of the rows that were not removed."""
        mask = torch.ones(self.total, dtype=torch.bool)
        mask[list(self.contents.removed)] = False
        return mask.nonzero().flatten()

    def named(self, relevance: Relevance) -> Relevance:
        """The same with the names that were saved, where it has none; refuses a set of another size."""
        workspace = relevance.workspace
        self._refuse_number(len(workspace.train))
        subject = named(workspace.subject, self.contents.classes, self.contents.ids)
        return Relevance(relevance.metric, Workspace(subject))

    def restore(self, relevance: Relevance) -> None:
        """Gives the relevance its codes, if it is of the same model, training set and metric."""
        first, train = self.plans[0], relevance.workspace.train
        refuse(list(first.origin.differences(Origin.of(relevance))), self.folder)
        recall, n = Recall(relevance), len(train)
        self._refuse_number(n)
        need = CODE * self.total
        more = more_memory(first.memory + need)
        relevance.workspace.classifier.budget.required(need, "A question to the index", more)
        known, codes = self._read()
        now = {"labels": train.labels, "rows": row_marks(train, range(n))}
        then = {name: known[name][self.kept] for name in now}
        refuse(list(other_rows(then, now, or_made_by(relevance))), self.folder)
        refuse(list(self._otherwise(relevance, known)), self.folder)
        basis = CodeBasis.read(self.folder / BASIS, first, relevance)
        recall.keep(basis.coder, codes)

    def _refuse_number(self, n: int) -> None:
        """Refuses a training set of another size, with what makes it fit."""
        gone = len(self.contents.removed)
        found = [] if n == len(self.kept) else [number_of(len(self.kept), n)]
        if gone and n == self.total:
            told = f"{gone} of its instances were removed: pass the training set without them, in its order."
            refuse(found, self.folder, told)
        refuse_grown(len(self.kept), n, self.folder)
        refuse(found, self.folder)

    def _read(self) -> tuple[dict[str, Tensor], Codes]:
        """What is known of all rows, and the codes of those that were not removed."""
        known: dict[str, list[Tensor]] = {}
        room: Codes | None = None
        shards = [shard for plan in self.plans for shard in plan.shards]
        for number, shard in enumerate(tracked(shards, "shards of the index")):
            found = read_shard(self.folder, self.plans, number)
            codes = Codes(*(found.pop(name) for name in CODES))
            room = codes.room(len(self.kept)) if room is None else room
            start, stop = torch.searchsorted(self.kept, torch.tensor([shard.start, shard.stop])).tolist()
            here = self.kept[start:stop] - shard.start
            room.put(slice(start, stop), codes if len(here) == len(codes) else codes.some(here))
            found["seen"] = found["seen"] + shard.start
            for name, value in found.items():
                known.setdefault(name, []).append(value)
        assert room is not None
        return {name: torch.cat(values) for name, values in known.items()}, room

    def _otherwise(self, relevance: Relevance, known: Mapping[str, Tensor]) -> Iterator[str]:
        """In words what the model makes otherwise of the rows by which it is known, as far as they are left."""
        place = torch.full((self.total,), -1)
        place[self.kept] = torch.arange(len(self.kept))
        now = place[known["seen"]]
        there, model = now >= 0, relevance.workspace.classifier
        told = list[str]()
        if there.any():
            found = _logits(relevance, now[there].tolist())
            then = {name: known[name][there] for name in found}
            told = [each.partition(" (")[0] for each in differences(then, found, tolerance(model))]
        yield from told or otherwise(self.contents.behaviour or self.plans[0].behaviour, relevance)


def more_memory(count: int) -> str:
    """How an index is asked that needs so many bytes."""
    memory = f"{-(-count // 10**6)} MB"
    return typed(
        f"Allow more where it is loaded or opened: memory={memory!r}.",
        f"Allow more where it is asked: --memory {quote(memory)}.",
    )


def read_metric(text: str) -> Metric:
    """The metric of what is read, if its parts are in files of the package; else it must be passed."""
    try:
        return Metric.read(text)
    except InputError as error:
        raise InputError(
            f"The metric that was saved, {text}, has a part that no text names: {error} Pass the metric again: "
            "metric=...."
        ) from None


def named(subject: Subject, classes: Sequence[str] | None, ids: Sequence[str | int] | None) -> Subject:
    """The subject with the names that were saved, where it has none."""
    found = replace(subject, classes=classes) if subject.classes is None else subject
    if found.train.ids is None and ids is not None:
        found = replace(found, train=replace(found.train, ids=ids))
    return found


def _logits(relevance: Relevance, places: Sequence[int]) -> Behaviour:
    """Of some rows."""
    train: Examples = relevance.workspace.train
    return behaviour(relevance.workspace.classifier, train.selected(places), seen=False)


def _asked(folder: Path) -> str:
    """How a question is asked of a folder."""
    return typed(
        f"Explainer.load({str(folder)!r}, model, train)",
        f"precedents explain {{of}} --index {quote(str(folder))} --case 0",
    )

"""Building an index: a plan, a basis and shards, by one process or by many, on one machine or on several."""

import os
import re
import warnings
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from secrets import token_hex
from shlex import quote
from shutil import disk_usage
from typing import Any

import torch

from precedents.adapters._columns import Columns
from precedents.adapters._subject import Subject
from precedents.classifier.classifier import Classifier
from precedents.errors import BudgetError, InputError
from precedents.index.basis import BASIS, CodeBasis, basis_mark
from precedents.index.contents import INDEX, Contents, more_memory
from precedents.index.plan import PLAN, ROWS, IndexPlan, number_of, refuse, refuse_grown, threads
from precedents.index.recall import CODE, LEAST, Recall
from precedents.index.shards import FOLDER, WORKSHOPS, Maker, Workshop, opened, read_plans, shard
from precedents.index.suited import refusal
from precedents.metrics.metric import Metric
from precedents.metrics.paper import metric as metric_of
from precedents.metrics.preconditioners.hessian import CURVATURE
from precedents.metrics.relevance import Relevance
from precedents.metrics.workspace import Workspace
from precedents.runtime.advice import typed
from precedents.runtime.atomic import create, sweep, writable, written_to
from precedents.runtime.budget import Budget
from precedents.runtime.engines._engine import Engine
from precedents.runtime.engines._find import engine_of
from precedents.runtime.engines._share import Share
from precedents.runtime.locks import locked
from precedents.runtime.progress import tracked
from precedents.runtime.wording import readable

NAMED = ("text", "image", "labels", "ids")  # columns
LEFT = re.compile(r"\.(.+)\.\d+-\d+\.new")  # how a file is called while it is written
UNASKED_BYTES = 2**32  # bytes that a build uses at most, if nothing is said


@dataclass(frozen=True, eq=False)
class Given:
    """What a user passed, of which another process makes the same again."""

    model: Any
    train: Any
    metric: str | Metric
    options: Mapping[str, Any] = field(default_factory=dict)  # of an Explainer

    def __call__(self, memory: int | str) -> Relevance:
        """The metric for the model and the training set, not fitted yet."""
        named = [self.options.get(name) for name in NAMED]
        columns = None if all(each is None for each in named) else Columns.of(*named)
        told = {name: value for name, value in self.options.items() if name not in NAMED}
        if not isinstance(self.model, Classifier):  # which has its own budget already
            told["memory"] = memory
        subject = Subject.of(self.model, self.train, columns=columns, **told)
        return Relevance(metric_of(self.metric), Workspace(subject))


@dataclass(frozen=True, eq=False)
class Building:
    """A folder that becomes an index."""

    folder: Path
    made: Maker
    memory: int | str | None = None
    rows: int | None = None  # of a shard, and
    threads: int = field(default_factory=torch.get_num_threads)  # of a process; if it is not planned yet
    sharers: int = 1  # processes of this machine that share what is free

    def prepared(self) -> Workshop:
        """The workshop, with a plan: the one that is there, or a new one."""
        _checked_place(self.folder)
        relevance = None if (self.folder / PLAN).is_file() else self._plan()
        plans = read_plans(self.folder)
        self._refuse_settings(plans[0])
        workshop = opened(self.folder, plans, self.made, relevance)
        _refuse_similarity(workshop)
        n = len(workshop.relevance.workspace.train)
        refuse_grown(plans[-1].places.stop, n, self.folder)
        if plans[1:]:
            _refuse_without_added(plans[-1], n, self.folder)
        return workshop

    def _refuse_settings(self, plan: IndexPlan) -> None:
        """Refuses settings that are not those of the plan."""
        refuse_less(self.memory, plan, self.folder)
        planned = len(plan.shards[0].places)
        if self.rows is not None and min(self.rows, plan.places.stop) != planned:
            raise InputError(
                f"{self.folder} was planned with {planned:,} rows in a shard, not {self.rows:,}. Leave "
                f"{typed('rows', '--rows')} out to go on with those, or build elsewhere."
            )

    def _plan(self) -> Relevance | None:
        """Writes a new plan; what it is of, unless another process was first, whose plan holds."""
        memory = Budget.of(self.memory).bytes if self.memory is not None else unasked(self.sharers)
        relevance = self.made(memory)
        told = refusal(relevance)
        if told is not None:
            raise InputError(told)
        _checked_size(relevance, self.folder)
        with threads(self.threads):
            plan = IndexPlan.of(relevance, memory, self.rows or ROWS)
        with writable(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            return relevance if create(self.folder / PLAN, plan.text) else None

    def built(self, engine: str | Engine | None = None, part: str | None = None) -> Workshop:
        """Makes the shards that are missing, or those of a part; then index.json, if none is missing."""
        share = Share.of(part)
        if engine is None:
            workshop = self.prepared()
        else:
            engine = engine_of(engine)
            workshop = replace(self, threads=1, sharers=engine.at_once).prepared()  # as an engine's workers
        for number in share.of_all(range(workshop.count)):
            workshop.refuse_changed(number)
        workshop.basis  # noqa: B018  is there from now on, and not made by every worker
        wanted = workshop.missing(share.of_all(range(workshop.count)))  # or of another basis, which was lost
        if engine is None:
            for number in tracked(_turned(wanted), "shards", len(wanted)):
                workshop.make(number)
        else:
            work = partial(shard, self.folder.absolute(), self.made, token_hex(8))
            try:
                made = tracked(engine.run(work, wanted), "shards", len(wanted), at_once=engine.elsewhere)
                deque(made, maxlen=0)
            finally:
                WORKSHOPS.clear()
        finished(workshop)
        return workshop


def _refuse_without_added(plan: IndexPlan, n: int, folder: Path) -> None:
    """Refuses a training set without the rows that were added, or began to be."""
    planned = plan.places.stop - plan.shift
    if n < planned:
        told = "Some were added, or began to be: pass the training set with these at its end."
        refuse([number_of(planned, n)], folder, told)


def _refuse_similarity(workshop: Workshop) -> None:
    """Refuses another metric that would be answered by the same codes: a folder answers by its own."""
    folder, metric, planned = workshop.folder, str(workshop.relevance.metric), workshop.plans[0].metric
    if metric != planned:
        name = quote(str(folder))
        told = typed(
            f"Explainer.load({str(folder)!r}, model, train, metric={metric!r}). To go on: metric={planned!r}",
            f"precedents explain {{of}} --index {name} --metric {quote(metric)} --case 0. To go on: --metric "
            f"{quote(planned)}",
        )
        raise InputError(
            f"{folder} is of {planned}, not {metric}. One index serves both, when complete: {told}."
        )


def refuse_less(memory: int | str | None, plan: IndexPlan, folder: Path) -> None:
    """Refuses less memory than an index was planned for."""
    if memory is not None and Budget.of(memory).bytes < plan.memory:
        raise InputError(
            f"{folder} was planned for {readable(plan.memory)} of memory, not {memory}. "
            "Allow as much, or build elsewhere: the same bytes need the same batches."
        )


def saved_codes(recall: Recall, folder: Path) -> None:
    """An index of the codes that an explainer has, or makes now by a pass, in a folder that is being filled."""
    relevance = recall.relevance
    (coder, codes), *_ = recall.holding.read()
    plan = IndexPlan.of(relevance, relevance.workspace.classifier.budget.given or unasked(), ROWS)
    plan.write(folder / PLAN, written_to)
    basis = CodeBasis(coder, relevance.workspace.cache.get(CURVATURE))
    basis.write(folder / BASIS, plan, relevance, written_to)
    workshop, mark = Workshop(folder, [plan], relevance, written_to), basis_mark(folder)
    for number, each in enumerate(plan.shards):
        workshop.put(number, codes.some(slice(each.start, each.stop)), mark)
    finished(workshop)


def finished(workshop: Workshop) -> bool:
    """Writes index.json if no shard is missing; whether it is there."""
    if not all(workshop.is_done(number) for number in range(workshop.count)):
        return False
    swept(workshop.folder)
    subject, folder = workshop.relevance.workspace.subject, workshop.folder
    before = Contents.read(folder) if (folder / INDEX).is_file() else Contents([])
    replace(
        before,
        plans=[plan.hash for plan in workshop.plans],
        classes=before.classes if subject.classes is None else list(subject.classes),
        ids=_ids(workshop, before),
    ).write(folder, workshop.by)
    return True


def _ids(workshop: Workshop, before: Contents) -> Sequence[str | int] | None:
    """What the instances are called that were not removed: as before, if nothing is said."""
    ids, gone = workshop.relevance.workspace.train.ids, set(before.removed)
    if ids is None or len(ids) < workshop.plans[-1].places.stop:  # which are without the removed ones
        return before.ids if ids is None else list(ids)
    return [each for place, each in enumerate(ids) if place not in gone]


def swept(folder: Path) -> None:
    """Removes what writers that were killed have left where another has written the file."""
    for place in (folder, folder / FOLDER):
        names = [found[1] for path in place.iterdir() if (found := LEFT.fullmatch(path.name))]
        if names:
            with locked(place):
                for name in names:
                    sweep(place / name)


def _turned(numbers: Sequence[int]) -> Iterator[int]:
    """From some number on, another one in each process: those that build side by side meet late."""
    first = os.getpid() * 7 % len(numbers) if numbers else 0
    yield from [*numbers[first:], *numbers[:first]]


def unasked(sharers: int = 1) -> int:
    """Bytes of memory, if nothing is said: a round number, so that a plan is the same tomorrow."""
    return min(UNASKED_BYTES, 1 << max(0, Budget(sharers=sharers).bytes.bit_length() - 1))


def _checked_place(folder: Path) -> None:
    """Refuses a folder with something else in it."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file. Name a folder.")
    foreign = [path for path in folder.iterdir() if not LEFT.fullmatch(path.name)] if folder.is_dir() else []
    if foreign and not (folder / PLAN).is_file():
        raise InputError(f"{folder} is there and no index: nothing is written into it. Name a new folder.")


def _checked_size(relevance: Relevance, folder: Path) -> None:
    """Refuses a training set that is too small for a basis, and a disk without room."""
    recall, n = Recall(relevance), len(relevance.vectors)
    if recall.sample < LEAST:
        kept = typed(
            "Explainer(model, train).save(folder) keeps the whole vectors of a small set",
            "A small set is asked without an index: precedents explain {of} --case 0",
        )
        raise InputError(
            f"An index needs a sample of {LEAST} rows for its basis, and there is one of {recall.sample}: of "
            f"{n} training instances, in the memory that is allowed. {kept}."
        )
    _warn_of_questions(relevance, folder)
    there = next(parent for parent in (folder.absolute(), *folder.absolute().parents) if parent.exists())
    size, free = CODE * n, disk_usage(there).free
    if size > free:
        raise BudgetError(
            f"An index in {folder} needs {readable(size)}, but the disk has {readable(free)} left. "
            "Name a folder on another disk."
        )


def _warn_of_questions(relevance: Relevance, folder: Path) -> None:
    """Says before hours of work that what is built will not be asked in the memory that builds it."""
    need, budget = CODE * len(relevance.vectors), relevance.workspace.classifier.budget
    if need > budget.bytes:
        warnings.warn(
            f"A question to the index in {folder} needs {readable(need)} of memory, and "
            f"{readable(budget.bytes)} is allowed. It is built all the same. "
            f"{more_memory(budget.bytes + need)}",
            stacklevel=2,
        )

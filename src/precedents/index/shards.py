"""Shards: the codes of some thousand rows in a file, with what tells that the rows are still the same.

A shard is a pure function of the plan, the model and the rows. It is there when its file is whole and carries
the hash of the plan and the mark of the basis that it was coded with; who is killed meanwhile has left nothing.
So many processes make shards of one folder side by side, and need no locks: who makes one twice makes the same
bytes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from precedents.classifier.behaviour import behaviour
from precedents.errors import FormatError
from precedents.gradients.rows import Rows
from precedents.index.basis import BASIS, CodeBasis, basis_mark, basis_of
from precedents.index.codes import Codes
from precedents.index.origin import or_made_by, row_marks
from precedents.index.plan import PLAN, IndexPlan, Write, again, build_of, mark_of, refuse, threads
from precedents.index.suited import coordinates
from precedents.metrics.relevance import Relevance
from precedents.runtime.atomic import stored, writable
from precedents.runtime.buffers import BUFFERS
from precedents.runtime.progress import tracked
from precedents.runtime.tensor_files import sealed_tensors, unsealed_tensors

FOLDER = "shards"
MARKED = "basis"  # by the mark of the basis that it was coded with
KNOWN = 1024  # instances in all whose logits are kept, by which a model is known; of fewer, all
CODES = [each.name for each in fields(Codes)]

Maker = Callable[
    [int | str], Relevance
]  # the model, the training set and the metric, for so many bytes of memory


@dataclass(frozen=True, eq=False)
class Workshop:
    """What is needed to make shards."""

    folder: Path
    plans: Sequence[IndexPlan]  # the first one, and those that add to it
    relevance: Relevance
    by: Write = field(default=stored, repr=False)  # how files are written

    @cached_property
    def basis(self) -> CodeBasis:
        """Read, or made by the first who needs it; one that was lost, of the rows that it was made of."""
        first = self.plans[0]
        if not (self.folder / BASIS).is_file() and (self.folder / FOLDER).is_dir():
            for place, each in enumerate(first.shards):
                self._same(read_at(first, place), each.mark)
        return basis_of(self.folder, first, self.relevance)

    def _same(self, places: range, mark: str) -> None:
        """Refuses rows that are not those of the plan."""
        train = self.relevance.workspace.train
        if len(train) < places.stop or mark_of(train, places) != mark:
            told = f"the rows or labels of the training set, from {places.start} to {places.stop - 1}"
            told += or_made_by(self.relevance)
            refuse([told], self.folder)

    @property
    def count(self) -> int:
        """How many shards there are, in all plans."""
        return sum(len(plan.shards) for plan in self.plans)

    def missing(self, numbers: Sequence[int]) -> list[int]:
        """Those that are not there, or not whole."""
        return [number for number in numbers if not self.is_done(number)]

    def is_done(self, number: int) -> bool:
        """Whether its file is there, whole, and of this plan."""
        return is_whole(self.folder, self.plans, number)

    def refuse_changed(self, number: int) -> None:
        """Refuses a training set whose rows of this shard are not those of the plan."""
        plan, place = planned_shard(self.plans, number)
        self._same(read_at(plan, place), plan.shards[place].mark)

    def make(self, number: int) -> None:
        """Computes a shard and writes its file, unless it is there."""
        if self.is_done(number):
            return
        self.refuse_changed(number)
        plan, place = planned_shard(self.plans, number)
        places = read_at(plan, place)
        with threads(plan.threads):
            self.put(number, self._codes(places, plan.batch), self.basis.mark)

    def put(self, number: int, codes: Codes, basis: Tensor | None) -> None:
        """Writes the file of a shard, with the codes of its rows and the mark of their basis."""
        assert basis is not None  # it was read
        plan, place = planned_shard(self.plans, number)
        content = {name: getattr(codes, name) for name in CODES}
        content |= rows_known(self.relevance, read_at(plan, place), plan.places.stop) | {
            "plan": plan.seal,
            MARKED: basis,
        }
        path = shard_path(self.folder, number)
        with writable(path.parent):
            path.parent.mkdir(exist_ok=True)
        self.by(path, sealed_tensors(content))

    def _codes(self, places: range, size: int) -> Codes:
        relevance, coder = self.relevance, self.basis.coder
        train, classifier = relevance.workspace.train, relevance.workspace.classifier
        room = None
        with BUFFERS.free:
            for start in tracked(range(places.start, places.stop, size), "rows"):
                batch = train.take(range(start, min(start + size, places.stop)))
                rows = Rows.of(relevance.metric.features(classifier, batch))
                codes = coder.codes(coordinates(relevance, rows))
                room = codes.room(len(places)) if room is None else room
                room.put(slice(start - places.start, start - places.start + len(codes)), codes)
        assert room is not None
        return room


def rows_known(relevance: Relevance, places: range, n: int) -> dict[str, Tensor]:
    """Labels and marks of all rows, and what the model makes of some of them; there are n in all."""
    train = relevance.workspace.train
    seen = places[:: max(1, -(-n // KNOWN))]
    found: dict[str, Tensor] = {
        "labels": train.labels[places.start : places.stop],
        "rows": row_marks(train, places),
    }
    if seen:
        found |= behaviour(relevance.workspace.classifier, train.selected(seen), seen=False)
    return found | {"seen": torch.tensor([place - places.start for place in seen], dtype=torch.long)}


def read_at(plan: IndexPlan, place: int) -> range:
    """Where the rows of a shard stood in the training set when it was made."""
    shard = plan.shards[place]
    return range(shard.start - plan.shift, shard.stop - plan.shift)


def planned_shard(plans: Sequence[IndexPlan], number: int) -> tuple[IndexPlan, int]:
    """The plan of a shard, and its place in it."""
    for plan in plans:
        if number < len(plan.shards):
            return plan, number
        number -= len(plan.shards)
    raise IndexError(number)


def shard_path(folder: Path, number: int) -> Path:
    """Where a shard is."""
    return folder / FOLDER / f"{number:06}.safetensors"


def read_shard(folder: Path, plans: Sequence[IndexPlan], number: int) -> dict[str, Tensor]:
    """What is in a shard; a file that is damaged, or of another plan or basis, is refused."""
    path, (plan, place) = shard_path(folder, number), planned_shard(plans, number)
    found = unsealed_tensors(path, made_again(folder))
    if "plan" not in found or not torch.equal(found.pop("plan"), plan.seal):
        raise FormatError(f"{path} is of another plan. {made_again(folder)}")
    if MARKED not in found or not torch.equal(found.pop(MARKED), basis_mark(folder)):
        raise FormatError(f"{path} is of another basis than {BASIS}. {made_again(folder)}")
    if len(found.get("labels", ())) != len(plan.shards[place].places) or not found.keys() >= set(CODES):
        raise FormatError(f"{path} does not have the rows that are planned. {made_again(folder)}")
    return found


def made_again(folder: Path) -> str:
    """What to do with a shard that cannot be used."""
    return f"That shard alone is made again, of the rows that it was made of, by {build_of(folder)}"


def is_whole(folder: Path, plans: Sequence[IndexPlan], number: int) -> bool:
    """Whether the file of a shard is there, whole, and of its plan and of the basis that is there."""
    if not shard_path(folder, number).is_file():
        return False
    try:
        read_shard(folder, plans, number)
    except FormatError:
        return False
    return True


def read_plans(folder: Path) -> list[IndexPlan]:
    """The plan of an index, and those of rows that were added; one that does not follow is refused."""
    plans = [IndexPlan.read(folder / PLAN)]
    while (path := added_plan(folder, len(plans))).is_file():
        plans.append(IndexPlan.read(path))
        if plans[-1].before != plans[-2].hash or plans[-1].places.start != plans[-2].places.stop:
            raise FormatError(f"{path} does not follow the plan before it. {again(folder)}")
    return plans


def added_plan(folder: Path, number: int) -> Path:
    """Where the plan of rows is that were added."""
    return folder / f"plan-{number:04}.json"


WORKSHOPS: dict[str, Workshop] = {}  # the last one that this process has opened


def shard(folder: Path, made: Maker, run: str, number: int) -> int:
    """Makes one shard of the plan in the folder, in any process; gives its number.

    A pure function of the folder and the number: what a process needs of the model and the training set is made
    once in it, by `made`, and kept for the next number of the same run, which has a name of its own.
    """
    plans = read_plans(folder)
    key = f"{folder.absolute()} {plans[-1].hash} {run}"
    if key not in WORKSHOPS:
        WORKSHOPS.clear()
        WORKSHOPS[key] = opened(folder, plans, made)
    WORKSHOPS[key].make(number)
    return number


def opened(
    folder: Path, plans: Sequence[IndexPlan], made: Maker, relevance: Relevance | None = None
) -> Workshop:
    """A workshop, with a model and a metric that the plan is of: `made` now, unless they are there."""
    with threads(plans[0].threads):
        relevance = relevance or made(plans[0].memory)
        plans[0].refuse(relevance, folder)
    return Workshop(folder, plans, relevance)

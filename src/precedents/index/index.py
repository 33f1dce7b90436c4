"""Index: codes of a training set in a folder, from which questions are answered with exact scores."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import torch

from precedents.classifier.construction import refuse_keywords
from precedents.classifier.outputs import Place
from precedents.data.examples import checked_range
from precedents.data.parts import together, without
from precedents.errors import InputError, NumericalError
from precedents.index.build import Building, Given, finished, refuse_less, unasked
from precedents.index.check import IndexCheck, checked
from precedents.index.codes import KEPT, Coder
from precedents.index.contents import IndexFolder, State, read_metric, state
from precedents.index.plan import behaviour_of_few, threads
from precedents.index.recall import CODE, FLOAT32, Recall
from precedents.index.shards import Workshop, added_plan, read_plans
from precedents.metrics.metric import Metric
from precedents.metrics.preconditioners.identity import identity
from precedents.metrics.relevance import Relevance
from precedents.metrics.workspace import Workspace
from precedents.runtime.budget import Budget
from precedents.runtime.cost import Estimate, speed
from precedents.runtime.door import door
from precedents.runtime.engines._engine import Engine
from precedents.runtime.given import path, several, whole_number
from precedents.runtime.progress import tracked

if TYPE_CHECKING:
    from typing_extensions import Unpack

FEWEST_ROWS = 16  # of a shard


class IndexOptions(TypedDict, total=False):
    """What may be said beside the model, the training set and the metric."""

    memory: int | str | None  # what a process may use, in bytes or as "2 GB"
    rows: int | None  # of a shard: what a kill loses at most
    shard: str | None  # the part of the shards that is made now, as "7/64"
    hidden: Sequence[str] | None  # this and all that follows is as for Explainer
    vectorise: Any
    classes: Sequence[str] | None
    render: Any
    loss: Any
    output: Place | None
    text: str | Sequence[str] | None
    image: str | None
    labels: Any
    ids: Any


class Index:
    """Codes of a training set in a folder, about a kilobyte for each instance.

    `Index.build` makes one, `Explainer.load(folder, model, train)` answers from it: with exact scores, and with
    a word on how it is known that none is missing. One index serves dot, cosine and l2 of its features and its
    preconditioner. It is whole when its index.json is there; until then the same `build` goes on.

    >>> from tempfile import mkdtemp
    >>> _ = torch.manual_seed(0)
    >>> x, y = torch.randn(600, 4), torch.arange(600) % 2
    >>> model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    >>> index = Index.build(model, (x, y), mkdtemp())
    >>> print(index)
    index of gradient: 600 rows in 1 shard, complete
    >>> index.check(5).recall
    1.0
    """

    def __init__(self, workshop: Workshop, memory: int | str | None = None) -> None:
        self._workshop, self._memory = workshop, memory

    @classmethod
    @door
    def build(
        cls,
        model: Any,
        train: Any,
        folder: str | Path,
        metric: str | Metric = "cos_grad",
        engine: str | Engine | None = None,
        **options: "Unpack[IndexOptions]",
    ) -> "Index":
        """Builds an index, or goes on where a build was stopped or killed.

        model, train, metric: as for `Explainer`.
        folder: where it is kept: a new one, or one with a build that is not complete.
        engine: who makes the shards, as "processes(workers=4)" or "ray"; this process without it.
        options: `memory` of a process; `rows` of a shard, 4,096 without it; `shard`, as "7/64", if this process
            makes the seventh of 64 parts of the shards alone; and of `Explainer` what says what the model and
            the data are: `hidden`, `vectorise`, `classes`, `loss`, `output`, `text`, `image`, `labels`, `ids`.

        Several processes may build one folder side by side. A folder of another model, metric, training set or
        size of the shards is refused, by what differs.
        """
        building, part = _building(model, train, folder, metric, options)
        return cls(building.built(engine, part))

    @classmethod
    @door
    def estimate(
        cls, model: Any, train: Any, metric: str | Metric = "cos_grad", **options: "Unpack[IndexOptions]"
    ) -> Estimate:
        """Seconds, memory and disk that building for `model`, `train` and `metric` takes, from a trial."""
        building, _ = _building(model, train, "index", metric, options)
        memory = building.memory if building.memory is not None else unasked()
        return estimated(building.made(memory))

    @classmethod
    @door
    def open(
        cls,
        folder: str | Path,
        model: Any,
        train: Any,
        metric: str | Metric | None = None,
        **options: "Unpack[IndexOptions]",
    ) -> "Index":
        """The complete index in a `folder`, of this `model` and `train`; a stale one is refused.

        metric: that of the index, unless one of your own parts is passed, or another similarity.
        options: as for `build`, without `rows` and `shard`; `memory` is as planned without it, or
            what the codes need besides if that is free.
        """
        known = IndexFolder.open(path(folder, "folder"))
        building = _known(known, model, train, metric, options)
        memory = _enough(known) if building.memory is None else building.memory
        relevance = known.named(building.made(memory))
        known.restore(relevance)
        return cls(Workshop(known.folder, known.plans, relevance), building.memory)

    def __repr__(self) -> str:
        return f"Index({str(self.folder)!r}, {self})"

    def __str__(self) -> str:
        return str(self.state)

    @property
    def state(self) -> State:
        """How far it is: rows, shards, those that are made, bytes."""
        return state(self.folder)

    @property
    def folder(self) -> Path:
        """Where it is."""
        return self._workshop.folder

    @property
    def relevance(self) -> Relevance:
        """What is asked, with the codes; an index that is not complete has none."""
        relevance = self._workshop.relevance
        if not Recall(relevance).there:
            IndexFolder.open(self.folder).restore(relevance)
        return relevance

    @door
    def check(self, cases: Any = 50, k: int = 10) -> IndexCheck:
        """Answers some cases from the index and by a full pass over the training set, side by side.

        cases: how many training instances are taken as cases, or cases as `Explainer.explain` takes them.
        k: how many of the most relevant are compared.

        What comes back prints the recall, the errors, and how many rows were computed again.
        """
        relevance = self.relevance
        if isinstance(cases, int):
            train = relevance.workspace.train
            count = min(whole_number(cases, "cases"), len(train))
            cases = train.selected([i * len(train) // count for i in range(count)])
        return checked(relevance, relevance.workspace.subject.cases(cases), k)

    @door
    def add(self, rows: Any) -> None:
        """Makes codes of more training instances, which come after those that are there.

        rows: as a training set is passed. `Explainer.load` then wants the training set with them.

        Killed in the middle, the same call goes on; until it is done the index answers without them.
        """
        relevance = self.relevance
        subject = relevance.workspace.subject
        adapter = subject.adapter
        more = together(subject.train, adapter.examples(rows, "new rows"), adapter.joined)
        self._grow(Relevance(relevance.metric, Workspace(subject.before(subject.classifier, more))))

    @classmethod
    @door
    def extend(
        cls,
        folder: str | Path,
        model: Any,
        train: Any,
        metric: str | Metric | None = None,
        **options: "Unpack[IndexOptions]",
    ) -> "Index":
        """The index of a training set that has grown: its first instances are those of the index.

        folder, model, train, metric, options: as for `open`, with the new instances at the end of `train`, and
            no less memory than was planned. Where instances have ids, `ids` of all are passed.
        """
        known = IndexFolder.open(path(folder, "folder"))
        building = _known(known, model, train, metric, options)
        refuse_less(building.memory, known.plans[0], known.folder)
        grown = building.made(known.plans[0].memory)
        subject, n = grown.workspace.subject, len(known.kept)
        if len(subject.train) <= n:
            raise InputError(
                f"The training set has {len(subject.train)} instances and the index {n}: none is to be added. "
                "Pass the training set with the new ones at its end."
            )
        before = subject.before(subject.classifier, without(subject.train, range(n, len(subject.train))))
        index = cls(Workshop(known.folder, known.plans, Relevance(grown.metric, Workspace(before))))
        known.restore(index._workshop.relevance)
        index._grow(grown)
        return index

    def _grow(self, relevance: Relevance) -> None:
        """Makes codes of the rows at the end of a training set that begins with those of the index."""
        known = IndexFolder.open(self.folder)
        _unweighed(relevance, "added")
        refuse_less(self._memory, known.plans[0], self.folder)
        if known.contents.ids is not None and relevance.workspace.train.ids is None:
            raise InputError(
                f"The instances of {self.folder} have ids, and the new rows have none. Pass those of all: "
                f"Index.extend({str(self.folder)!r}, model, train, ids=...), the new rows at the end of train."
            )
        checked_range(relevance.workspace.train.labels, relevance.workspace.classifier.classes, "new rows")
        place = added_plan(self.folder, len(known.plans))
        with threads(known.plans[0].threads):
            plan = known.plans[-1].added(relevance, len(known.contents.removed))
        if not place.is_file():
            plan.write(place)
        plans = read_plans(self.folder)
        if [each.hash for each in plans[len(known.plans) :]] != [plan.hash]:
            raise InputError(
                f"Other rows were to be added to {self.folder}, and are not yet: {place.name} is there. Add "
                "those first, or remove that file."
            )
        shop = Workshop(self.folder, plans, relevance)
        try:
            for number in tracked(shop.missing(range(shop.count)), "shards"):
                shop.make(number)
        except (InputError, NumericalError):
            place.unlink(missing_ok=True)  # rows that have no codes are not waited for
            raise
        finished(shop)
        self._workshop = shop

    @door
    def remove(self, places: Any) -> None:
        """Takes training instances out, by their places; a few of the others are computed.

        places: whole numbers, as explanations name them before any of these is removed. `Explainer.load` then
            wants the training set without these instances: the others are in their order, and those behind a
            removed one have a place that is lower by one. Ids stay.
        """
        known, relevance = IndexFolder.open(self.folder), self.relevance
        subject, n = relevance.workspace.subject, len(relevance.workspace.train)
        _unweighed(relevance, "removed")
        gone = sorted({whole_number(each, "a place", 0, n - 1) for each in several(places, "places", int)})
        if len(gone) == n:
            raise InputError("All instances would be removed. Remove the folder instead.")
        if len(read_plans(self.folder)) > len(known.plans):
            raise InputError(f"Rows are being added to {self.folder}, and are not yet. Add them first.")
        rest = without(subject.train, gone)
        removed = sorted({*known.contents.removed, *known.kept[gone].tolist()})
        ids = None if rest.ids is None else list(rest.ids)
        smaller = Relevance(relevance.metric, Workspace(subject.before(subject.classifier, rest)))
        few = behaviour_of_few(smaller, range(len(rest)))
        replace(known.contents, removed=removed, ids=ids, behaviour=few).write(self.folder)
        self._workshop = Workshop(self.folder, known.plans, smaller)


def estimated(relevance: Relevance) -> Estimate:
    """What building takes in one process: a pass over the training set, the sample, and making the codes."""
    vectors, n, recall = relevance.vectors, len(relevance.vectors), Recall(relevance)
    found, length = relevance.estimate(1), Coder.sketch_of(vectors.width).length
    coding = 4.0 * n * KEPT * length / speed(torch.float32)
    seconds = found.seconds * (1 + recall.sample / n) + coding
    basis = FLOAT32 * length * (recall.sample + 2 * KEPT)
    return Estimate(seconds, vectors.used(1) + basis, CODE * n + FLOAT32 * length * KEPT)


def _building(
    model: Any, train: Any, folder: str | Path, metric: str | Metric, options: IndexOptions
) -> tuple[Building, str | None]:
    """What is to be built of what was passed, and which part of it."""
    refuse_keywords("Index", options, sorted(IndexOptions.__optional_keys__))
    rows = options.get("rows")
    if rows is not None:
        rows = whole_number(rows, "rows", FEWEST_ROWS)
    told = {name: value for name, value in options.items() if name not in ("memory", "rows", "shard")}
    given = Given(model, train, metric, told)
    return Building(path(folder, "folder"), given, options.get("memory"), rows), options.get("shard")


def _known(
    known: IndexFolder, model: Any, train: Any, metric: str | Metric | None, options: IndexOptions
) -> Building:
    """What is there, with what was passed; what no finished index has a use for is refused."""
    for name in ("rows", "shard"):
        if options.get(name) is not None:
            raise InputError(
                f"{name} is for Index.build: the shards of {known.folder} are there. Leave it out."
            )
    told = read_metric(known.plans[0].metric) if metric is None else metric
    return _building(model, train, known.folder, told, options)[0]


def _enough(known: IndexFolder) -> int:
    """The bytes that were planned; with those of the codes where they are many, as far as that is free."""
    planned, codes = known.plans[0].memory, CODE * known.total
    return planned if codes <= planned // 2 else max(planned, min(planned + codes, Budget().bytes))


def _unweighed(relevance: Relevance, what: str) -> None:
    """Refuses to change the rows of an index whose matrix was fitted to all of them."""
    if relevance.metric.preconditioner != identity:
        raise InputError(
            f"No rows can be {what}: the matrix of {relevance.metric} was fitted to all that are there. Build "
            "another index; one of plain gradients can be changed."
        )

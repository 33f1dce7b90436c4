"""World: what is explored: a model, its training set, its cases, and all that was computed of them so far.

The one compute thread fills it, pages read it. `version` grows with every change, so that what was made of an
older state is made again.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from threading import Lock
from typing import Any

import numpy as np

from precedents.adapters._subject import Subject
from precedents.audit.audit import Audit
from precedents.data.examples import Examples
from precedents.data.ids import shown_id
from precedents.explain.explainer import Explainer
from precedents.explorer.answers import AllAnswers, Answerer, fill
from precedents.explorer.cache import ByteCache, Recent
from precedents.explorer.guard import refused
from precedents.explorer.jobs import JobCancelled, JobQueue, QueuedJob
from precedents.explorer.measures import Measures, measured
from precedents.explorer.origin import Provenance
from precedents.explorer.safety import Refusal
from precedents.explorer.store import Store
from precedents.explorer.tags import Tags
from precedents.metrics.paper import metric as metric_of
from precedents.metrics.paper import name_of
from precedents.metrics.relevance import Relevance
from precedents.seen import clipped
from precedents.views.comparison import spread_of
from precedents.views.instance import Shown, shown

SETS = ("case", "train")
SUSPECTED = "suspects"  # with the metric, the key of what is known of labels that may be wrong
LONGEST = 900.0  # seconds that answers by one metric may take without being asked for
WORDS = 64 * 2**20  # letters of all texts that are kept to be searched
CACHED, PART = 32 * 2**20, 16  # bytes of pages and of pictures that are kept, or this part of the memory budget
KINDS: Mapping[Any, str] = {str: "texts", dict: "rows"}


@dataclass(eq=False)
class World:
    """All that pages are made of."""

    explainer: Explainer
    test: Examples
    engines: dict[str, Answerer]  # by the name of the metric, the first is the one that pages begin with
    origin: Provenance
    jobs: JobQueue = field(default_factory=JobQueue, repr=False)
    folder: Path | None = None  # where work is kept
    audit: Audit | None = None
    auditing: Callable[[], Audit] | None = field(default=None, repr=False)  # makes one
    name: str = ""
    version: int = 1
    measures: dict[str, Measures] = field(default_factory=dict)  # of the two sets
    answers: dict[str, AllAnswers] = field(default_factory=dict)  # by metric
    failed: dict[str, Refusal] = field(default_factory=dict)  # by metric why there are no answers
    stopped: str = ""  # why nothing more is known of the cases
    slow: dict[str, float] = field(default_factory=dict)  # by metric the seconds that nobody has agreed to
    copies: Mapping[int, int] = field(default_factory=dict)  # by case the first instance that equals it
    texts: Sequence[str] = ()  # of the cases in small letters, to be searched
    spread: Mapping[str, float] = field(default_factory=dict)  # of a table's columns
    differing: Sequence[str] = ()  # what differs from what was kept before
    tags: Tags | None = None  # once it is known of which data
    store: Store | None = field(default=None, repr=False)  # what is kept
    pages: ByteCache = field(default_factory=lambda: ByteCache(CACHED), repr=False)
    pictures: ByteCache = field(default_factory=lambda: ByteCache(CACHED), repr=False)
    found: dict[Any, Any] = field(default_factory=dict, repr=False)  # what is known once and for all
    single: Recent = field(default_factory=Recent, repr=False)  # answers to single questions
    tries: Recent = field(default_factory=Recent, repr=False)  # cases of one's own
    _lock: Lock = field(default_factory=Lock, repr=False)

    @classmethod
    def of(
        cls, explainer: Explainer, test: Any, metrics: Sequence[str], origin: Provenance, **more: Any
    ) -> "World":
        """Of an explainer and a test set, by the explainer's metric and these."""
        workspace = explainer.relevance.workspace
        engines = {explainer.name: Answerer.of(explainer)}
        for each in (Relevance(metric_of(name), workspace) for name in metrics):
            engines.setdefault(name_of(each.metric), Answerer(each))
        world = cls(explainer, explainer.subject.test(test), engines, origin, **more)
        world.name = world.name or explainer.subject.name
        room = min(CACHED, explainer.subject.classifier.budget.bytes // PART)
        world.pages.most = world.pictures.most = world.tries.room = room
        return world

    @property
    def subject(self) -> Subject:
        """The model and its training set."""
        return self.explainer.subject

    def set_of(self, which: str) -> Examples:
        """The cases or the training set."""
        return self.test if which == "case" else self.subject.train

    def changed(self) -> None:
        """What was made of the state before is old."""
        with self._lock:
            self.version += 1

    @property
    def stamp(self) -> str:
        """What tells the pictures of this start from those of another one at the same address."""
        return self.found.setdefault("stamp", token_hex(4))

    @property
    def main(self) -> str:
        """The metric that pages begin with: the audit's recommendation, if it is here; else the first."""
        best = None if self.audit is None else self.audit.recommendation.metric
        return best if best in self.engines else next(iter(self.engines))

    def explainer_by(self, name: str) -> Explainer:
        """The explainer of one of the metrics."""
        if name == self.explainer.name:
            return self.explainer
        found = copy(self.explainer)
        found.relevance, found.name, found.finding = self.engines[name].relevance, name, None
        found._recall, found._reading = None, nullcontext
        return found

    @property
    def kind(self) -> str:
        """What instances are to a person: pictures, texts or rows."""
        if "kind" not in self.found:
            self.found["kind"] = KINDS.get(type(self.shown("train", 0)), "pictures")
        return str(self.found["kind"])

    @property
    def pixels(self) -> tuple[int, int]:
        """Of a picture, its width and height."""
        if "pixels" not in self.found:
            first: Any = self.shown("train", 0)
            self.found["pixels"] = (first.shape[1], first.shape[0])
        found: tuple[int, int] = self.found["pixels"]
        return found

    def shown(self, which: str, place: int) -> Shown:
        """What a person sees of an instance."""
        value = shown(self.set_of(which).seen([place])[0], self.subject.render)
        return value if isinstance(value, str) or not isinstance(value, Mapping) else dict(value)

    def class_name(self, label: int) -> str:
        """The name of a class, or its number."""
        names = self.subject.classes
        return str(label) if names is None else clipped(str(names[label]))

    def own_label(self, label: int) -> Any:
        """What the model's owner calls a class in labels: its number, unless they have others."""
        own = self.subject.adapter.labels
        return label if own is None else getattr(own[label], "tolist", lambda: own[label])()

    def called(self, which: str, place: int) -> str:
        """What a person sees an instance called: by its own id, or else by its place."""
        ids = self.set_of(which).ids
        if which == "case":
            return f"case {place if ids is None else clipped(str(ids[place]))}"
        return f"#{place}" if ids is None else shown_id(ids[place])

    def fill(self, job: QueuedJob) -> None:
        """Measures both sets and answers all cases by all metrics; what ends it is told on all pages."""
        try:
            self._fill(job)
        except JobCancelled:
            raise
        except Exception as error:
            self.stopped = refused(error).text
            self.changed()
            raise Refusal(500, self.stopped) from error

    def _fill(self, job: QueuedJob) -> None:
        """What is kept is read."""
        self.store = store = Store.open(self.folder, self.subject, self.test)
        self.differing, self.tags = store.differing, Tags.open(self.folder, store.marks)
        for which in SETS:
            self.measures[which] = self._measured(which, store, job)
            self.changed()
        self._looked(job)
        for name in self.engines:
            self._tried(name, store, job)

    @property
    def notes(self) -> list[str]:
        """What a person should know of what is kept."""
        found = [each.problem for each in (self.store, self.tags) if each is not None]
        return [each for each in found if each]

    def close(self) -> None:
        """Ends its work, and lets others write in its folder."""
        self.jobs.close()
        if self.store is not None:
            self.store.close()

    def answer(self, name: str, job: QueuedJob) -> None:
        """By one metric, however long it takes."""
        assert self.store is not None
        self._tried(name, self.store, job, agreed=True)

    def _tried(self, name: str, store: Store, job: QueuedJob, agreed: bool = False) -> None:
        """One metric that fails says why, and the others go on."""
        try:
            self._answered(name, store, job, agreed)
        except JobCancelled:
            raise
        except Exception as error:
            self.answers.pop(name, None)
            self.failed[name] = refused(error)
            self.changed()

    def _measured(self, which: str, store: Store, job: QueuedJob) -> Measures:
        title = {"case": "predictions of the cases", "train": "predictions of the training set"}[which]
        if which in store:
            return Measures(**store.tensors(which))
        model, examples = self.subject.classifier, self.set_of(which)
        found = measured(model, examples, lambda done, total: job.step(done, total, title))
        store.put(which, found.tensors())
        return found

    def _looked(self, job: QueuedJob) -> None:
        """Copies, texts and columns, which need no model."""
        job.step(0, 1, "a look at both sets")
        self.copies = copies_of(self.subject.train, self.test)
        self.spread = spread_of(self.subject.train, self.subject.render)
        if self.kind == "texts":
            self.texts = self._texts()
        self.changed()

    def _texts(self) -> list[str]:
        texts, size = [], 0
        for place in range(len(self.test)):
            texts.append(str(self.shown("case", place)).casefold())
            size += len(texts[-1])
            if size > WORDS:
                return []
        return texts

    def _answered(self, name: str, store: Store, job: QueuedJob, agreed: bool) -> None:
        """By one metric."""
        n, classes = len(self.subject.train), self.subject.classifier.classes
        engine = self.engines[name]
        text = str(engine.relevance.metric)
        if text in store:
            self.answers[name] = AllAnswers.kept(store.tensors(text), classes, n)
            self.changed()
            return

        def step(done: int, total: int) -> None:
            self.changed()
            job.step(done, total, f"precedents by {name}")

        if not agreed and (seconds := engine.relevance.estimate(len(self.test)).seconds) > LONGEST:
            self.slow[name] = seconds
            self.changed()
            return
        self.slow.pop(name, None)
        answers = self.answers[name] = AllAnswers.empty(len(self.test), n, classes)
        job.step(0, len(self.test), f"precedents by {name}")
        fill(answers, engine, self.test, self.measures["case"], step)
        store.put(text, answers.tensors())
        self.changed()


def copies_of(train: Examples, test: Examples) -> dict[int, int]:
    """By case the first training instance that has the same input."""
    own, asked = (np.frombuffer(b"".join(each.marks()), dtype=np.int64) for each in (train, test))
    order = own.argsort(kind="stable")
    places = np.searchsorted(own[order], asked).clip(max=len(own) - 1)
    same = own[order[places]] == asked
    return {int(i): int(order[places[i]]) for i in same.nonzero()[0]}

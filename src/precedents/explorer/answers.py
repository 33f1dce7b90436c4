"""AllAnswers: the most relevant training instances of all cases by one metric, and whom each of them answers.

They are made a few cases at a time, the wrong predictions first, so that a page can show what is there already.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from precedents.data.examples import Examples
from precedents.explain.cautions import counted, hubs, outlying
from precedents.explain.explainer import Explainer
from precedents.explorer.limits import MOST
from precedents.explorer.measures import Measures, Step
from precedents.index.recall import Recall
from precedents.metrics.relevance import Ranked, Relevance
from precedents.metrics.vectors import RowBlock

FIRST, NEXT, LATER = 32, 256, 1024  # cases that are answered at once
COLUMNS = ("indices", "scores", "below", "lengths", "own_lengths")


@dataclass
class Answerer:
    """A metric that answers questions; of a large training set the first leaves codes for the others.

    Of an explainer that was loaded they are there already, and its folder is looked at around a question.
    """

    relevance: Relevance
    recall: Recall | None = None
    reading: Callable[[], AbstractContextManager[None]] = nullcontext

    @classmethod
    def of(cls, explainer: Explainer) -> "Answerer":
        """By the metric of an explainer."""
        return cls(explainer.relevance, explainer._recall, explainer._reading)

    def ranked(self, cases: Examples, k: int) -> Ranked:
        """The k most relevant training instances of each case."""
        with self.reading():
            found = None if self.recall is None else self.recall.ranked(cases, k)
            return self.relevance.ranked(cases, k, passing=self._passing) if found is None else found

    def _passing(self, blocks: Iterator[RowBlock]) -> Iterator[RowBlock]:
        self.recall = Recall(self.relevance)
        return self.recall.noted(blocks)


@dataclass(eq=False)
class AllAnswers:
    """What one metric says of m cases, as far as it is known."""

    indices: Tensor  # [m, k], int32
    scores: Tensor  # [m, k], float64
    below: Tensor  # [m, k], int32: how many training instances have a lower score
    lengths: Tensor  # [n], float64, of the training instances; none if there are no lengths
    own_lengths: Tensor  # [m], of the cases
    done: Tensor = field(repr=False)  # [m], which cases are answered
    classes: int = 2
    train: int = 0

    @classmethod
    def empty(cls, m: int, n: int, classes: int) -> "AllAnswers":
        """Of m cases none is answered yet; there are n training instances."""
        k = min(MOST, n)
        return cls(
            torch.zeros(m, k, dtype=torch.int32),
            torch.zeros(m, k, dtype=torch.double),
            torch.zeros(m, k, dtype=torch.int32),
            torch.zeros(0, dtype=torch.double),
            torch.ones(m, dtype=torch.double),
            torch.zeros(m, dtype=torch.bool),
            classes,
            n,
        )

    @classmethod
    def kept(cls, tensors: dict[str, Tensor], classes: int, n: int) -> "AllAnswers":
        """All answers, as they were kept."""
        done = torch.ones(len(tensors["indices"]), dtype=torch.bool)
        return cls(**{name: tensors[name] for name in COLUMNS}, done=done, classes=classes, train=n)

    @property
    def k(self) -> int:
        """How many precedents are known of a case."""
        return self.indices.shape[1]

    @property
    def complete(self) -> bool:
        """Whether all cases are answered."""
        return bool(self.done.all())

    def put(self, places: Tensor, ranked: Ranked) -> None:
        """Notes what was found for some cases."""
        self.indices[places] = ranked.top.indices.int()
        self.scores[places] = ranked.top.scores
        self.below[places] = ranked.below.int()
        if ranked.lengths is not None and ranked.case_lengths is not None:
            self.lengths, self.own_lengths[places] = ranked.lengths, ranked.case_lengths
        self.done[places] = True

    def tensors(self) -> dict[str, Tensor]:
        """By name, to be kept."""
        return {name: getattr(self, name) for name in COLUMNS}

    @cached_property
    def hubs(self) -> dict[int, float]:
        """The hubs among all training instances, with their shares; to be asked when all is answered."""
        return hubs(self.firsts, len(self.indices), self.classes)

    @cached_property
    def firsts(self) -> dict[int, int]:
        """How many cases each training instance is the first precedent of, most first."""
        return counted(self.indices[:, 0].tolist())

    @cached_property
    def outlying(self) -> Tensor:
        """Which training instances have an outlying norm [n]."""
        return outlying(self.lengths) if len(self.lengths) else torch.zeros(self.train, dtype=torch.bool)

    @cached_property
    def _answered(self) -> tuple[Tensor, Tensor]:
        """The places [m * k] of all entries by training instance, and where those of each begin [n + 1]."""
        flat = self.indices.flatten()
        counts = torch.bincount(flat.long(), minlength=self.train)
        return flat.argsort(stable=True).int(), torch.cat([torch.zeros(1).long(), counts.cumsum(0)])

    def answered_by(self, place: int) -> tuple[Tensor, Tensor]:
        """The cases that a training instance is a precedent of, and its ranks there from 0; the best first."""
        entries, begin = self._answered
        own = entries[int(begin[place]) : int(begin[place + 1])].long()
        cases, ranks = own // self.k, own % self.k
        order = ranks.argsort(stable=True)
        return cases[order], ranks[order]


def order_of(measures: Measures) -> Tensor:
    """The cases as they are answered: wrong predictions first, the surest of them before the others."""
    keys = measures.wrong.float() * 2 + measures.confidences
    return keys.argsort(descending=True, stable=True)


def fill(answers: AllAnswers, engine: Answerer, test: Examples, measures: Measures, step: Step) -> None:
    """AllAnswers all cases, some at a time."""
    order, start, m = order_of(measures), 0, len(test)
    while start < m:
        size = FIRST if not start else NEXT if start < LATER else LATER
        places = order[start : start + size]
        cases = test.selected(places.tolist()).relabelled(measures.predictions[places])
        answers.put(places, engine.ranked(cases, answers.k))
        start += len(places)
        step(start, m)

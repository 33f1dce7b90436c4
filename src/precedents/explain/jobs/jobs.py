"""Jobs: what an explainer does beside explaining, as methods; each is one of the files beside this one."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import chain
from typing import Any

from torch import Tensor

from precedents.adapters._subject import Subject
from precedents.data.examples import Examples
from precedents.data.ids import place_of
from precedents.data.inputs import Inputs
from precedents.errors import InputError, PrecedentsError
from precedents.explain.cautions import Doubts, left_out
from precedents.explain.jobs._portrayal import Portrayal
from precedents.explain.jobs._tabled import SHOWN
from precedents.explain.jobs.answers import Answers
from precedents.explain.jobs.contrast import Contrast, contrast, two_classes
from precedents.explain.jobs.groups import Groups, checked_by, grouped, names_of
from precedents.explain.jobs.near_duplicates import NearDuplicates, near_duplicates
from precedents.explain.jobs.self_relevance import SelfRelevance, own_squares, self_relevance
from precedents.explain.jobs.suspects import Suspects, accusers_of, evidence, most_suspicious, wrong_cases
from precedents.metrics.features.gradient import gradient
from precedents.metrics.ranking import TopK, checked_k
from precedents.metrics.relevance import Ranked, Relevance
from precedents.runtime.door import door
from precedents.runtime.given import several, whole_number
from precedents.runtime.wording import first_of

SUSPECTS = 20  # that are returned
ACCUSED = 5  # first precedents of a wrong prediction, which it accuses


class Jobs(ABC):
    """The jobs of an explainer: what it has for them, and one method for each."""

    subject: Subject
    relevance: Relevance
    name: str
    _reading: Callable[[], AbstractContextManager[None]]

    @abstractmethod
    def _ranked(self, cases: Examples, k: int) -> Ranked:
        """The k most relevant training instances of each case."""

    @abstractmethod
    def _remarks(self, x: Any, inputs: Inputs, found: Sequence[Sequence[str]]) -> list[list[str]]:
        """For each case what speaks against all of its precedents, with what was `found` of the scores."""

    @property
    def _portrayal(self) -> Portrayal:
        return Portrayal(self.subject)

    def precedents_of(self, cases: Examples, k: int) -> tuple[TopK, Tensor]:
        """The first k precedents of each case [m, k], and which cases [m] the metric cannot rank for.

        `cases` are what `subject.cases(x)` gives.
        """
        ranked = self._ranked(cases, checked_k(k, len(self.subject.train)))
        return ranked.top, Doubts.of(ranked).unranked

    @door
    def self_relevance(self) -> SelfRelevance:
        """How relevant every training instance is to itself, with the label that it has; one pass, O(n).

        Of an inner product, as `dot_grad`, it is largest where a label is believed because of itself alone.
        A cosine of everything with itself is one: the answer says which metric to use.
        """
        with self._reading():
            return self_relevance(self.relevance, self.name, self._portrayal)

    @door
    def suspects(self, k: int | None = None, cases: Any = None) -> Suspects:
        """Training labels that may be wrong, most suspicious first, each with the reasons against it.

        k: how many, no more than there are training instances; 20 without it, or all of a smaller set.
        cases: a labelled set, as the test set: its wrong predictions accuse their first five precedents,
            which is a reason more and changes no rank.
        """
        n = len(self.subject.train)
        k = min(SUSPECTS, n) if k is None else checked_k(k, n)
        with self._reading():
            squares, accusers, said = self._accusations(cases)
            found = evidence(self.relevance, squares, accusers)
            worst, portrayal = most_suspicious(found, k), self._portrayal
            texts = portrayal.texts(worst[:SHOWN])
        return Suspects(self.name, found, worst, portrayal, cases is not None, said, texts)

    def _accusations(self, cases: Any) -> tuple[Tensor, list[list[int]], list[str]]:
        """The squared lengths of the training instances, and for each the wrong predictions that accuse it.

        With them what is said of wrong predictions that accuse nobody.
        """
        n = len(self.subject.train)
        if cases is None:
            return own_squares(self.relevance), [], []
        given = self.subject.test(cases)
        wrong = wrong_cases(given, self.subject.predicted(given).labels)
        if not wrong:
            return own_squares(self.relevance), [[] for _ in range(n)], []
        ranked = self._ranked(self.subject.cases(given.selected(wrong)), min(ACCUSED, n))
        squares = own_squares(self.relevance) if ranked.lengths is None else ranked.lengths.square()
        unranked = Doubts.of(ranked).unranked
        return squares, accusers_of(ranked.top, wrong, unranked, n), left_out(unranked, self.name)

    @door
    def contrast(self, x: Any, one: Any, other: Any, k: int = 5) -> Contrast:
        """The precedents of a case for each of two classes side by side, and what separates them; one pass.

        x: one case, as for `explain`.
        one, other: two classes, by name or number; for example the predicted and the right one.
        k: how many precedents for each; all of a class that has fewer, since classes differ in size.
        """
        case = self.subject.cases(x)
        if len(case) > 1:
            raise InputError(f"There are {len(case)} cases. Pass one: contrast({first_of(x)}, one, other).")
        sides = two_classes(self.subject.class_of, one, other)
        k = whole_number(k, "k")
        with self._reading():
            found = contrast(self.relevance, case, sides, k, Portrayal(self.subject), self.name)
        doubted = found.doubts.remarks(self.name, self.relevance.metric.features is gradient)
        (cautions,) = self._remarks(x, case.take([0]).inputs, [[*dict.fromkeys(chain(*doubted))]])
        return replace(found, cautions=cautions)

    @door
    def answers(self, j: Any, cases: Any, k: int = 5) -> Answers:
        """Which cases training instances are precedents of; `.hubs` are those that answer very many.

        j: the place of a training instance, or its id if that is a text, or a list of them; a number is always
            a place. None for all that are the first precedent of a case, those first that answer most.
        cases: as for `explain`.
        k: among how many first precedents an instance must be; no more than there are training instances.
        """
        train = self.subject.train
        j, k = j.item() if getattr(j, "ndim", None) == 0 else j, checked_k(k, len(train))
        asked_for = [] if j is None else several(j, "j", int, float)
        places = None if j is None else [place_of(each, train.ids, len(train), "j") for each in asked_for]
        asked = self.subject.cases(cases)
        found = Answers(self.name, places or [], asked, *self.precedents_of(asked, k), self._portrayal)
        return found if places is not None else replace(found, indices=list(found.counts))

    @door
    def near_duplicates(self, test: Any = None, *, least: float | None = None) -> NearDuplicates:
        """Instances that are the same or nearly, within the training set and between it and a test set.

        test: a labelled set, as for `precedents.audit`.
        least: how alike near duplicates are, from 0 to 1; the answer says by which rule. Without it, three
            times nearer than an instance and its nearest are as a rule, but from 0.95 to 0.99.
        """
        given = None if test is None else self.subject.test(test)
        if given is not None:
            self.subject.predicted(given)  # what the model cannot take is refused
        return near_duplicates(self._portrayal, given, least)

    @door
    def groups(self, cases: Any, by: Any = "prediction", k: int = 5, *, truth: Any = None) -> Groups:
        """The precedents of many cases summed up in groups: which there are most, and what they share.

        cases: as for `explain`, or a labelled set, as the test set; by "truth" or "error" the latter, unless
            `truth` has the right labels.
        by: "prediction", "truth", "error" (what was taken for what; right predictions are left out), or a name
            for each case, None for those that are left out.
        k: how many first precedents of a case count; no more than there are training instances.
        truth: the right labels of the cases.
        """
        by, k = checked_by(by), checked_k(k, len(self.subject.train))
        labelled = truth is None and isinstance(by, str) and by in ("truth", "error")
        given = self.subject.test(cases) if labelled else None
        asked = self._of_any(cases) if given is None else self.subject.cases(given)
        right = None if given is None else given.labels
        right = self.subject.numbers_of(truth, len(asked)) if truth is not None else right
        names = names_of(by, asked, right, self._portrayal)
        kept = [case for case, name in enumerate(names) if name is not None]
        found, said = [], list[str]()
        if kept:
            top, unranked = self.precedents_of(asked.selected(kept), k)
            rows = zip(kept, top.indices.tolist(), unranked.tolist(), strict=True)
            found = grouped(names, {case: row for case, row, lost in rows if not lost}, self._portrayal)
            said = left_out(unranked, self.name)
        return Groups(self.name, by if isinstance(by, str) else "name", k, found, asked, self._portrayal, said)

    def _of_any(self, cases: Any) -> Examples:
        """Cases as for `explain`, or those of a labelled set."""
        try:
            return self.subject.cases(cases)
        except InputError as error:
            try:
                return self.subject.cases(self.subject.test(cases))
            except PrecedentsError:
                raise error from None

"""Criterion: what a metric must satisfy to be believed, and what it says of itself.

`audit`, `judge`, the recommendation, the report, the command line and the documentation read from here which
way is better, what an audit runs of it, what it needs and how dear it is. A new criterion is a frozen dataclass
whose fields are its settings; it must say how it judges (`__call__`), and all else has a default.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import is_dataclass, replace
from inspect import getdoc
from typing import Any, ClassVar, Literal

from torch import Tensor

from precedents.classifier.classifier import Classifier
from precedents.criteria._result import Result
from precedents.criteria._trial import Trial
from precedents.criteria._verdict import HALF
from precedents.errors import InputError, NotApplicable
from precedents.metrics.metric import Metric
from precedents.registry import written
from precedents.runtime.door import door
from precedents.runtime.users_code import users
from precedents.runtime.wording import a_type

Better = Literal["higher", "zero"]
About = Literal["case", "train"]
Judge = Callable[[Trial, Metric], Result]


class Criterion(ABC):
    """A frozen dataclass; called with a trial and a metric, it gives the result or raises NotApplicable."""

    better: ClassVar[Better] = "higher"  # a success rate, or a correlation that is best at zero
    about: ClassVar[About] = "case"  # what its values are of: cases, or training instances asked about as such
    needs: ClassVar[Sequence[str]] = ()  # of a trial, one of these: "subclasses", "retrain"
    order: ClassVar[int] = 100  # its place in an audit, from the first; the name decides among equals

    def __init_subclass__(cls, **more: Any) -> None:
        """Its judgement is a public call."""
        super().__init_subclass__(**more)
        if "__call__" in vars(cls):
            cls.__call__ = door(cls.__call__)  # type: ignore[method-assign]

    @property
    def sentence(self) -> str:
        """What it asks of a metric, for the report page; without its own, the first line of its docstring."""
        return (getdoc(type(self)) or "").partition("\n")[0]

    @abstractmethod
    def __call__(self, trial: Trial, metric: Metric, /) -> Result:
        """One number per case and what they come to; `rate` makes it of successes.

        `trial` has the model, the training set and the cases; `trial.scores(metric)` is the relevance [m, n].
        """

    def variants(self, k: int) -> Sequence["Criterion"]:
        """What an audit runs of it when no criteria are named: itself, and with this `k` if it has one.

        `k` is how many precedents the audit looks at.
        """
        return (self, replace(self, k=k)) if is_dataclass(self) and hasattr(self, "k") else (self,)

    def is_given(self, trial: Trial) -> bool:
        """Whether the trial has what the criterion needs; if not, an audit runs it only where it is named."""
        return not self.needs or any(getattr(trial, need) is not None for need in self.needs)

    def inapplicable(self, trial: Trial) -> str | None:
        """The reason why no metric has a result on this trial; none if it applies."""
        return None if self.is_given(trial) else f"Not given: {' or '.join(self.needs)}."

    def rounds(self, trial: Trial) -> Mapping[tuple[str, str], int]:
        """How dear it is on a `trial`: how many cases it compares, by model and by kind of cases.

        Criteria that compare the same cases under the same model share the work.
        """
        return {("trained", "cases"): len(trial.cases)}

    def trials(self, trial: Trial) -> Iterable[Trial]:
        """The trials whose scores it looks at, of a `trial`: an audit makes those of one model together."""
        return [trial]

    @property
    def fewest(self) -> int:
        """How many training instances there must be: its `k`, if it has one."""
        return int(getattr(self, "k", 1))

    def prepared(self, trial: Trial) -> None:
        """Makes what is to be made once, before work is shared out: it travels with the `trial`.

        That is the model of merged classes, where the criterion needs it.
        """
        if "retrain" in self.needs and trial.subclasses is None and trial.retrain is not None:
            trial.merged(getattr(self, "seed", 0))

    def others(self, trial: Trial) -> Mapping[str, Classifier]:  # noqa: ARG002
        """Models beside that of the `trial` that results come from, by words for what made them.

        What an audit keeps is not read where one of them has become another: the words say which.
        """
        return {}

    def explained(self, result: Result, _metric: str, /) -> str:
        """Why a result of it is weak or failed, in a sentence, for who has not read the paper.

        It is called with the result and the name of the metric. Numbers stand beside it in the table: without
        them, metrics share a sentence.
        """
        if self.better == "zero":
            return "The values are not near zero."
        half = "below one half" if result.mean < HALF else "too low to pass"
        return like_chance(result) or f"The success rate is {half}."

    @property
    def lack(self) -> str:
        """What is so of an instance that fails it, after "In these cases"; empty if there is nothing to say."""
        return ""

    def failing(self, result: Result) -> Tensor:
        """Which of the instances that the `result` is of failed it [m]."""
        return result.values < 1

    @property
    def counts(self) -> bool:
        """Whether it counts for the success rate of a metric, which is the least of those that do."""
        return False


def like_chance(result: Result) -> str:
    """A sentence where a success rate is not told from drawing at random; empty where it is."""
    if result.mean <= result.chance:
        return "It does no better than drawing training instances at random."
    few = "So few cases do not tell it from drawing training instances at random."
    return few if result.low <= result.chance else ""


def lacking(result: Result, lack: str) -> str:
    """Why a rate of yes and no is weak or failed; `lack` is what is so where a case does not succeed.

    >>> from torch import tensor
    >>> from precedents.criteria._result import rate
    >>> lacking(rate("often", tensor([1, 1, 0, 1] * 50), 0.1, 0.95), "it is another")
    'In some of the cases it is another.'
    """
    often = "more than half" if result.mean < HALF else "some"
    by_chance = like_chance(result) if result.mean >= HALF else ""
    return by_chance or f"In {often} of the cases {lack}."


class Unlisted(Criterion):
    """A criterion of no file: a function that a user passes, or a text of which nothing else is known.

    `text` is its name and `judge` what is called; all that it says of itself is the default.
    """

    sentence = ""

    def __init__(self, text: str, judge: Judge | None = None) -> None:
        self.__name__ = text
        self.judge = judge

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unlisted) and (self.__name__, self.judge) == (other.__name__, other.judge)

    def __hash__(self) -> int:
        return hash((self.__name__, self.judge))

    def explained(self, _result: Result, _metric: str, /) -> str:
        """Nothing: what its numbers mean is not known here."""
        return ""

    @classmethod
    def of(cls, judge: Judge) -> "Unlisted":
        """The criterion that a function is: called with a trial and a metric, it gives a result."""
        return cls(written(judge), judge)

    def __call__(self, trial: Trial, metric: Metric) -> Result:
        """What the function gives."""
        if self.judge is None:
            raise NotApplicable(f"No criterion is named {self.__name__}.")
        with users(f"the criterion {self.__name__}", "It is called with a trial and a metric"):
            found = self.judge(trial, metric)
        if not isinstance(found, Result):
            raise InputError(f"The criterion {self.__name__} returned {a_type(found)}. Return a Result.")
        return found

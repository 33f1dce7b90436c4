"""Limits: what an audit may take, why a metric is left out, and the time of an audit as it passes."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf

from precedents.criteria._judgement import Inapplicable
from precedents.errors import InputError
from precedents.runtime.deadline import ending
from precedents.runtime.given import real
from precedents.runtime.progress import duration

WITHIN = "1 h"  # that all work of an audit may take, unless something else is said
UNITS = {"": 1, "s": 1, "min": 60, "h": 3600, "d": 86400}
SURE = 2.0  # how many times more than can be afforded an estimate must be: it may be off itself
TRUST = 0.02  # the share of all time that estimates count for beside what the finished work took,
MOST = 4.0  # and times its estimate that any of it counts for: what nobody expected says little of the rest


@dataclass(frozen=True)
class Limits:
    """How many seconds explaining one case may take, and how many all work; none for any."""

    afford: float | None = None
    within: float | None = None
    before: float = 0.0  # seconds that passed before the work began: data are read, the model is looked at

    @classmethod
    def of(cls, afford: float | None = None, within: float | str | None = WITHIN) -> "Limits":
        """Refuses what is no time."""
        if afford is not None:
            afford = real(afford, "afford", "Pass the seconds that explaining one case may take, as 0.5")
        return cls(afford, None if within is None else seconds_of(within))

    def dear(self, first: float) -> Inapplicable | None:
        """The reason, if explaining one case from the start is estimated to take far too many seconds."""
        if self.afford is None or first <= SURE * self.afford:
            return None
        more = f"Explaining one case would take far more than the {duration(self.afford)} that can be afforded."
        return Inapplicable(f"{more} Pass a larger afford.", "left out")

    def late(self, spent: float, seconds: float) -> Inapplicable | None:
        """The reason, if so many estimated seconds more are too many after those that are spent."""
        if self.within is None or self.before + spent + seconds <= self.within:
            return None
        more = f"The work does not fit into the {duration(self.within)} that the audit may take."
        return Inapplicable(f"{more} Allow more, as within='10 h', or name fewer metrics.", "left out")


class Time:
    """The time of an audit as it passes, and how much longer its work takes than it was estimated to."""

    def __init__(self, limits: Limits, clock: Callable[[], float], began: float | None = None) -> None:
        self.limits, self.clock = limits, clock
        self.began = clock() if began is None else began
        self.took = self.expected = 0.0  # seconds of finished work, and those that it was estimated to take

    @property
    def slower(self) -> float:
        """How many times: little work says little."""
        trust = TRUST * (self.limits.within or inf)
        return 1.0 if trust == inf else max(1.0, (self.took + trust) / (self.expected + trust))

    def late(self, seconds: float = 0.0) -> Inapplicable | None:
        """The reason, if work of so many estimated seconds cannot end in what is left."""
        return self.limits.late(self.clock() - self.began, self.slower * seconds)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Work within is broken off, between two of its steps, when the time is over."""
        with ending(lambda: over.reason if (over := self.late()) else None):
            yield

    @contextmanager
    def of(self, seconds: float) -> Iterator[None]:
        """So is a piece of so many estimated seconds, which says how much longer work takes."""
        began = self.clock()
        with self.held():
            yield
        self.took += min(self.clock() - began, MOST * seconds)
        self.expected += seconds


def seconds_of(given: float | str) -> float:
    """Seconds from a number of them or a text such as "10 min".

    >>> seconds_of("10 min"), seconds_of(2.5), seconds_of("1.5 h")
    (600.0, 2.5, 5400.0)
    """
    text = re.fullmatch(r"\s*(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)\s*([a-z]*)\s*", str(given))
    if text is None or text[2] not in UNITS or not 0 < float(text[1]) < inf:
        raise InputError(f"within is {given!r}. Pass seconds or a text such as '10 min', or None for any time.")
    return float(text[1]) * UNITS[text[2]]

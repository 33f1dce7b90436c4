"""Engine: runs a pure function for some tasks, each at least once, in any order.

Work is a function of one task that changes nothing but the files that it writes whole: it may be begun twice,
and in any process. Each task computes with one thread of torch, so that no number depends on the engine. What a
task returns comes back with it; what it raises is raised, is not tried again, and ends the run. A task whose
worker dies is tried again. Nothing else is known of a run than its results: who is killed starts it anew with
the tasks that are left.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import cpu_count
from typing import Any, ClassVar, TypeVar

from precedents.errors import BudgetError
from precedents.runtime.engines._travel import packed, packed_work
from precedents.runtime.progress import Tell

T = TypeVar("T")
R = TypeVar("R")

RETRIES = 3  # times that a task is tried again whose worker died


@dataclass(frozen=True, eq=False)
class Job:
    """What an engine has to run: the work and its tasks, as they are, and as bytes that can travel."""

    work: Callable[[Any], Any]
    tasks: Sequence[Any]

    @cached_property
    def packed(self) -> bytes:
        """The work, for `carried_out`; what cannot travel is refused."""
        return packed_work(self.work)

    @cached_property
    def packed_tasks(self) -> list[bytes]:
        """The tasks, for `carried_out`."""
        return [packed(task, "A task") for task in self.tasks]

    def checked(self) -> None:
        """Refuses what cannot travel, before any worker is started."""
        _ = self.packed, self.packed_tasks


class Engine(ABC):
    """Runs work. An engine is a frozen dataclass, whose fields are its settings, with the method `results`.

    >>> from precedents.runtime.engines._find import engine_of
    >>> dict(engine_of("serial").run(abs, [-1, 2]))
    {-1: 1, 2: 2}
    """

    package: ClassVar[str | None] = None  # that it needs; the extra has the engine's name
    apart: ClassVar[bool] = True  # whether tasks run in other processes, which may die

    @property
    def at_once(self) -> int:
        """How many tasks one machine has at a time, as far as it is known here."""
        return (getattr(self, "workers", 0) or cpu_count() or 1) if self.apart else 1

    @property
    def elsewhere(self) -> int:
        """How many tasks workers have at a time that have to start first; 0 where tasks run in this process."""
        return self.at_once if self.apart else 0

    @abstractmethod
    def results(self, job: Job, tell: Tell | None) -> Iterator[tuple[int, Any]]:
        """Of each task its place and what the work gives for it, as they end. `tell` is as for `run`.

        An engine whose workers are elsewhere has them do `carried_out(job.packed, task, tell)` for each of
        `job.packed_tasks`, and reads what comes back by `opened`. When the iterator is closed, what is at work
        is stopped.
        """

    def run(
        self, work: Callable[[T], R], tasks: Sequence[T], tell: Tell | None = None
    ) -> Iterator[tuple[T, R]]:
        """Each task with what the work gives for it, as they end; what a task raises is raised.

        `work` is a pure function, `tasks` are plain values. `tell` is given lines with the progress within
        tasks.
        """
        done: set[int] = set()
        if tasks:
            job = Job(work, tasks)
            if self.apart:
                job.checked()
            for place, result in self.results(job, tell):
                if place not in done:
                    done.add(place)
                    yield tasks[place], result


def died(how: str = "was killed, as systems do when memory is short") -> BudgetError:
    """The error about a task whose worker died each time that it was tried; `how` it died."""
    return BudgetError(
        f"A worker {how}, {RETRIES + 1} times with the same task. What was finished is kept. Start again with "
        "fewer workers or less memory for each."
    )

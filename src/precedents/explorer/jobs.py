"""JobQueue: what takes long is computed by one thread, one thing after the other, and tells how far it is.

Eight may wait; who asks for what is asked for already joins it; beyond that one is told to come again. A job
ends when the last page that waits for it is left, unless it is lasting. A page waits by asking again and again:
short answers, because a browser has six connections for all of its pages, and streams would take them.
"""

from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from itertools import count
from threading import Condition, Thread
from time import monotonic
from typing import Any

from precedents.explorer.guard import refused
from precedents.explorer.safety import Refusal

WAITING = 8  # jobs
LEASE, SOON = 90.0, 2.0  # seconds until a page that waits asks again, also a hidden one; and after one is left
KEPT = 64  # finished ones that can still be asked about
FILL = "fill"  # the key of the look at both sets and all cases
OVER = ("done", "failed", "cancelled")
BUSY = "Eight questions are waiting to be computed already. Try again when one is answered."


class JobCancelled(Exception):  # noqa: N818  what was wanted
    """Nobody waits for it any more."""


@dataclass(eq=False)
class QueuedJob:
    """One piece of work."""

    number: int
    key: Hashable
    title: str
    work: Callable[["QueuedJob"], Any] = field(repr=False)
    lasting: bool = False  # whether it goes on when nobody waits for it
    state: str = "waiting"  # running | done | failed | cancelled
    done: int = 0
    total: int = 0
    began: float = field(default_factory=monotonic)
    said: str = ""  # why it failed
    result: Any = None
    listeners: int = 0  # to its events
    until: float | None = None  # when nobody waits any more, unless somebody asks again
    ending: bool = False

    def asked(self) -> None:
        """A page waits for it."""
        self.until = monotonic() + LEASE

    def let_go(self) -> None:
        """A page does not wait any more; others ask again soon."""
        if self.until is not None:
            self.until = min(self.until, monotonic() + SOON)

    @property
    def abandoned(self) -> bool:
        """Whether somebody waited for it, and nobody does."""
        return not self.lasting and not self.listeners and self.until is not None and monotonic() >= self.until

    def step(self, done: int, total: int, title: str | None = None) -> None:
        """Says how far it is; ends here if nobody waits for it."""
        if self.ending or self.abandoned:
            raise JobCancelled
        if title is not None and title != self.title:
            self.title, self.began = title, monotonic()
        self.done, self.total = done, total

    @property
    def left(self) -> float | None:
        """Seconds that it will take, as far as is known."""
        spent = monotonic() - self.began
        if self.state != "running" or not self.done or spent < 1:
            return None
        return spent / self.done * (self.total - self.done)

    def told(self) -> dict[str, Any]:
        """Plain values about it."""
        left = self.left
        return {
            "job": self.number,
            "title": self.title,
            "state": self.state,
            "done": self.done,
            "total": self.total,
            "left": None if left is None else round(left, 1),
            "said": self.said,
        }


class JobQueue:
    """All jobs of an explorer, and the thread that computes them."""

    def __init__(self) -> None:
        self.every: dict[int, QueuedJob] = {}
        self._waiting: deque[QueuedJob] = deque()
        self._running: QueuedJob | None = None
        self._changed = Condition()
        self._numbers = count(1)
        self._closed = False
        self._thread = Thread(target=self._work, name="precedents explorer", daemon=True)
        self._thread.start()

    def ask(
        self, key: Hashable, title: str, work: Callable[[QueuedJob], Any], *, lasting: bool = False
    ) -> QueuedJob:
        """The job of this key, a new one unless one is at work on it; too many are refused."""
        with self._changed:
            for job in (*self._waiting, *([self._running] if self._running else [])):
                if job.key == key and not job.ending:
                    return job
            self._swept()
            if self.full:
                raise Refusal(429, BUSY)
            job = QueuedJob(next(self._numbers), key, title, work, lasting)
            self.every[job.number] = job
            self._waiting.append(job)
            self._forget()
            self._changed.notify_all()
            return job

    @property
    def full(self) -> bool:
        """Whether no more can wait."""
        return len(self._waiting) >= WAITING

    def cancel(self, job: QueuedJob) -> None:
        """Ends a job: at once if it waits, else at its next step."""
        with self._changed:
            job.ending = True
            if job in self._waiting:
                self._waiting.remove(job)
                job.state = "cancelled"

    def left(self, job: QueuedJob) -> None:
        """Who listened to its events has gone."""
        job.listeners -= 1
        if job.until is None:
            job.until = monotonic()
        if job.abandoned and job.state not in OVER:
            self.cancel(job)

    def close(self) -> None:
        """Ends all jobs and the thread."""
        with self._changed:
            self._closed = True
            for job in (*self._waiting, *([self._running] if self._running else [])):
                job.ending = True
            self._waiting.clear()
            self._changed.notify_all()
        self._thread.join(timeout=10)

    def _forget(self) -> None:
        over = [number for number, job in self.every.items() if job.state in OVER]
        for number in over[: max(0, len(over) - KEPT)]:
            del self.every[number]

    def _work(self) -> None:
        while (job := self._next()) is not None:
            _ended(job)
            with self._changed:
                self._running = None

    def _next(self) -> QueuedJob | None:
        with self._changed:
            self._swept()
            while not self._waiting and not self._closed:
                self._changed.wait()
                self._swept()
            if self._closed:
                return None
            self._running = job = self._waiting.popleft()
            job.state, job.began = "running", monotonic()
            return job

    def _swept(self) -> None:
        """Takes those out that nobody waits for any more."""
        for job in [job for job in self._waiting if job.abandoned]:
            self._waiting.remove(job)
            job.state = "cancelled"


def _ended(job: QueuedJob) -> None:
    """Does the work of a job, however it ends."""
    try:
        job.result = job.work(job)
        job.state = "done"
    except JobCancelled:
        job.state = "cancelled"
    except Exception as error:
        job.said = refused(error).text
        job.state = "failed"

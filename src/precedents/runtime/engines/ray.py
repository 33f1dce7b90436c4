"""On a Ray cluster: one of this machine's own, or one that is there."""

import logging
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from os import environ
from socket import create_connection
from typing import Any, ClassVar

from precedents.errors import InputError
from precedents.runtime.engines._engine import RETRIES, Engine, Job, died
from precedents.runtime.engines._travel import carried_out, opened
from precedents.runtime.progress import Tell
from precedents.runtime.users_code import why

SECONDS = 1.0  # after which lines are read, if no task ends
ANSWER = 10.0  # seconds in which a cluster answers


@dataclass(frozen=True)
class Ray(Engine):
    """A task is a task of Ray with one CPU; if this process is connected to Ray already, that is used."""

    package: ClassVar[str | None] = "ray"
    address: str = ""  # of a cluster that is there, as ray.init takes it: auto, ray://host:10001
    workers: int = 0  # tasks at a time; 0 for as many as there are CPUs

    def results(self, job: Job, tell: Tell | None) -> Iterator[tuple[int, Any]]:
        """As they end; Ray itself tries again what a dead worker or node was at."""
        import ray

        left = deque(enumerate(job.packed_tasks))
        with _connected(self.address, self.workers):
            lines = None if tell is None else ray.remote(num_cpus=0)(Lines).remote()
            begin = partial(ray.remote(num_cpus=1, max_retries=RETRIES)(_done).remote, ray.put(job.packed))
            begun: dict[Any, int] = {}
            heard = 0
            try:
                while left or begun:
                    while left and len(begun) < (self.workers or len(job.tasks)):
                        place, task = left.popleft()
                        begun[begin(task, lines)] = place
                    for ended in ray.wait(list(begun), timeout=SECONDS)[0]:
                        yield begun.pop(ended), opened(_outcome(ended))
                    heard += _tell(lines, tell, heard, SECONDS if begun else ANSWER)
            finally:
                for each in begun:
                    ray.cancel(each, force=True)


class Lines:
    """An actor that keeps lines of progress."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def put(self, line: str) -> None:
        """One line more."""
        self.lines.append(line)

    def after(self, heard: int) -> list[str]:
        """All that came after so many."""
        return self.lines[heard:]


def _done(work: bytes, task: bytes, lines: Any) -> bytes:
    """In a worker; a task ends when its lines are there, unless nobody takes them."""
    if lines is None:
        return carried_out(work, task, None)
    import ray

    last: deque[Any] = deque(maxlen=1)
    outcome = carried_out(work, task, lambda line: last.append(lines.put.remote(line)))
    if last:
        ray.wait(list(last), timeout=ANSWER)
    return outcome


def _outcome(task: Any) -> bytes:
    import ray

    try:
        return bytes(ray.get(task))
    except ray.exceptions.RayError as error:
        raise died(f"or its node died ({why(error)})") from error


def _tell(lines: Any, tell: Tell | None, heard: int, seconds: float) -> int:
    """How many lines there were after those that were heard; they are lost with the node that keeps them."""
    import ray

    new: list[str] = []
    if tell is not None:
        with suppress(ray.exceptions.RayError):
            new = ray.get(lines.after.remote(heard), timeout=seconds)
        for line in new:
            tell(line)
    return len(new)


@contextmanager
def _connected(address: str, workers: int) -> Iterator[None]:
    """Ray within; what was connected before stays so."""
    environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is reported to anybody
    environ.setdefault("RAY_TQDM_PATCH_PRINT", "0")  # print stays Python's own
    import ray

    if ray.is_initialized():
        yield
        return
    local: dict[str, Any] = {} if address else {"num_cpus": workers or None, "include_dashboard": False}
    try:
        _tried(address)
        ray.init(address or "local", log_to_driver=False, logging_level=logging.ERROR, **local)
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(
            f"No Ray cluster answers at {address or 'this machine'}: {why(error).rstrip('.')}. Start one by "
            "`ray start --head`, and pass its address."
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


def _tried(address: str) -> None:
    """An OSError if nobody listens at host:port, for which Ray would wait for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        create_connection((host, int(port)), timeout=ANSWER).close()


ray = Ray()

"""In this process, one task after the other."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from precedents.runtime.engines._engine import Engine, Job
from precedents.runtime.progress import Tell, told


@dataclass(frozen=True)
class Serial(Engine):
    """Nothing travels: whatever the work holds is used as it is."""

    apart: ClassVar[bool] = False

    def results(self, job: Job, tell: Tell | None) -> Iterator[tuple[int, Any]]:
        """In the order of the tasks."""
        for place, task in enumerate(job.tasks):
            with one_thread(), told(tell):
                result = job.work(task)
            yield place, result


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch computes with one thread within, as it does in workers."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


serial = Serial()

"""Share: the tasks that are one job's of an array of jobs, as schedulers of clusters start them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from precedents.errors import InputError

T = TypeVar("T")


@dataclass(frozen=True)
class Share:
    """Which of how many jobs this is, from 1.

    >>> Share.of("2/3").of_all([10, 11, 12, 13, 14])
    [11, 14]
    """

    number: int = 1
    jobs: int = 1

    @classmethod
    def of(cls, text: str | None) -> "Share":
        """From a text such as 7/64; without one, all."""
        if text is None:
            return cls()
        found = re.fullmatch(r"\s*(\d+)\s*/\s*(\d+)\s*", text, re.ASCII)
        share = cls(int(found[1]), int(found[2])) if found else cls(0)
        if not 1 <= share.number <= share.jobs:
            raise InputError(f"shard is {text!r}. Write which of how many, from 1 on, as 7/64.")
        return share

    def __str__(self) -> str:
        """Words to be added to what was done; none where it is all."""
        return "" if self.jobs == 1 else f", of which share {self.number} of {self.jobs}"

    def of_all(self, tasks: Sequence[T]) -> list[T]:
        """Every so manieth of the tasks: together, the jobs have each once."""
        return list(tasks[self.number - 1 :: self.jobs])

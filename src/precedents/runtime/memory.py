"""Memory as a budget: what may be used, how large blocks are, and a refusal before work that cannot fit."""

import re
from dataclasses import dataclass

import psutil
import torch

from precedents.errors import BudgetError, InputError

NUMBER = torch.finfo(torch.double).bits // 8
UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
KEPT = 2**30  # bytes of features that are kept for the next question, at most
BLOCK = 31 * 2**20  # bytes of a block of features: the allocator gives the same memory again up to here
ENOUGH = 128  # rows of a block that make a matrix product fast


@dataclass(frozen=True)
class Budget:
    """How many bytes may be used; none given means half of what is free when it is asked."""

    given: int | None = None

    @classmethod
    def of(cls, memory: "int | str | Budget | None") -> "Budget":
        """From a number of bytes or a text such as "200 MB"."""
        if memory is None or isinstance(memory, Budget):
            return memory or cls()
        text = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([a-zA-Z]*)\s*", str(memory))
        if text is None or text[2].upper() not in UNITS or float(text[1]) <= 0:
            raise InputError(f"memory is {memory!r}. Pass a number of bytes or a text such as '2 GB'.")
        return cls(int(float(text[1]) * UNITS[text[2].upper()]))

    @property
    def bytes(self) -> int:
        """What may be used now."""
        return self.given if self.given is not None else available() // 2

    def rows(self, width: int, number: int = NUMBER, most: int = 1024) -> int:
        """How many rows of this width, of numbers of this many bytes, make a block."""
        row = number * max(1, width)
        return max(1, min(most, max(ENOUGH, BLOCK // row), self.bytes // (8 * row)))

    def keeps(self, count: int) -> bool:
        """Whether features of so many bytes are kept for the next question."""
        return count <= min(KEPT, self.bytes // 4)

    def required(self, count: int, what: str, instead: str) -> None:
        """Refuses work that needs more bytes than there are."""
        if count > self.bytes:
            there = "the budget is" if self.given is not None else "half of the free memory is"
            raise BudgetError(f"{what} needs {readable(count)}, but {there} {readable(self.bytes)}. {instead}")


def available() -> int:
    """Bytes of memory that are free to use now."""
    return int(psutil.virtual_memory().available)


def readable(count: float) -> str:
    """A number of bytes for people: 1.2 GiB."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:.3g} GiB"

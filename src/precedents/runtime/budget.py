"""Memory as a budget: what may be used, how large blocks are, and a refusal before work that cannot fit."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from weakref import finalize

import psutil
import torch

from precedents.errors import BudgetError, InputError
from precedents.runtime.guards import Guard
from precedents.runtime.wording import readable
from precedents.seen import clipped

FLOAT64 = torch.finfo(torch.double).bits // 8
UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
KEPT = 2**30  # bytes of features that are kept for the next question, at most,
FEWER = 2**25  # and of those of a set that is streamed, whose size should not be felt
BLOCK = 48 * 2**20  # bytes of a block of features
ENOUGH = 128  # rows of a block that make a matrix product fast
FEW = 32  # rows of a block that make it not much slower
BULK = 2**28  # bytes of a block from which on few rows are better: the first use of memory is slow
MOST = 1536  # rows of a block, and instances of a pass,
MANY = 8192  # where they are sparse
MOST_NAMED = 1e15  # of any unit
COUNTED = 2**20  # bytes from which on what is held is counted
CONSTANT = 96 * 2**20  # bytes that may be used beside a budget: Python's objects, workspaces of the libraries
GROUP = Path("/sys/fs/cgroup")  # where Linux says what a container may use,
WHOLE = Path("/proc/meminfo")  # and what the machine has


TAKING = Guard()  # from a budget that is shared


class Owner(Protocol):
    """Who holds what can be made again."""

    def put_away(self) -> None:
        """Frees it."""


class Held:
    """How many bytes of a budget are in use for as long as their owners live: copies of models."""

    def __init__(self) -> None:
        self.bytes = 0

    def until_gone(self, owner: Any, count: int) -> None:
        """Counts so many bytes while the owner is there, if they are many."""
        if count >= COUNTED:
            self.bytes += count
            finalize(owner, self._free, count).atexit = False

    def _free(self, count: int) -> None:
        self.bytes -= count


@dataclass(frozen=True)
class Budget:
    """How many bytes may be used; none given means half of what is free when it is asked, or a share of it."""

    given: int | None = None
    held: Held = field(default_factory=Held, compare=False, repr=False)
    sharers: int = 1  # processes of this machine that share what is free

    @classmethod
    def of(cls, memory: "int | str | Budget | None") -> "Budget":
        """From a number of bytes or a text such as "200 MB"."""
        if memory is None or isinstance(memory, Budget):
            return memory or cls()
        text = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([a-zA-Z]*)\s*", str(memory))
        if text is None or text[2].upper() not in UNITS or not 0 < float(text[1]) < MOST_NAMED:
            raise InputError(
                f"memory is {clipped(str(memory))!r}. Pass a number of bytes or a text such as '2 GB'."
            )
        return cls(int(float(text[1]) * UNITS[text[2].upper()]))

    @property
    def bytes(self) -> int:
        """What may be used now."""
        return (
            max(0, self.given - self.held.bytes)
            if self.given is not None
            else available() // (2 * self.sharers)
        )

    def rows(self, width: int, itemsize: int = FLOAT64, stored: int | None = None) -> int:
        """How many rows of this width, of numbers of this many bytes, make a block.

        `stored` is how many numbers of a row are stored, if that is another count: the rest is not formed.
        """
        row, kept = (itemsize * max(1, numbers) for numbers in (width, width if stored is None else stored))
        enough = min(ENOUGH, max(FEW, BULK // row))
        return max(1, min(MOST, max(enough, BLOCK // kept), self.bytes // (8 * kept)))

    def unformed(self, row: int, most: int = MOST) -> int:
        """How many rows of so many bytes make a block, if they are never formed: a sixth of the budget."""
        return max(1, min(most, max(ENOUGH, BLOCK // max(1, row)), self.bytes // (6 * max(1, row))))

    def kept(self, streamed: bool) -> int:
        """Bytes of features that are kept for the next question: few of a streamed set without a budget."""
        return min(FEWER if streamed and self.given is None else KEPT, self.bytes // 4)

    def fits(self, count: int, held: int) -> bool:
        """Whether so many bytes more may be used beside those that are held."""
        return count + (0 if self.given is None else held) <= self.bytes  # what is held is not free

    def bound(self, count: int, what: str, instead: str) -> None:
        """Refuses work that needs more bytes than there are, if they are many."""
        if count >= COUNTED:
            self.required(count, what, instead)

    def required(self, count: int, what: str, instead: str) -> None:
        """Refuses work that needs more bytes than there are."""
        if count <= self.bytes:
            return
        if self.given is None:
            whose = "half of the free memory" if self.sharers == 1 else "a worker's share of the free memory"
            need, there = count, f"{whose} is {readable(self.bytes)}"
        else:
            need, there = count + self.held.bytes, f"the budget is {readable(self.given)}"
        raise BudgetError(f"{what} needs {readable(need)}, but {there}. {instead}")


class SharedBudget:
    """What several owners hold of one budget; where one needs more, what others hold is put away."""

    def __init__(self) -> None:
        self._held: dict[Owner, int] = {}  # bytes; who asked last comes last
        self._light: dict[Owner, int] = {}  # of what is put away last

    def __reduce__(self) -> tuple[Any, ...]:
        """In another process, nobody holds anything yet."""
        return SharedBudget, ()

    def take(
        self, owner: Owner, count: int, budget: Budget, again: bool = False, light: Owner | None = None
    ) -> None:
        """Notes so many bytes more, for which there is room then as far as others held it.

        With `again`, also what the owner holds itself is put away if it must be: it can make it again. Bytes
        of something `light`, which took much to make and was made of what the owner holds, are put away last.
        """
        with TAKING.lock:
            held = self._held.pop(owner, 0)

            def full() -> bool:
                others = sum(self._held.values()) + sum(self._light.values())
                return not budget.fits(count, held + others)

            for other in list(self._held):
                if full():
                    other.put_away()
                    self._held.pop(other, None)
            if again and full():
                owner.put_away()
                held = 0
            for other in list(self._light):
                if full() and other is not light:
                    other.put_away()
                    self._light.pop(other, None)
            self._held[owner] = held + (count if light is None else 0)
            if light is not None:
                self._light[light] = self._light.pop(light, 0) + count


def available() -> int:
    """Bytes of memory that are free to use now, on this machine and in this container."""
    free = _free()
    try:
        most, used = ((GROUP / name).read_text().strip() for name in ("memory.max", "memory.current"))
        return free if most == "max" else max(0, min(free, int(most) - int(used)))
    except (OSError, ValueError):  # no container, or another system
        return free


def _free() -> int:
    """Bytes that are free to use on this machine; of Linux its own line, as this is asked often."""
    try:
        with WHOLE.open("rb") as told:
            line = next(line for line in told if line.startswith(b"MemAvailable:"))
            return 1024 * int(line.split()[1])
    except (OSError, StopIteration, ValueError, IndexError):  # another system
        return int(psutil.virtual_memory().available)

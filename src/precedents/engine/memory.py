"""How much memory there is, and what to do when it is not enough: say so before work starts."""

import psutil
import torch

from precedents.errors import InputError

BLOCK = 256 * 2**20  # bytes of one block of features
NUMBER = torch.finfo(torch.double).bits // 8


def available() -> int:
    """Bytes of memory that are free to use now."""
    return int(psutil.virtual_memory().available)


def readable(count: float) -> str:
    """A number of bytes for people: 1.2 GiB."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:.3g} GiB"


def required(count: int, what: str, instead: str) -> None:
    """Refuses work that needs `count` bytes when they are not there."""
    free = available()
    if count > free:
        raise InputError(f"{what} needs {readable(count)}, but {readable(free)} of memory are free. {instead}")


def rows_per_block(width: int, most: int = 512) -> int:
    """How many float64 rows of this width make a block."""
    return max(1, min(most, BLOCK // (NUMBER * max(1, width))))

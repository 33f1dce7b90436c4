"""Checkpoints: the partial sums of a long loop in a folder, so that a killed one goes on where it was.

Whoever has a folder says so (`kept_in`), and a loop asks for the steps that are left (`Resumed`). What is kept
belongs to a mark, of all that the sums are made of: a loop with another mark finds nothing and begins anew.

partial/MARK/sums.safetensors   the sums after some steps
partial/MARK/manifest.json      how many steps, and the checksum
"""

import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from shutil import rmtree
from time import monotonic
from typing import Generic, Protocol, TypeVar

from torch import Tensor

from precedents.errors import StoreError
from precedents.runtime.atomic import whole, written_to
from precedents.runtime.deadline import OVER
from precedents.runtime.tensor_files import TensorFiles

T = TypeVar("T")

EVERY = 30.0  # seconds between two writings, at least,
LIGHT = 20.0  # and as many times as a writing takes
PARTIAL, MANIFEST, SUMS = "partial", "manifest.json", "sums.safetensors"

_home: ContextVar[tuple[Path, str] | None] = ContextVar("home", default=None)  # a folder, and what it is of


@contextmanager
def kept_in(folder: Path | None, of: str = "") -> Iterator[None]:
    """Partial sums are kept in this folder within; `of` marks what all of them are made of."""
    before = _home.set(None if folder is None else (folder, of))
    try:
        yield
    finally:
        _home.reset(before)


def forget(folder: Path | None) -> None:
    """Removes what is kept in a folder: its sums are part of finished work."""
    if folder is not None:
        rmtree(folder / PARTIAL, ignore_errors=True)


class Sums(Protocol):
    """What a loop has added up so far."""

    def parts(self) -> Mapping[str, Tensor]:
        """All that the next steps depend on."""

    def put(self, parts: Mapping[str, Tensor]) -> None:
        """Takes up what `parts` gave."""


@dataclass(frozen=True, eq=False)
class InPlace:
    """Tensors that a loop adds to where they are."""

    tensors: Mapping[str, Tensor]

    def parts(self) -> Mapping[str, Tensor]:
        """The tensors."""
        return self.tensors

    def put(self, parts: Mapping[str, Tensor]) -> None:
        """Copies the values."""
        for name, tensor in self.tensors.items():
            tensor.copy_(parts[name])


class Resumed(Generic[T]):
    """The steps of a loop that are left, after its sums were brought to where a killed one had them.

    `mark` tells of what the sums are made; it is asked for where something is kept alone.

    >>> import torch
    >>> total = torch.zeros(1)
    >>> for step in Resumed([1, 2, 3], lambda: "1 + 2 + 3", InPlace({"total": total})):
    ...     total += step
    >>> total
    tensor([6.])
    """

    def __init__(self, steps: Sequence[T], mark: Callable[[], str], sums: Sums) -> None:
        self.steps, self.sums = steps, sums
        self.folder: Path | None = None
        self.done = 0
        if (home := _home.get()) is not None:
            name = blake2b(f"{home[1]} {mark()}".encode(), digest_size=16).hexdigest()
            self.folder = home[0] / PARTIAL / name
            self.done = _restored(self.folder, sums)

    def __len__(self) -> int:
        """How many are left."""
        return len(self.steps) - self.done

    def __iter__(self) -> Iterator[T]:
        began = latest = monotonic()
        pause = EVERY
        for done, step in enumerate(self.steps[self.done :], self.done + 1):
            ends = OVER.get()
            if self.folder is not None and done - 1 > self.done and ends and ends():
                self._write(done - 1)  # as nobody will take this step now
            yield step
            over = done == len(self.steps) and monotonic() - began >= EVERY
            if self.folder is not None and (over or monotonic() - latest >= pause):
                latest = monotonic()
                self._write(done)
                pause, latest = max(EVERY, LIGHT * (monotonic() - latest)), monotonic()

    def _write(self, done: int) -> None:
        assert self.folder is not None
        try:
            with whole(self.folder) as fresh:
                files = TensorFiles(fresh)
                files.write(self.sums.parts(), SUMS)
                written_to(fresh / MANIFEST, json.dumps({"done": done, "files": files.known}))
        except (OSError, StoreError) as error:
            warnings.warn(f"Partial sums cannot be kept: {error} The work goes on without.", stacklevel=2)
            self.folder = None


def _restored(folder: Path, sums: Sums) -> int:
    """How many steps the sums have now: none if nothing whole is there."""
    try:
        kept = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        sums.put(TensorFiles(folder, kept["files"]).read(SUMS))
        return int(kept["done"])
    except (OSError, StoreError, ValueError, KeyError, TypeError):
        return 0

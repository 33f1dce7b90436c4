"""Append-only log: a file of JSON lines (JSONL), one record each with its checksum, that survives kills.

Several processes may append to one file: each has it to itself while it adds a record, which is on the disk
before the call returns. A line that a full disk cut short is taken back. A last line that a kill cut short
has no end: it is not read, and is cut off before the next one, so that its piece of work is done again.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from precedents.errors import FormatError, StoreError
from precedents.runtime.atomic import complete
from precedents.runtime.locks import released, taken
from precedents.runtime.sealed import encoded, is_sealed, sealed, unsealed
from precedents.runtime.strict_json import loads, regular

T = TypeVar("T")
Separators = tuple[str, str]


@dataclass(frozen=True)
class Log:
    """The records of a file, which need not be there yet.

    `advice` says what to do about a damaged line; `separators` are those of JSON. With `strict`, every line
    has a checksum; otherwise lines are read that were written before there were any.
    """

    path: Path
    advice: str
    separators: Separators = (", ", ": ")
    strict: bool = True

    def line(self, record: Mapping[str, Any]) -> str:
        """A record as a line with its checksum; what JSON has no number for is a ValueError."""
        text = json.dumps(record, ensure_ascii=False, allow_nan=False, separators=self.separators)
        return sealed(text, *self.separators) + "\n"

    def append(self, record: Mapping[str, Any]) -> None:
        """Adds one record, whole and safe on the disk, or not at all, also while other processes add theirs."""
        line = encoded(self.line(record))
        try:
            with self._alone() as file:
                place = _whole_of(file)
                os.ftruncate(file, place)
                try:
                    complete(file, line)
                    os.fsync(file)
                except OSError:
                    os.ftruncate(file, place)
                    raise
        except OSError as error:
            raise StoreError(f"{self.path} cannot be added to: {error}. Make room, and go on.") from error

    def read(self, understood: Callable[[dict[str, Any]], T], start: int = 1) -> Iterator[T]:
        """What `understood` makes of each record from line `start` on; without a file there are none.

        A line that is no JSON object or has another checksum is damaged, and so is one that `understood`
        refuses by a KeyError, a TypeError or a ValueError.
        """
        *lines, tail = (regular(self.path).read_bytes() if self.path.exists() else b"").split(b"\n")
        if is_sealed(tail[:-1]) and not is_sealed(tail):  # it had an end
            raise self.damaged(len(lines) + 1)
        for number, line in enumerate(lines[start - 1 :], start):
            try:
                made = understood(self._record(line))
            except (KeyError, TypeError, ValueError):
                raise self.damaged(number) from None
            yield made

    def _record(self, line: bytes) -> dict[str, Any]:
        content = unsealed(line)
        if content is None and self.strict:
            raise ValueError("no checksum")
        record = loads(line if content is None else content)
        if not isinstance(record, dict):
            raise TypeError("no object")
        return record

    def mend(self) -> None:
        """Cuts off a last line without its end."""
        if self.path.exists():
            with self._alone() as file:
                os.ftruncate(file, _whole_of(file))

    def damaged(self, number: int) -> FormatError:
        """The error that names a line, counted from 1."""
        return FormatError(f"Line {number} of {self.path} is damaged. {self.advice}")

    @contextmanager
    def _alone(self) -> Iterator[int]:
        """The open file, which no other process adds to meanwhile."""
        file = os.open(regular(self.path), os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            taken(file, wait=True)
            yield file
        finally:
            released(file)


def _whole_of(file: int, step: int = 2**16) -> int:
    """How many bytes of a file are lines that have their end."""
    place = os.fstat(file).st_size
    while place > 0:
        start = max(0, place - step)
        found = os.pread(file, place - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        place = start
    return 0

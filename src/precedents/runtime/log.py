"""Append-only log: a file of JSON lines (JSONL), one record each, that survives kills.

Several processes may append to one file: a record goes to its end in one write and to the disk before the call
returns. A last line that a kill cut short has no end: it is not read, and `mend` cuts it off, so that its piece
of work is done again.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from precedents.errors import FormatError
from precedents.runtime.strict_json import loads, regular

T = TypeVar("T")


@dataclass(frozen=True)
class Log:
    """The records of a file, which need not be there yet.

    `advice` says what to do about a damaged line; `dumps` writes a record as one line of JSON.
    """

    path: Path
    advice: str
    dumps: Callable[[Any], str] = json.dumps

    def append(self, record: Mapping[str, Any]) -> None:
        """Adds one record, whole and safe on the disk, also while other processes add theirs."""
        line = self.dumps(record).encode() + b"\n"
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            while line:  # one write takes all of it, unless the disk is full
                line = line[os.write(file, line) :]
            os.fsync(file)
        finally:
            os.close(file)

    def read(self, understood: Callable[[dict[str, Any]], T], start: int = 1) -> Iterator[T]:
        """What `understood` makes of each record from line `start` on; without a file there are none.

        A line that is no JSON object is damaged, and so is one that `understood` refuses by a KeyError, a
        TypeError or a ValueError.
        """
        for number, line in enumerate(self._whole().splitlines()[start - 1 :], start):
            try:
                record = loads(line)
                if not isinstance(record, dict):
                    raise TypeError
                made = understood(record)
            except (KeyError, TypeError, ValueError):
                raise self.damaged(number) from None
            yield made

    def mend(self) -> None:
        """Cuts off a last line without its end. Only for when no other process appends."""
        whole = len(self._whole())
        if self.path.exists() and whole < self.path.stat().st_size:
            os.truncate(self.path, whole)

    def damaged(self, number: int) -> FormatError:
        """The error that names a line, counted from 1."""
        return FormatError(f"Line {number} of {self.path} is damaged. {self.advice}")

    def _whole(self) -> bytes:
        """All lines that have their end."""
        content = regular(self.path).read_bytes() if self.path.exists() else b""
        return content[: content.rfind(b"\n") + 1]

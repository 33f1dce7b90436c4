"""Results as lines of JSON: appended, never changed."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from precedents.runtime.log import Log

Record = dict[str, Any]


def now() -> str:
    """The time, to the second."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


@dataclass(frozen=True)
class Records:
    """A file of records, each with a `key`; one process appends at a time."""

    path: Path

    @property
    def log(self) -> Log:
        """The file as a log."""
        return Log(self.path, "Delete the line, and what it measured is measured again.", strict=False)

    def __iter__(self) -> Iterator[Record]:
        """The records in order; a line that was cut off when a run was killed is left out."""
        return self.log.read(dict)

    def append(self, record: Record) -> Record:
        """Writes one more line, in the place of one that was cut off."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.log.mend()
        self.log.append(record)
        return record

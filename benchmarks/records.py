"""Results as lines of JSON: appended, never changed."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

Record = dict[str, Any]


def now() -> str:
    """The time, to the second."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


@dataclass(frozen=True)
class Records:
    """A file of records, each with a `key`."""

    path: Path

    def __iter__(self) -> Iterator[Record]:
        """The records in order; a line that was cut off when a run was killed is left out."""
        if not self.path.exists():
            return
        for line in self.path.read_text().splitlines():
            if (record := _read(line)) is not None:
                yield record

    def append(self, record: Record) -> Record:
        """Writes one more line."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        whole = not self.path.exists() or self.path.read_bytes()[-1:] in (b"", b"\n")
        with self.path.open("a") as file:
            file.write(("" if whole else "\n") + json.dumps(record) + "\n")
        return record


def _read(line: str) -> Record | None:
    try:
        return json.loads(line)
    except json.JSONDecodeError:
        return None

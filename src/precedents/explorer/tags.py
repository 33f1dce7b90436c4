"""Tags: what a person notes of instances: a word, a better label; kept at once, and undone one by one.

They are of a training set and a test set, not of a model: another model of the same data finds them again.
"""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import Any

from precedents.errors import FormatError, InputError
from precedents.runtime.atomic import write
from precedents.runtime.sealed import sealed, unsealed
from precedents.runtime.strict_json import loads
from precedents.seen import escaped, uncomputed

NOTE = 500  # letters of a note
TAGS = ("wrong label", "look again", "drop", "good example")
MOST = 100_000  # tags


@dataclass(frozen=True)
class Tag:
    """What was noted of one instance."""

    set: str  # case | train
    place: int
    tag: str
    note: str = ""
    label: int | None = None  # a better one


@dataclass(eq=False)
class Tags:
    """All tags, the latest last."""

    path: Path | None
    fingerprints: Mapping[str, str]
    every: list[Tag] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock, repr=False)

    @classmethod
    def open(cls, folder: Path | None, known: Mapping[str, str]) -> "Tags":
        """The tags of the sets with these fingerprints in a folder; those of other sets are in other files."""
        marks = {name: known[name] for name in ("training set", "test set")}
        mark = blake2b("".join(marks.values()).encode(), digest_size=4).hexdigest()
        path = None if folder is None else folder / f"tags-{mark}.json"
        tags = cls(path, marks)
        if path is not None and path.is_file():
            tags.every = _read(path)
        return tags

    def add(self, *tags: Tag) -> None:
        """Notes them, in the place of the same tags of the same instances."""
        with self._lock:
            if len(self.every) + len(tags) > MOST:
                raise InputError(f"There can be {MOST} tags. Remove some first.")
            same = {(each.set, each.place, each.tag) for each in tags}
            kept = [each for each in self.every if (each.set, each.place, each.tag) not in same]
            self._keep([*kept, *tags])

    def remove(self, which: str, place: int, tag: str) -> None:
        """Takes a tag away."""
        with self._lock:
            self._keep([e for e in self.every if (e.set, e.place, e.tag) != (which, place, tag)])

    def undo(self) -> Tag | None:
        """Takes the latest tag away."""
        with self._lock:
            if not self.every:
                return None
            *kept, last = self.every
            self._keep(kept)
            return last

    def of(self, which: str, place: int) -> list[Tag]:
        """The tags of one instance."""
        return [each for each in self.every if (each.set, each.place) == (which, place)]

    def places(self, which: str) -> list[int]:
        """The instances of a set that have tags, in order."""
        return sorted({each.place for each in self.every if each.set == which})

    def to_dict(self) -> dict[str, Any]:
        """Plain values with the fingerprints of both sets."""
        return {"fingerprints": dict(self.fingerprints), "tags": [asdict(each) for each in self.every]}

    def to_csv(self) -> str:
        """A table; what a spreadsheet would take for a formula begins with an apostrophe."""
        out = io.StringIO()
        rows = csv.writer(out)
        rows.writerow(["set", "place", "tag", "note", "label", "training set", "test set"])
        for each in self.every:
            marks = self.fingerprints["training set"], self.fingerprints["test set"]
            rows.writerow(
                [each.set, each.place, uncomputed(each.tag), uncomputed(each.note), each.label, *marks]
            )
        return out.getvalue()

    def python(self) -> Sequence[str]:
        """Lines that drop what is tagged so, and relabel what has a better label."""
        drop = sorted({each.place for each in self.every if each.set == "train" and each.tag == "drop"})
        better = {e.place: e.label for e in self.every if e.set == "train" and e.label is not None}
        lines = []
        if better:
            lines += [f"labels = train.labels.clone(); better = {better}"]
            lines += ["labels[list(better)] = labels.new_tensor(list(better.values()))"]
            lines += ["train = train.relabelled(labels)"]
        if drop:
            lines += [f"drop = {set(drop)}"]
            lines += ["train = train.selected([i for i in range(len(train)) if i not in drop])"]
        return lines

    def _keep(self, every: list[Tag]) -> None:
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            content = {"fingerprints": dict(self.fingerprints), "tags": [asdict(each) for each in every]}
            write(self.path, escaped(sealed(json.dumps(content, ensure_ascii=True))) + "\n")
        self.every = every


def _read(path: Path) -> list[Tag]:
    try:
        content = unsealed(path.read_bytes())
        return [Tag(**each) for each in loads(content)["tags"]] if content is not None else []
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"{path} is damaged: {error}. Move it elsewhere to begin without tags.") from error

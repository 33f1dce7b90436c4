"""Tags: what a person notes of instances: a word, a better label; kept at once, and undone one by one.

They are of a training set and a test set, not of a model: another model of the same data finds them again.
Several explorers may have the same folder: a change is made to the tags that are in the file.
"""

import csv
import io
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any

from precedents.errors import FormatError, InputError, StoreError
from precedents.explorer.guard import refused
from precedents.runtime.atomic import write
from precedents.runtime.locks import released, taken
from precedents.runtime.sealed import sealed, unsealed
from precedents.runtime.strict_json import loads
from precedents.seen import escaped, uncomputed

NOTE = 500  # letters of a note
TAGS = ("wrong label", "look again", "drop", "good example")
MOST = 100_000  # tags
LOCK = ".tags"  # whoever changes tags of a folder has it


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
    problem: str = ""  # where a file is that could not be read
    _lock: Lock = field(default_factory=Lock, repr=False)

    @classmethod
    def open(cls, folder: Path | None, known: Mapping[str, str]) -> "Tags":
        """The tags of the sets with these fingerprints in a folder; those of other sets are in other files."""
        marks = {name: known[name] for name in ("training set", "test set")}
        mark = blake2b("".join(marks.values()).encode(), digest_size=4).hexdigest()
        path = None if folder is None else folder / f"tags-{mark}.json"
        tags = cls(path, marks)
        if path is not None and path.is_file():
            tags.every = tags._kept(path)
        return tags

    def add(self, *tags: Tag) -> None:
        """Notes them, in the place of the same tags of the same instances."""
        same = {(each.set, each.place, each.tag) for each in tags}

        def added(every: list[Tag]) -> list[Tag]:
            if len(every) + len(tags) > MOST:
                raise InputError(f"There can be {MOST} tags. Remove some first.")
            return [*(each for each in every if (each.set, each.place, each.tag) not in same), *tags]

        self._change(added)

    def remove(self, which: str, place: int, tag: str) -> None:
        """Takes a tag away."""
        self._change(lambda every: [e for e in every if (e.set, e.place, e.tag) != (which, place, tag)])

    def undo(self) -> Tag | None:
        """Takes the latest tag away."""
        last = self.every[-1] if self.every else None
        if last is not None:
            self._change(lambda every: [each for each in every if each != last])
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

    def _change(self, changed: Callable[[list[Tag]], list[Tag]]) -> None:
        """Changes the tags that there are, those of another explorer of the folder among them."""
        with self._lock:
            if self.path is None:
                self.every = changed(self.every)
                return
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                with self._alone(self.path):
                    every = changed(self._kept(self.path) if self.path.is_file() else [])
                    content = {
                        "fingerprints": dict(self.fingerprints),
                        "tags": [asdict(each) for each in every],
                    }
                    write(self.path, escaped(sealed(json.dumps(content, ensure_ascii=True))) + "\n")
            except OSError as error:
                raise StoreError(f"{self.path} cannot be written: {error}. Nothing was changed.") from error
            self.every = every

    @staticmethod
    @contextmanager
    def _alone(path: Path) -> Iterator[None]:
        """Nobody else changes the tags within."""
        file = os.open(path.with_name(LOCK), os.O_RDWR | os.O_CREAT, 0o666)
        try:
            taken(file, wait=True)
            yield
        finally:
            released(file)

    def _kept(self, path: Path) -> list[Tag]:
        """The tags of a file; a damaged one is moved aside, and those that are known already go on."""
        try:
            return _read(path)
        except FormatError as error:
            aside = next(p for i in count() if not (p := path.with_suffix(f".damaged{i or ''}")).exists())
            with suppress(OSError):
                path.rename(aside)
            self.problem = f"{refused(error).text} It is called {aside.name} now, and tags begin without it."
            return self.every


def _read(path: Path) -> list[Tag]:
    try:
        content = unsealed(path.read_bytes())
        if content is None:
            raise ValueError("it is cut off")
        return [Tag(**each) for each in loads(content)["tags"]]
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"{path} is damaged: {error}.") from error

"""Portrayal: what training instances, cases and classes are called, and how they are shown."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from precedents.adapters._subject import Subject
from precedents.data.batch import Batch
from precedents.data.examples import Examples
from precedents.data.ids import shown_id
from precedents.data.inputs import bare
from precedents.seen import clipped
from precedents.views.comparison import beginning
from precedents.views.gallery import Strip
from precedents.views.instance import Cell, Shown, shown

WIDE = 6  # instances side by side


@dataclass(frozen=True, eq=False)
class Portrayal:
    """How the instances and classes of a subject are called and shown."""

    subject: Subject

    def name(self, label: int) -> str:
        """The name of a class as a person sees it, or its number."""
        return clipped(str(self.plain(label)))

    def plain(self, label: int) -> int | str:
        """The name of a class for programs, uncut, or its number as a number."""
        return label if self.subject.classes is None else str(self.subject.classes[label])

    def tag(self, i: int) -> str:
        """What a person sees a training instance called: its id, or else its place."""
        return tag(self.subject.train, i)

    def own(self, i: int) -> dict[str, Any]:
        """The place of a training instance, its id where it has one, and its label."""
        train = self.subject.train
        called = {} if train.ids is None else {"id": train.ids[i]}
        return {"index": i, **called, "label": self.plain(int(train.labels[i]))}

    def seen(self, i: int) -> Shown:
        """A training instance as a person sees it."""
        return self.of(self.subject.train, i)

    def texts(self, places: Sequence[int]) -> list[str]:
        """How training instances begin, if they are texts; of a stream, for which that takes a pass, none."""
        train, render = self.subject.train, self.subject.render
        if render is None or train.ordered or not isinstance(self.seen(places[0]), str):
            return []
        return beginnings([shown(each, render) for each in train.seen(places)])

    def of(self, examples: Examples, i: int) -> Shown:
        """An instance of any set, as a person sees it."""
        return shown(examples.seen([i])[0], self.subject.render)

    def several(self, examples: Examples, batch: Batch) -> list[Shown]:
        """The instances of a batch of any set, as a person sees them, without reading them again."""
        if examples.originals is not None:
            return [shown(each, self.subject.render) for each in examples.seen(batch.indices)]
        places = range(len(batch.labels))
        return [shown(bare(batch.inputs, i), self.subject.render) for i in places]

    def cell(self, i: int, title: str = "", agrees: bool | None = None) -> Cell:
        """A training instance under its name, its label and whatever else there is to say."""
        named = f"{self.tag(i)} {self.name(int(self.subject.train.labels[i]))}"
        return Cell("\n".join([named, *title.splitlines()]), self.seen(i), agrees)


def beginnings(seen: Sequence[Shown]) -> list[str]:
    """How texts begin, as they are printed below what they are called; none of what is no text."""
    return [beginning(each) for each in seen if isinstance(each, str)]


def tag(examples: Examples, i: int) -> str:
    """What a person sees an instance called."""
    return f"#{i}" if examples.ids is None else shown_id(examples.ids[i])


def case_tag(cases: Examples, i: int, numbers: Sequence[int] = ()) -> str:
    """What a person sees a case called; `numbers` are those that cases have elsewhere."""
    if cases.ids is not None:
        return f"case {clipped(str(cases.ids[i]))}"
    return f"case {numbers[i] if numbers else i}"


def side_by_side(cells: Sequence[Cell]) -> list[Strip]:
    """Instances in rows, none of them the case of others."""
    return [Strip(cells[i], cells[i + 1 : i + WIDE]) for i in range(0, len(cells), WIDE)]

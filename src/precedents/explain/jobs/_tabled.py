"""Tabled: what a job found, as rows: it prints, draws and exports itself."""

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

from precedents.explain.exporting import as_csv, as_page
from precedents.seen import clipped, told
from precedents.views.drawing import new_figure
from precedents.views.fragments import listing, page, paragraphs
from precedents.views.gallery import Strip, figure

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    from matplotlib.figure import Figure

SHOWN = 20  # rows that are printed
DRAWN = 12  # rows that are drawn

WIDEST = 120  # letters of a column in print
BELOW = " " * 7  # before the text of a row

Row = dict[str, Any]


class Tabled(ABC):
    """Rows of plain values, one for each thing that was found."""

    texts: Sequence[str] = ()  # how the texts of the first rows begin, where they are texts

    @property
    @abstractmethod
    def heading(self) -> str:
        """What was found, in one line."""

    @property
    @abstractmethod
    def columns(self) -> Sequence[str]:
        """The names of the values of a row."""

    @abstractmethod
    def rows(self) -> list[Row]:
        """All that was found, plain values by name."""

    @abstractmethod
    def printed(self) -> list[Sequence[str]]:
        """The rows as a person reads them, one text for each column."""

    @abstractmethod
    def strips(self) -> list[Strip]:
        """The rows of pictures, texts or tables that `plot` and pages show."""

    @property
    def legend(self) -> str:
        """How a page of it is read."""
        return ""

    @property
    def notes(self) -> Sequence[str]:
        """What has to be said besides, in sentences below the rows."""
        return ()

    @property
    def shown_notes(self) -> Sequence[str]:
        """Those of them that are printed, and stand on pages."""
        return self.notes

    def __len__(self) -> int:
        return len(self.rows())

    def __str__(self) -> str:
        rows = self.printed()
        more = [f"  ... and {len(rows) - SHOWN} more"] if len(rows) > SHOWN else []
        lines = aligned(rows[:SHOWN])
        for place, text in enumerate(self.texts[: len(lines)]):
            lines[place] += f"\n{BELOW}{text}"
        return "\n".join([told(self.heading), *lines, *more, *map(told, self.shown_notes)])

    def to_dict(self) -> dict[str, Any]:
        """Plain values: what was found in words, and the rows."""
        return {"heading": self.heading, "notes": list(self.notes), "rows": [_finite(r) for r in self.rows()]}

    def to_json(self) -> str:
        """What `to_dict` gives, as JSON."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    def to_frame(self) -> "pd.DataFrame":
        """A pandas frame with the rows; training instances are in the column `index`."""
        import pandas as pd

        rows = self.rows()
        frame = pd.DataFrame(rows, columns=list(self.columns))
        for name in frame.columns[frame.isna().any()]:  # numbers that may be missing stay whole
            frame[name] = pd.Series([row.get(name) for row in rows], dtype=object)
        return frame

    def to_csv(self, file: "str | Path | None" = None) -> str:
        """The rows as comma-separated values, which are also written to the `file`, if one is given.

        A text that a spreadsheet would run as a formula has an apostrophe before it.
        """
        return as_csv(self.to_frame(), file)

    def plot(self) -> "Figure":
        """The instances in question side by side, as a matplotlib figure."""
        strips, heading = self.strips(), "\n".join([self.heading, *self._left_out])
        if strips:
            return figure(strips, heading)
        drawn = new_figure(figsize=(6, 0.6))
        drawn.suptitle(heading, fontsize=10)
        return drawn

    def to_html(self, file: "str | Path | None" = None) -> str:
        """A page by itself, to be passed on, which is also written to the `file`, if one is given.

        It has what is printed, and the instances in question; for light and dark, for screens and phones.
        """
        return as_page(self._fragment([self.legend] if self.legend else []), told(self.heading), file)

    def _repr_html_(self) -> str:
        """What notebooks show: the same as a fragment."""
        return self._fragment([self.heading])

    def _fragment(self, heading: Sequence[str]) -> str:
        rows, notes = self.printed(), [*self.shown_notes, *self._left_out]
        if len(rows) > SHOWN:
            notes = [f"... and {len(rows) - SHOWN} more: all are in to_frame() and to_csv()", *notes]
        listed = (listing(rows[:SHOWN]) if rows else "") + paragraphs(map(told, notes))
        return page(self.strips(), "\n".join(map(told, heading)), listed)

    @property
    def _left_out(self) -> list[str]:
        """How many are not drawn, if some are not."""
        most, every = self.drawn
        return [f"The first {most} of {every} are drawn."] if every > most else []

    @property
    def drawn(self) -> tuple[int, int]:
        """How many are drawn at most, and of how many."""
        return DRAWN, len(self)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of texts with their columns below each other; what is empty everywhere takes no room.

    >>> aligned([["#3", "", "dog"], ["#12", "", "cat"]])
    ['  #3   dog', '  #12  cat']
    """
    cut = [[clipped(text, WIDEST) for text in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cut, strict=True)]
    kept = [[f"{text:<{width}}" for text, width in zip(row, widths, strict=True) if width] for row in cut]
    return [("  " + "  ".join(row)).rstrip() for row in kept]


def _finite(row: Row) -> Row:
    """With nothing that JSON has no word for."""
    return {name: None if isinstance(v, float) and not isfinite(v) else v for name, v in row.items()}

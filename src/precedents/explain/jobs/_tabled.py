"""Tabled: what a job found, as rows: it prints, draws and exports itself."""

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

from precedents.seen import clipped, told
from precedents.views.gallery import Strip, figure, page

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

SHOWN = 20  # rows that are printed
DRAWN = 12  # rows that are drawn
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a text begins with that a spreadsheet would compute

WIDEST = 120  # letters of a column in print

Row = dict[str, Any]


class Tabled(ABC):
    """Rows of plain values, one for each thing that was found."""

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
        """What is drawn."""

    @property
    def notes(self) -> Sequence[str]:
        """Sentences below the rows."""
        return ()

    def __len__(self) -> int:
        return len(self.rows())

    def __str__(self) -> str:
        rows = self.printed()
        more = [f"  ... and {len(rows) - SHOWN} more"] if len(rows) > SHOWN else []
        return "\n".join([told(self.heading), *aligned(rows[:SHOWN]), *more, *map(told, self.notes)])

    def to_dict(self) -> dict[str, Any]:
        """Plain values: what was found in words, and the rows."""
        return {"heading": self.heading, "notes": list(self.notes), "rows": [_finite(r) for r in self.rows()]}

    def to_json(self) -> str:
        """The same as JSON."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    def to_frame(self) -> "pd.DataFrame":
        """A pandas frame with the rows; training instances are in the column `index`."""
        import pandas as pd

        rows = self.rows()
        frame = pd.DataFrame(rows, columns=list(self.columns))
        for name in frame.columns[frame.isna().any()]:  # numbers that may be missing stay whole
            frame[name] = pd.Series([row.get(name) for row in rows], dtype=object)
        return frame

    def to_csv(self) -> str:
        """The rows as CSV; a text that a spreadsheet would take for a formula begins with an apostrophe."""
        frame = self.to_frame()
        return frame.map(_harmless).to_csv(index=False, lineterminator="\n")

    def plot(self) -> "Figure":
        """The instances in question side by side, as a matplotlib figure."""
        strips = self.strips()
        if strips:
            return figure(strips, self.heading)
        from matplotlib.figure import Figure

        drawn = Figure(figsize=(6, 0.6))
        drawn.suptitle(self.heading, fontsize=10)
        return drawn

    def to_html(self) -> str:
        """The same as an HTML fragment, which notebooks show by themselves; everything in it is escaped."""
        return page(self.strips(), "\n".join(map(told, [self.heading, *self.notes])))

    def _repr_html_(self) -> str:
        return self.to_html()


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


def _harmless(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value

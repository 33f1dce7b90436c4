"""A table of a paper: cells of a few lines; in the terminal, as Markdown and as CSV."""

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Literal

from precedents.views.shown import visible

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table
    from rich.text import Text

NONE = "–"
STYLES = {"passed": "green", "weak": "yellow", "failed": "red"}


@dataclass(frozen=True)
class Entry:
    """What stands in a cell: a text, smaller lines below it, a verdict for its colour, a reason as a hint."""

    text: str
    under: tuple[str, ...] = ()
    verdict: str = ""
    why: str = ""


@dataclass(frozen=True)
class Grid:
    """Rows of cells under headings; the first column names the rows."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[Entry | str]]
    notes: Sequence[str] = ()
    texts: int = 1  # columns from the left that are not numbers

    @property
    def entries(self) -> list[list[Entry]]:
        """The rows, all cells as entries."""
        return [[Entry(cell) if isinstance(cell, str) else cell for cell in row] for row in self.rows]

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        """As many columns beside each other as there is room for; the rest below, with the names again."""
        from rich.text import Text

        yield Text(visible(self.title), style="bold")
        yield from (_table(self, columns) for columns in _fitting(self, options.max_width))
        yield from (Text(visible(note), style="dim") for note in self.notes)
        yield Text("")

    def markdown(self) -> str:
        """A heading, the table and its notes."""
        lines = [f"### {_plain(self.title)}", "", _row(map(_plain, self.headings))]
        lines.append(_row("---" if i < self.texts else "--:" for i in range(len(self.headings))))
        lines += [_row(map(_cell, row)) for row in self.entries]
        return "\n".join([*lines, *(f"\n{_plain(note)}" for note in self.notes)]) + "\n"


def as_csv(rows: Iterable[Mapping[str, Any]]) -> str:
    """Plain values under the names of the first row; what is not there is empty."""
    rows = list(rows)
    file = io.StringIO()
    if rows:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return file.getvalue()


def number(value: float, digits: int = 2) -> str:
    """Two digits after the point and a real minus sign."""
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")


def signed(value: float, digits: int = 2) -> str:
    """The same with its sign."""
    return f"{round(value, digits) + 0.0:+.{digits}f}".replace("-", "−")


def spread(mean: float, std: float | None, digits: int = 2) -> str:
    """A mean with its standard deviation, if it is known."""
    return number(mean, digits) + (f" ± {number(std, digits)}" if std is not None else "")


def _fitting(grid: Grid, width: int) -> list[list[int]]:
    """The columns in groups that are no wider than the terminal."""
    lines = [[_longest(entry.text, *entry.under) for entry in row] for row in grid.entries]
    sizes = [max(each) + 2 for each in zip(map(_longest, grid.headings), *lines, strict=True)]
    groups: list[list[int]] = [[]]
    for column, size in list(enumerate(sizes))[1:]:
        if groups[-1] and sizes[0] + sum(sizes[i] for i in groups[-1]) + size > width:
            groups.append([])
        groups[-1].append(column)
    return groups


def _longest(*texts: str) -> int:
    return max(len(line) for text in texts for line in [*visible(text).splitlines(), ""])


def _table(grid: Grid, columns: Sequence[int]) -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    drawn = Table(box=SIMPLE_HEAD, show_edge=False, padding=(0, 2, 0, 0), pad_edge=False)
    drawn.add_column(visible(grid.headings[0]), no_wrap=True)
    for column in columns:
        justify: Literal["left", "right"] = "left" if column < grid.texts else "right"
        drawn.add_column(_text(Entry(grid.headings[column])), justify=justify, overflow="fold")
    for row in grid.entries:
        drawn.add_row(*(_text(row[column]) for column in (0, *columns)))
    return drawn


def _text(entry: Entry) -> "Text":
    from rich.text import Text

    text = Text(visible(entry.text), style=STYLES.get(entry.verdict, ""))
    for line in entry.under:
        text.append("\n" + visible(line), style="dim")
    return text


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(entry: Entry) -> str:
    text = _plain(entry.text)
    if entry.verdict == "failed" and text:
        text = f"**{text}**"
    return "<br>".join([text, *(f"<sub>{_plain(line)}</sub>" for line in entry.under)])


def _plain(text: str) -> str:
    """A text that Markdown shows as it is."""
    broken = escape(visible(text), quote=False).replace("\n", "<br>")
    return re.sub(r"([\\`*_\[\]|])", r"\\\1", broken)

"""The table: rows of cells under headings, coloured by verdicts; in the terminal, as Markdown and as CSV."""

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Literal

from precedents.seen import visible

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table as RichTable
    from rich.text import Text

NONE = "–"
STYLES = {"passed": "green", "weak": "yellow", "failed": "red", "undecided": "cyan"}  # in the terminal
EDGES = {"passed": "#2a7f62", "weak": "#a15c00", "failed": "#c0392b", "undecided": "#3b6ea5"}  # on pages
MARKS = {"weak": "~", "failed": "!", "undecided": "?"}  # by verdict, for whoever sees no colours
LEGEND = "passed, weak (~), failed (!), undecided (?), not applicable or left out (–)"


@dataclass(frozen=True)
class Entry:
    """What stands in a cell: a text, smaller lines below it, a verdict for its colour, a reason as a hint."""

    text: str
    under: tuple[str, ...] = ()
    verdict: str = ""  # passed | weak | failed | undecided, or none
    why: str = ""


@dataclass(frozen=True)
class Table:
    """Rows of cells under headings; the first column names the rows.

    Printed by rich, it is as wide as the terminal, with as many lines to a cell as there are; `compact` is for
    verdicts, of which each takes little room.
    """

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[Entry | str]]
    notes: Sequence[str] = ()
    texts: int = 1  # columns from the left that are not numbers

    @classmethod
    def of(cls, corner: str, cells: Mapping[tuple[str, str], Entry]) -> "Table":
        """Cells by the names of row and column, in the order of first appearance; `corner` heads the rows."""
        names = list(dict.fromkeys(row for row, _ in cells))
        columns = list(dict.fromkeys(column for _, column in cells))
        rows: list[list[Entry | str]] = [[name, *(cells[name, each] for each in columns)] for name in names]
        return cls("", [corner, *columns], rows)

    @property
    def entries(self) -> list[list[Entry]]:
        """The rows, all cells as entries."""
        return [[Entry(cell) if isinstance(cell, str) else cell for cell in row] for row in self.rows]

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        """As many columns beside each other as there is room for; the rest below, with the names again."""
        from rich.text import Text

        yield Text(visible(self.title), style="bold")
        yield from (_roomy(self, columns) for columns in _fitting(self, options.max_width))
        yield from (Text(visible(note), style="dim") for note in self.notes)
        yield Text("")

    def compact(self) -> "RichTable":
        """For rich to print in little room: headings in short lines, one text to a cell, marks for verdicts."""
        from rich.box import SIMPLE_HEAD
        from rich.table import Table as RichTable
        from rich.text import Text

        drawn = RichTable(caption=LEGEND, box=SIMPLE_HEAD, show_edge=False, padding=0)
        names = [visible(name.text) for name, *_ in self.entries]
        drawn.add_column(Text(visible(self.headings[0])), no_wrap=True, min_width=max(map(len, names)))
        for heading in self.headings[1:]:
            drawn.add_column(Text(_folded(visible(heading))), justify="right", no_wrap=True, min_width=7)
        for name, (_, *cells) in zip(names, self.entries, strict=True):
            drawn.add_row(Text(name), *map(_marked, cells))
        return drawn

    def html(self) -> str:
        """An HTML fragment in the colours of the page around it; a verdict is a mark and an edge."""
        heads = "".join(f"<th scope='col'>{_lines(each)}</th>" for each in self.headings)
        rows = "".join(f"<tr>{''.join(map(_td, range(len(row)), row))}</tr>" for row in self.entries)
        caption = f"<caption style='text-align:left;caption-side:bottom;color:inherit'>{LEGEND}</caption>"
        return (
            f"<div style='overflow-x:auto'><table class='precedents' style='border-collapse:collapse'>{caption}"
            f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
        )

    def markdown(self) -> str:
        """A heading, the table and its notes; what failed is bold."""
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


def decimal(value: float, digits: int = 2) -> str:
    """A number with so many digits after the point, a real minus sign and no negative zero."""
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")


def signed(value: float, digits: int = 2) -> str:
    """A number with so many digits after the point and its sign, + or a real minus."""
    return f"{round(value, digits) + 0.0:+.{digits}f}".replace("-", "−")


def mean_and_std(mean: float, std: float | None, digits: int = 2) -> str:
    """A mean ± its standard deviation, if it is known."""
    return decimal(mean, digits) + (f" ± {decimal(std, digits)}" if std is not None else "")


def _fitting(table: Table, width: int) -> list[list[int]]:
    """The columns in groups that are no wider than the terminal."""
    lines = [[_longest(entry.text, *entry.under) for entry in row] for row in table.entries]
    sizes = [max(each) + 2 for each in zip(map(_longest, table.headings), *lines, strict=True)]
    groups: list[list[int]] = [[]]
    for column, size in list(enumerate(sizes))[1:]:
        if groups[-1] and sizes[0] + sum(sizes[i] for i in groups[-1]) + size > width:
            groups.append([])
        groups[-1].append(column)
    return groups


def _longest(*texts: str) -> int:
    return max(len(line) for text in texts for line in [*visible(text).splitlines(), ""])


def _roomy(table: Table, columns: Sequence[int]) -> "RichTable":
    """Some of the columns, beside that of the names."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as RichTable

    drawn = RichTable(box=SIMPLE_HEAD, show_edge=False, padding=(0, 2, 0, 0), pad_edge=False)
    drawn.add_column(visible(table.headings[0]), no_wrap=True)
    for column in columns:
        justify: Literal["left", "right"] = "left" if column < table.texts else "right"
        drawn.add_column(_text(Entry(table.headings[column])), justify=justify, overflow="fold")
    for row in table.entries:
        drawn.add_row(*(_text(row[column]) for column in (0, *columns)))
    return drawn


def _text(entry: Entry) -> "Text":
    from rich.text import Text

    text = Text(visible(entry.text), style=STYLES.get(entry.verdict, ""))
    for line in entry.under:
        text.append("\n" + visible(line), style="dim")
    return text


def _marked(entry: Entry) -> "Text":
    """One line, with a mark as wide as any other; without a verdict it is dim."""
    from rich.text import Text

    written = f"{visible(entry.text)}{MARKS.get(entry.verdict, ' ')}"
    return Text.assemble((written, STYLES.get(entry.verdict, "dim")))


def _folded(name: str) -> str:
    """A name such as `identical_class(k=10)` in lines of at most nine letters."""
    lines = []
    for word in re.split(r"[_(),\s]+", name.strip(")").replace("label=", "")):
        lines += [word] if len(word) <= 9 else [f"{word[:7]}-", word[7:]]
    return "\n".join(lines)


def _lines(name: str) -> str:
    return escape(_folded(visible(name))).replace("\n", "<br>")


def _td(place: int, entry: Entry) -> str:
    """A cell of a page; the first of a row names it."""
    text = escape(visible(entry.text))
    if not place:
        return f"<th scope='row' style='text-align:left;white-space:nowrap'>{text}</th>"
    edge = f"border-left:4px solid {EDGES[entry.verdict]};" if entry.verdict in EDGES else ""
    says = f" title='{escape(visible(entry.why or entry.verdict))}'" if entry.why or entry.verdict else ""
    return f"<td style='{edge}text-align:right;padding:2px 6px'{says}>{text}{MARKS.get(entry.verdict, '')}</td>"


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

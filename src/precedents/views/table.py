"""A table in the terminal: rows by columns, each cell a number coloured by its verdict."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table as RichTable

COLOURS = {"passed": "green", "weak": "yellow", "failed": "red", "": "dim"}


@dataclass(frozen=True)
class Value:
    """What stands in a cell."""

    text: str
    verdict: str = ""


@dataclass(frozen=True)
class Table:
    """Cells by row and column name, in the order of their first appearance."""

    corner: str
    cells: Mapping[tuple[str, str], Value]


def table(content: Table) -> "RichTable":
    """For rich to print."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as RichTable

    rows = list(dict.fromkeys(row for row, _ in content.cells))
    columns = list(dict.fromkeys(column for _, column in content.cells))
    caption = "passed, weak (~), failed (!), not applicable (–)"
    drawn = RichTable(caption=caption, box=SIMPLE_HEAD, show_edge=False, padding=0)
    drawn.add_column(content.corner, no_wrap=True, min_width=max(map(len, rows)))
    for column in columns:
        drawn.add_column(_heading(column), justify="right", no_wrap=True, min_width=7)
    for row in rows:
        drawn.add_row(row, *(_written(content.cells[row, column]) for column in columns))
    return drawn


def _heading(name: str) -> str:
    """A name such as `identical_class(k=10)` in lines of at most nine letters."""
    lines = []
    for word in re.split(r"[_(),\s]+", name.strip(")").replace("label=", "")):
        lines += [word] if len(word) <= 9 else [f"{word[:7]}-", word[7:]]
    return "\n".join(lines)


def _written(value: Value) -> str:
    mark = {"weak": "~", "failed": "!"}.get(value.verdict, " ")
    return f"[{COLOURS[value.verdict]}]{value.text}{mark}[/]"

"""A table in the terminal: rows by columns, each cell a number coloured by its verdict."""

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
    from rich.table import Table as RichTable

    rows = list(dict.fromkeys(row for row, _ in content.cells))
    columns = list(dict.fromkeys(column for _, column in content.cells))
    drawn = RichTable(caption="passed, weak (~), failed (!), not applicable (–)")
    drawn.add_column(content.corner, no_wrap=True)
    for column in columns:
        heading = column.replace("_", "\n").replace("(", "\n").replace(")", "")
        drawn.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        drawn.add_row(row, *(_written(content.cells[row, column]) for column in columns))
    return drawn


def _written(value: Value) -> str:
    mark = {"weak": " ~", "failed": " !"}.get(value.verdict, "  ")
    return f"[{COLOURS[value.verdict]}]{value.text}{mark}[/]"

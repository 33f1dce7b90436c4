"""Pages of tables, pictures and examples: values in, HTML out, everything shown is escaped."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

from precedents.views.grid import Grid
from precedents.views.report import COLOURS, environment
from precedents.views.svg import standalone

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Picture:
    """A file beside the page, with its caption."""

    file: str
    caption: str


@dataclass(frozen=True)
class Seen:
    """One instance: an image in base64, a text, or values by name."""

    title: str
    png: str = ""
    text: str = ""
    table: Mapping[str, str] | None = None
    agrees: bool | None = None  # None for a case

    @property
    def kind(self) -> str:
        """What instances like this one are called."""
        return "pictures" if self.png else "rows" if self.table else "texts"


@dataclass(frozen=True)
class Example:
    """One case and the precedents by every metric."""

    case: Seen
    strips: Mapping[str, Sequence[Seen]]


@dataclass(frozen=True)
class Section:
    """A part of a page; what is empty is left out."""

    title: str
    text: Sequence[str] = ()
    grids: Sequence[Grid] = ()
    pictures: Sequence[Picture] = ()
    examples: Sequence[Example] = ()
    links: Mapping[str, str] | None = None  # addresses by text


@dataclass(frozen=True)
class Page:
    """All that a page shows."""

    title: str
    lead: Sequence[str]
    sections: Sequence[Section]


def html(page: Page) -> str:
    """The page."""
    from markupsafe import Markup

    return (
        environment().get_template("pages.html.jinja").render(page=page, styles=Markup(_styles()))  # noqa: S704 (a file of the package)
    )


def picture(figure: "Figure", name: str) -> str:
    """A figure as a file of its own, in light and in dark."""
    return standalone(figure, name, COLOURS, _styles().partition("\n* {")[0])


def _styles() -> str:
    return files("precedents.views").joinpath("report.css").read_text("utf-8")

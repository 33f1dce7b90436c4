"""Pages of tables, pictures and examples: values in, HTML out, everything shown is escaped."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

from precedents.views.gallery import TiledExample
from precedents.views.report import COLOURS, environment
from precedents.views.svg import standalone
from precedents.views.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Illustration:
    """A picture that is a file beside the page, with its caption."""

    file: str
    caption: str


@dataclass(frozen=True)
class Section:
    """A part of a page; what is empty is left out."""

    title: str
    text: Sequence[str] = ()
    tables: Sequence[Table] = ()
    pictures: Sequence[Illustration] = ()
    examples: Sequence[TiledExample] = ()
    links: Mapping[str, str] | None = None  # addresses by text


@dataclass(frozen=True)
class Page:
    """All that a page shows."""

    title: str
    lead: Sequence[str]
    sections: Sequence[Section]


def html(page: Page) -> str:
    """The page as HTML, with its styles; the illustrations stay files beside it."""
    from markupsafe import Markup

    return (
        environment().get_template("pages.html.jinja").render(page=page, styles=Markup(_styles()))  # noqa: S704 (a file of the package)
    )


def picture(figure: "Figure", name: str) -> str:
    """A figure as an SVG file of its own, in light and in dark; its ids begin with `name`."""
    return standalone(figure, name, COLOURS, _styles().partition("\n* {")[0])


def _styles() -> str:
    return files("precedents.views").joinpath("report.css").read_text("utf-8")

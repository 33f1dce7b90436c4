"""Figures that notebooks show by themselves, without magic and without the global state of matplotlib."""

from functools import cache
from io import BytesIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DOTS = 110  # per inch, in a notebook


@cache
def _kind() -> "type[Figure]":
    from matplotlib.figure import Figure

    class ShownFigure(Figure):
        """A figure of matplotlib that is a picture to a notebook."""

        def _repr_png_(self) -> bytes:
            file = BytesIO()
            self.savefig(file, format="png", dpi=DOTS)
            return file.getvalue()

    return ShownFigure


def new_figure(**settings: Any) -> "Figure":
    """A figure with these settings of matplotlib's own.

    >>> new_figure(figsize=(1, 1))._repr_png_()[1:4]
    b'PNG'
    """
    return _kind()(**settings)

"""What every figure is checked for."""

import warnings
from collections.abc import Callable
from io import BytesIO

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.text import Text


def texts(drawn: Figure) -> list[str]:
    """All words of a figure."""
    return [text.get_text() for text in drawn.findobj(Text) if text.get_text()]


def drawn_at(width: float, draw: Callable[[float], Figure]) -> None:
    """It is drawn at its width, without a warning or a change of settings."""
    before = dict(mpl.rcParams)
    file = BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawn = draw(width)
        drawn.savefig(file, format="png", dpi=40)
    assert drawn.get_figwidth() == width
    assert dict(mpl.rcParams) == before
    assert len(file.getvalue()) > 500

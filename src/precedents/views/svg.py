"""A matplotlib figure as SVG, inline or a file: text stays text, colours follow the page, ids are its own."""

import re
import warnings
from collections.abc import Mapping
from io import StringIO
from typing import TYPE_CHECKING
from xml.etree import ElementTree

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEFT_OUT = {"metadata", "style", "title"}


def inline(figure: "Figure", name: str, colours: Mapping[str, str]) -> str:
    """The figure as an element of an HTML page.

    Every id begins with `name`. `colours` gives what to write in place of a colour, such as a CSS variable.
    """
    root = _drawn(figure, name, colours)
    for size in ("width", "height"):
        del root.attrib[size]
    root.set("aria-hidden", "true")  # what holds it has the label
    return ElementTree.tostring(root, encoding="unicode")


def standalone(figure: "Figure", name: str, colours: Mapping[str, str], styles: str) -> str:
    """The figure as a file of its own, with the styles that give the colours their values."""
    root = _drawn(figure, name, colours)
    root.set("xmlns", "http://www.w3.org/2000/svg")
    style = ElementTree.Element("style")
    style.text = styles
    paper = ElementTree.Element("rect", width="100%", height="100%", style="fill: var(--page)")
    root[:0] = [style, paper]
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _drawn(figure: "Figure", name: str, colours: Mapping[str, str]) -> ElementTree.Element:
    import matplotlib as mpl

    file = StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)  # the reader's fonts will do
        figure.savefig(file, format="svg", metadata={"Date": None})
    root = ElementTree.fromstring(file.getvalue())  # noqa: S314 (written just above)
    _rewrite(root, name, colours)
    return root


def _rewrite(element: ElementTree.Element, name: str, colours: Mapping[str, str]) -> None:
    """Plain names, as HTML has them, ids that no other figure uses, and the page's colours and fonts."""
    element.tag = _local(element.tag)
    kept = {}
    for key, value in element.attrib.items():
        value = re.sub(r"url\(#", f"url(#{name}-", value)
        if key == "style":
            value = re.sub(r"#[0-9a-f]{6}\b", lambda found: colours.get(found[0], found[0]), value)
            value = re.sub(r"\bfont(-family)?: ([^;]*?)'[^;]*", r"font\1: \2var(--sans)", value)
        elif key == "id":
            if element.tag == "g":  # nothing refers to groups
                continue
            value = f"{name}-{value}"
        elif _local(key) == "href" and value.startswith("#"):
            value = f"#{name}-{value[1:]}"
        kept[_local(key)] = value
    element.attrib.clear()
    element.attrib.update(kept)
    if element.tag not in ("text", "tspan"):
        element.text = None
    for child in list(element):
        child.tail = None
        if _local(child.tag) in LEFT_OUT:
            element.remove(child)
        else:
            _rewrite(child, name, colours)


def _local(name: str) -> str:
    return name.rpartition("}")[2]

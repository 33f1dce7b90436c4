"""Fragments: cases and their precedents as HTML, for notebooks, and as pages by themselves; all is escaped.

Letters have the colour of the page around them, so that they are readable on light and on dark ground.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from precedents.seen import visible
from precedents.views.comparison import parts
from precedents.views.gallery import AGREES, DISAGREES, LONG, Strip, by_share, first_words
from precedents.views.instance import Cell, Shown, as_png
from precedents.views.marks import WordShares, around, as_html, joined

OTHERS = 5  # words that are not in the text as they are called, below it
IN_THE_REST = 0.3  # of the largest share, below which a word is not marked in what is unfolded
ROW = "display:grid;gap:8px;margin:12px 0;align-items:start;grid-template-columns:repeat(auto-fill,{})"
PICTURES, WORDS = "112px", "minmax(min(100%,15em),1fr)"  # the columns, which stand below each other
STYLES = (
    ":root{color-scheme:light dark}"
    "body{margin:0;background:#fff;color:#24292e;font:15px/1.45 system-ui,sans-serif}"
    "main{max-width:72rem;margin:0 auto;padding:1rem}h1{font-size:1.3rem;overflow-wrap:anywhere}"
    "p,pre{overflow-wrap:anywhere}figcaption{font-size:.85em}"
    "@media(prefers-color-scheme:dark){body{background:#14171a;color:#e6e8ea}}"
    "@media print{body{background:#fff;color:#000}figure{break-inside:avoid}}"
)


def page(strips: Sequence[Strip], heading: str = "", listed: str = "") -> str:
    """The strips as an HTML fragment, one row per case, which wraps on a narrow screen.

    `listed` is HTML that stands between the heading and the strips.
    """
    rows = "".join(_row(strip) for strip in strips)
    title = f"<p class='heading' style='white-space:pre-line'>{escape(visible(heading))}</p>" if heading else ""
    return f"<div class='precedents'>{title}{listed}{rows}</div>"


def document(fragment: str, title: str) -> str:
    """A page of its own around an HTML fragment: for light and dark, for screens, phones and paper."""
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{escape(visible(title))}</title><style>{STYLES}</style></head>"
        f"<body><main><h1>{escape(visible(title))}</h1>{fragment}</main></body></html>\n"
    )


def paragraphs(sentences: Iterable[str]) -> str:
    """Sentences, one below the other.

    >>> paragraphs(["a < b"])
    "<p style='margin:.3em 0'>a &lt; b</p>"
    """
    return "".join(f"<p style='margin:.3em 0'>{escape(visible(each))}</p>" for each in sentences)


def listing(rows: Sequence[Sequence[str]]) -> str:
    """Rows of texts as a table, which is moved sideways where it is too wide; empty columns are left out.

    >>> listing([["#3", "", "dog"]]).count("<td")
    1
    """
    kept = [any(column) for column in zip(*rows, strict=True)]
    lines = "".join(f"<tr>{_line([t for t, k in zip(row, kept, strict=True) if k])}</tr>" for row in rows)
    table = f"<table style='border-collapse:collapse;text-align:left;white-space:nowrap'>{lines}</table>"
    box = "overflow-x:auto;margin:0 0 12px"
    return f"<div style='{box}' role='region' aria-label='what was found' tabindex='0'>{table}</div>"


def _line(texts: Sequence[str]) -> str:
    style = "style='text-align:left;font-weight:normal;padding:.1em 1em .1em 0'"
    first, *rest = (escape(visible(text)) for text in texts)
    return f"<th scope='row' {style}>{first}</th>" + "".join(f"<td {style}>{text}</td>" for text in rest)


def _row(strip: Strip) -> str:
    """A case and its precedents in the columns of a grid, which wraps on a narrow screen."""
    words = any(isinstance(cell.shown, (str, Mapping)) for cell in strip.cells)
    cells = "".join(_cell(cell, strip) for cell in strip.cells)
    return f"<div style='{ROW.format(WORDS if words else PICTURES)}'>{cells}</div>"


def _cell(cell: Cell, strip: Strip) -> str:
    """The instance, and below it what it is called: so pictures of one row are aligned."""
    colour = {None: "currentColor", True: AGREES, False: DISAGREES}[cell.agrees]
    mark = {None: "", True: "", False: " ✗"}[cell.agrees]
    if isinstance(cell.shown, str):
        other = strip.case.shown if cell.agrees is not None else None
        body = f"<div style='margin:0 0 .4em'>{text_of(cell.shown, cell.words, other)}</div>"
    elif isinstance(cell.shown, Mapping):
        text = visible("\n".join([*strip.lines(cell, most=12), *by_share(cell)]))
        body = f"<pre style='text-align:left;margin:0 0 .4em;white-space:pre-wrap'>{escape(text)}</pre>"
    else:
        body = (
            f"<img alt='{escape(visible(cell.title))}' width='96' "
            f"style='image-rendering:pixelated;height:auto' src='{as_png(cell.shown)}'>"
        )
    style = f"border:2px solid {colour};padding:6px;margin:0;min-width:0;overflow-wrap:anywhere"
    caption = f"{escape(visible(cell.title))}{mark}"
    return (
        f"<figure style='{style}'>{body}"
        f"<figcaption style='white-space:pre-line'>{caption}</figcaption></figure>"
    )


def text_of(text: str, words: WordShares | None, case: Shown | None = None) -> str:
    """A text with words marked by their shares of the score, or else those in bold that the case has, too.

    Of a long one what matters is shown, or its beginning; the whole is there to be unfolded.
    """
    if words is None:
        head = first_words(text)
        return _shared(head, case) + (" ..." + _unfolded(_shared(text, case)) if head != text else "")
    marked, others = words.marked(text), words.unplaced(text).largest(OTHERS)
    after = f"<div>by share, too: {escape(joined(others))}</div>" if others else ""
    if len(text) <= LONG:
        return as_html(marked) + after
    return as_html(around(marked, LONG)) + _unfolded(as_html(marked, IN_THE_REST)) + after


def _unfolded(html: str) -> str:
    return f"<details><summary>the whole text</summary>{html}</details>"


def _shared(text: str, case: Shown | None) -> str:
    tags = {"": "{}", "shared": "<b>{}</b>", "unknown": "<mark>{}</mark>"}
    return "".join(tags[kind].format(escape(visible(part))) for part, kind in parts(text, case))

"""What people see: texts without anything unseen in them, and no longer than can be read.

Names, texts and messages of others may hold what a terminal obeys (escapes), what turns or hides other
letters (direction marks, zero widths) or what is no letter at all. It is written out, as in ⟨U+001B⟩, wherever
it is shown.
"""

import re
from collections.abc import Sequence
from difflib import get_close_matches
from html import escape
from typing import Any

UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters but tab and newline
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"  # marks of direction, separators of lines
    "\xad\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f"  # what has no width
    "\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"  # halves of letters, and no letters
)
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # also at full width
NAME = 60  # letters of a name
MESSAGE, TAIL = 2000, 700  # letters of a message, and of its end, which says what to do


def visible(text: str) -> str:
    r"""The text with what cannot be seen written out; tabs and newlines stay.

    >>> visible("a\x1b[31mb")
    'a⟨U+001B⟩[31mb'
    """
    return UNSEEN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text)


def clipped(text: str, width: int = NAME) -> str:
    r"""The text on one line, with nothing unseen in it, and cut where it is longer than `width` letters.

    >>> clipped("a  rather\nlong name", 10)
    'a rathe...'
    """
    whole = visible(" ".join(text[: 8 * width].split()))  # of a longer text, no more could be shown
    short = whole if len(whole) <= width else whole[: width - 3].rstrip() + "..."
    return short if len(text) <= 8 * width or short.endswith("...") else f"{short}..."


def nearest(name: str, known: Sequence[str]) -> str:
    """The question whether the nearest of the known names is meant; empty if none is near.

    >>> nearest("dgo", ["cat", "dog"])
    " Did you mean 'dog'?"
    """
    lower = {each.lower(): each for each in known}
    near = get_close_matches(clipped(name).lower(), lower, n=1)
    return f" Did you mean {clipped(lower[near[0]])!r}?" if near else ""


def told(message: str) -> str:
    """A message on one line; of one that is too long to be read, the beginning and the end."""
    if len(message) > MESSAGE:
        message = f"{message[: MESSAGE - TAIL]} ... {message[-TAIL:]}"
    return visible(re.sub(r"[^\S ]*[\r\n]\s*", " ", message.rstrip("\r\n")))


def uncomputed(value: Any) -> Any:
    """For a table that a spreadsheet opens: a text that it would take for a formula begins with an apostrophe.

    >>> uncomputed("=1+1"), uncomputed("plain"), uncomputed(-2)
    ("'=1+1", 'plain', -2)
    """
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def boxed(text: str) -> str:
    """A text that lines up, as a notebook shows it: in the notebook's own colours.

    >>> boxed("a < b")[-14:]
    'a &lt; b</pre>'
    """
    style = "white-space:pre-wrap;line-height:1.35;background:transparent;color:inherit"
    return f"<pre class='precedents' style='{style}'>{escape(visible(text))}</pre>"


def escaped(json: str) -> str:
    r"""A text in JSON in which nothing unseen stands as it is; it means the same.

    >>> escaped('"a\x9b"')
    '"a\\u009b"'
    """
    return UNSEEN.sub(_units, json)


def _units(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))

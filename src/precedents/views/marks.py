"""Words of a text by their share of a score: where they stand, how they are marked, what is cut away."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from itertools import groupby
from math import ceil
from typing import TypeAlias
from unicodedata import combining, normalize

from precedents.seen import clipped, visible

STRONGEST = 0.5  # of the colour of a mark, so that letters stay readable on it
FAINT = 0.08  # of the largest share, below which a word is not marked
POSITIVE, NEGATIVE = (42, 127, 98), (192, 57, 43)
SUBWORD = re.compile(r"^(##|Ġ|▁)+")  # how tokenizers say that a piece goes on or begins a word

Marked: TypeAlias = tuple[tuple[str, float], ...]  # pieces of a text, in order, each with its share


@dataclass(frozen=True)
class WordShares:
    """Words, or pieces of words, with their shares: in the order of the text, or wherever they occur."""

    pieces: tuple[tuple[str, float], ...]
    ordered: bool
    letters: bool = (
        False  # whether the pieces are groups of letters, which overlap: then their words are marked
    )

    def marked(self, text: str) -> Marked:
        """The whole text in pieces; what stands between words has no share.

        >>> WordShares((("sea", 0.5), ("blue sea", 0.25)), ordered=False).marked("A blue sea")
        (('A', 0.0), (' ', 0.0), ('blue', 0.125), (' ', 0.0), ('sea', 0.625))
        """
        shares = [0.0] * len(text)
        for start, stop, share in self._placed(text):
            for place in range(start, stop):
                shares[place] += share
        runs = groupby(range(len(text)), key=lambda place: (shares[place], text[place].isspace()))
        return tuple((text[(own := list(run))[0] : own[-1] + 1], share) for (share, _), run in runs)

    def unplaced(self, text: str) -> "WordShares":
        """Those that are nowhere in the text as they are called, as the stems of words."""
        if self.ordered or self.letters:
            return WordShares((), ordered=False)
        return WordShares(tuple(each for each in self.pieces if each[1] and not _found(text, each[0])), False)

    def _placed(self, text: str) -> Iterator[tuple[int, int, float]]:
        if self.ordered:
            return self._in_order(text)
        return self._by_letters(text) if self.letters else self._everywhere(text)

    def _in_order(self, text: str) -> Iterator[tuple[int, int, float]]:
        """Where each piece stands, after the one before it; one that is not found is left out."""
        lower, place = text.lower(), 0
        for piece, share in self.pieces:
            word = SUBWORD.sub("", piece).strip().lower()
            found = lower.find(word, place) if word else -1
            if found >= 0:
                place = found + len(word)
                yield found, place, share

    def _everywhere(self, text: str) -> Iterator[tuple[int, int, float]]:
        """Where each word or run of words stands; its share falls on all places and words of it evenly."""
        for piece, share in self.pieces:
            found = _found(text, piece) if share else []
            for start, stop in found:
                yield start, stop, share / len(found)

    def _by_letters(self, text: str) -> Iterator[tuple[int, int, float]]:
        """The words of the text, each with what falls on its letters: of a group of letters, an equal part."""
        lower, own = _spelled(f" {text} ", bare=False)
        shares = [0.0] * (len(text) + 2)
        for piece, share in self.pieces:
            each = re.compile("(?=(" + r"\s+".join(map(re.escape, piece.split(" "))) + "))") if share else None
            found = [] if each is None else [match.span(1) for match in each.finditer(lower)]
            for start, stop in found:
                places = [own[i] for i in range(start, stop) if not lower[i].isspace()]
                for place in places:
                    shares[place] += share / len(found) / len(places)
        for word in re.finditer(r"\S+", text):
            yield word.start(), word.end(), sum(shares[word.start() + 1 : word.end() + 1])

    def largest(self, most: int) -> list[tuple[str, float]]:
        """The words with the largest shares, those of the same word together."""
        sums: dict[str, float] = {}
        for piece, share in self.pieces:
            sums[piece] = sums.get(piece, 0.0) + share
        kept = ((word, share) for word, share in sums.items() if word.strip() and share)
        return sorted(kept, key=lambda item: -abs(item[1]))[:most]


@lru_cache(maxsize=8)
def _spelled(text: str, bare: bool) -> tuple[str, list[int]]:
    """The text in small letters, without accents if it is to be `bare`, and the place that each is from."""
    letters, places = list[str](), list[int]()
    for place, letter in enumerate(text):
        small = letter.lower()
        spelled = "".join(x for x in normalize("NFKD", small) if not combining(x)) if bare else small
        letters.append(spelled)
        places += [place] * len(spelled)
    return "".join(letters), [*places, len(text)]


def _found(text: str, piece: str) -> list[tuple[int, int]]:
    """Where the words of a piece stand, one after the other, in their spelling or else without accents."""
    words = [re.escape(word) for word in piece.lower().split()]
    if not words:
        return []
    first, last = piece.strip()[0], piece.strip()[-1]
    edges = r"(?<!\w)" if first.isalnum() else "", r"(?!\w)" if last.isalnum() else ""
    pattern = re.compile(edges[0] + r"\W+".join(f"({word})" for word in words) + edges[1])
    for bare in (False, True):
        lower, places = _spelled(text, bare)
        found = [match.span(i) for match in pattern.finditer(lower) for i in range(1, len(words) + 1)]
        if found:
            return [(places[start], places[stop - 1] + 1) for start, stop in found]
    return []


def excerpt(marked: Marked, width: int) -> str:
    """What is printed of a text: all of it on one line, or the part with the largest shares."""
    text = "".join(piece for piece, _ in marked)
    if len(clipped(text, width + 1)) <= width:
        return clipped(text, width)
    start = _best(marked, width - 6)
    stop = min(len(text), start + width - 6)
    begin = 0 if start == 0 else text.find(" ", start, stop) + 1 or start
    end = stop if stop == len(text) else max(text.rfind(" ", begin, stop), begin + 1)
    return clipped(("... " if begin else "") + text[begin:end] + (" ..." if end < len(text) else ""), width + 2)


def around(marked: Marked, width: int) -> Marked:
    """The pieces of a text with the largest shares, no longer than this; what is cut away are dots.

    >>> around((('a sea ', 0.0), ('of', 0.5), (' trees', 0.0)), 40)
    (('a sea ', 0.0), ('of', 0.5), (' trees', 0.0))
    """
    text = "".join(piece for piece, _ in marked)
    if len(text) <= width:
        return marked
    start = _best(marked, width)
    begin = 0 if start == 0 else text.find(" ", start, start + width) + 1 or start
    stop = min(len(text), begin + width)
    end = stop if stop == len(text) else max(text.rfind(" ", begin, stop), begin + 1)
    kept, at = list[tuple[str, float]](), 0
    for piece, share in marked:
        inside = piece[max(0, begin - at) : max(0, end - at)]
        kept += [(inside, share)] if inside else []
        at += len(piece)
    first, last = [("... ", 0.0)] * (begin > 0), [(" ...", 0.0)] * (end < len(text))
    return (*first, *kept, *last)


def graded(marked: Marked) -> tuple[tuple[str, str], ...]:
    """The pieces, each of a kind: "for" or "against" with a grade from 1 to 3, or none.

    >>> graded((('sea', 0.9), (' ', 0.0), ('tree', -0.3)))
    (('sea', 'for3'), (' ', ''), ('tree', 'against1'))
    """
    largest = max((abs(share) for _, share in marked), default=0.0)
    return tuple(
        (piece, _kind(share, strength(share, largest)) if piece.strip() else "") for piece, share in marked
    )


def _kind(share: float, strong: float) -> str:
    return f"{'for' if share > 0 else 'against'}{max(1, ceil(3 * strong - 1e-9))}" if strong else ""


def _best(marked: Marked, width: int) -> int:
    """Where a window of this width begins that has the largest shares; the first of equal ones."""
    places, at = list[tuple[int, float]](), 0
    for piece, share in marked:
        if share:
            places.append((at, abs(share)))
        at += len(piece)
    best, found = 0, sum(share for place, share in places if place < width)
    for first, _ in places:
        start = max(0, min(first - 12, at - width))
        total = sum(share for place, share in places if start <= place < start + width)
        if total > found * (1 + 1e-9):
            best, found = start, total
    return best


def strength(share: float, largest: float) -> float:
    """How strong a mark is, from 0 to 1; what is faint has none."""
    return 0.0 if largest <= 0 or abs(share) < FAINT * largest else abs(share) / largest


def as_html(marked: Marked, least: float = 0.0) -> str:
    """The pieces with their marks, escaped: green for what speaks for the precedent, red for against.

    What is weaker than `least`, from 0 to 1, has no mark.
    """
    largest = max((abs(share) for _, share in marked), default=0.0)
    strong = [strength(share, largest) for _, share in marked]
    return "".join(
        _piece(piece, share, own if own >= least else 0.0)
        for (piece, share), own in zip(marked, strong, strict=True)
    )


def _piece(piece: str, share: float, strong: float) -> str:
    text = escape(visible(piece))
    if not strong or not piece.strip():
        return text
    red, green, blue = POSITIVE if share > 0 else NEGATIVE
    shade = f"rgba({red},{green},{blue},{STRONGEST * strong:.2f})"
    return f"<mark title='{share:+.3g}' style='background:{shade};color:inherit'>{text}</mark>"


def joined(pieces: Sequence[tuple[str, float]]) -> str:
    """WordShares and their shares in a line of print."""
    return ", ".join(f"{clipped(word, 24)} {share:+.3f}" for word, share in pieces)

"""Strips: what is drawn of an explanation: cases beside their precedents, with the shares of the scores."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from precedents.data.ids import shown_id
from precedents.errors import NotApplicable, PrecedentsError
from precedents.explain.cautions import ANOTHER
from precedents.explain.shares import Shares
from precedents.runtime.progress import tracked
from precedents.views.gallery import Strip
from precedents.views.instance import Cell, scores

if TYPE_CHECKING:
    from precedents.explain.explanation import Explanation, Precedent

MARKED = 60  # precedents of all cases up to which words and columns are shown by their shares unasked
KEY = "Below each precedent its case: green is what speaks for the precedent, red what speaks against it."


def legend(given: bool) -> str:
    """How a page is read; `given` says that the cases' labels were given, as if they had been predicted."""
    what, which = (
        ("the class that it is taken for", "that class") if given else ("its prediction", "the predicted one")
    )
    return (
        f"Each case stands first, and then the training instances that count most for {what}, the most "
        f"relevant before the others, with their relevance. ✗: its label is another than {which}."
    )


SharesByPlace = Mapping[tuple[int, int], Shares]  # by case and rank


def tag(precedent: "Precedent") -> str:
    """What a person sees a precedent called: its id, or else its place in the training set."""
    return f"#{precedent.index}" if precedent.id is None else shown_id(precedent.id)


def strips(of: "Explanation", found: SharesByPlace) -> list[Strip]:
    """A strip for each case, with the shares that are known."""
    return [_strip(of, case, found) for case in range(len(of))]


def _strip(of: "Explanation", case: int, found: SharesByPlace) -> Strip:
    every = of.precedents(case)
    cells = []
    for p, score in zip(every, scores([p.score for p in every]), strict=True):
        marked = [caution for caution in p.cautions if caution != ANOTHER]  # which the sheet marks itself
        title = "\n".join([f"{tag(p)} {of.seen_name(p.label)}", score, *marked])
        shares = found.get((case, p.rank))
        if shares is None or not shares.visible:
            cells.append(Cell(title, of.seen(case, p.rank), p.agrees))
        else:
            cells.append(shares.cell(title, p.agrees))
    first = found.get((case, 1))
    words = None if first is None or first.words is None else first.words[0]
    return Strip(Cell(f"{of.called(case)}\n{of.outcome(case)}", of.seen(case), words=words), cells, of.spread)


def demanded(of: "Explanation") -> SharesByPlace:
    """The shares of all precedents; where nothing of them can be drawn, that is an error with the reason."""
    places = [(case, p.rank) for case in range(len(of)) for p in of.precedents(case)]
    found = {place: of.shares(*place) for place in tracked(places, "shares")}
    if not any(each.visible for each in found.values()):
        raise NotApplicable(
            f"The scores by {of.metric} have parts, but none with a place in what is shown of the instances: "
            "no layer has positions on the pictures, and there are no words or columns. Print them: "
            "print(explanation.shares(case, rank))."
        )
    return found


def unasked(of: "Explanation") -> SharesByPlace:
    """The shares of texts and table rows, if there are not too many; of pictures none: they cost passes."""
    places = [(case, p.rank) for case in range(len(of)) for p in of.precedents(case)]
    if len(places) > MARKED:
        return {}
    return {place: found for place in places if (found := of_read(of, *place)) is not None}


def of_read(of: "Explanation", case: int, rank: int) -> Shares | None:
    """The shares of two texts or table rows; none of pictures, and where a metric has no parts."""
    read = of.sharing is not None and of.sharing.applies and isinstance(of.seen(case), (str, Mapping))
    if not read or of.render is None or len(of) * of.top.indices.shape[1] > MARKED:
        return None
    try:
        return of.shares(case, rank)
    except PrecedentsError:
        return None

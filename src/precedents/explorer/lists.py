"""Work lists: the cases that are worth a look, each list with the reason why."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from precedents.explorer.world import World

SURE, UNSURE = 0.9, 0.6  # confidences
FIRST = 5  # precedents that a reason is odd by
FEW = 0.05  # the share of cases that are called unprecedented
COMMON = 10  # precedents that metrics are compared by,
APART = 0.1  # and the share that they have in common at most where they disagree


@dataclass(frozen=True)
class WorkList:
    """Cases that are worth looking at, as a list of the explorer."""

    title: str
    why: str  # in a sentence
    cases: Callable[[World], Tensor | None]  # which [m]; None while it is not known
    sort: str = "confidence"  # what comes first, unless something else is asked for


def _wrong(world: World) -> Tensor | None:
    measures = world.measures.get("case")
    return None if measures is None else measures.wrong


def _sure(world: World) -> Tensor | None:
    measures = world.measures.get("case")
    return None if measures is None else measures.wrong & (measures.confidences >= SURE)


def _unsure(world: World) -> Tensor | None:
    measures = world.measures.get("case")
    return None if measures is None else measures.confidences < UNSURE


def _odd(world: World) -> Tensor | None:
    answers = world.answers.get(world.main)
    if answers is None:
        return None
    measures = world.measures["case"]
    found = world.subject.train.labels[answers.indices[:, :FIRST].long()]
    others = (found != measures.predictions[:, None]).double().mean(dim=1) > 0.5
    return others & ~measures.wrong & answers.done


def _unprecedented(world: World) -> Tensor | None:
    answers = world.answers.get(world.main)
    if answers is None or not answers.complete:
        return None
    best = answers.scores[:, 0]
    count = max(1, int(FEW * len(best)))
    chosen = torch.zeros(len(best), dtype=torch.bool)
    chosen[best.argsort(stable=True)[:count]] = True
    return chosen


def _disagree(world: World) -> Tensor | None:
    there = [each for each in world.answers.values() if each.complete]
    if len(there) < 2:
        coming = [name for name in world.engines if name not in world.failed and name not in world.slow]
        return None if len(coming) > 1 else _chosen(world, [])
    common = torch.zeros(len(world.test), dtype=torch.double)
    for other in there[1:]:
        one, two = (each.indices[:, :COMMON] for each in (there[0], other))
        common += (one[:, :, None] == two[:, None, :]).any(dim=2).double().mean(dim=1)
    return common / (len(there) - 1) <= APART


def _chosen(world: World, places: list[int]) -> Tensor:
    mask = torch.zeros(len(world.test), dtype=torch.bool)
    mask[torch.tensor(places, dtype=torch.long)] = True
    return mask


def _copies(world: World) -> Tensor | None:
    return _chosen(world, list(world.copies)) if world.measures.get("train") is not None else None


def _tagged(world: World) -> Tensor | None:
    return None if world.tags is None else _chosen(world, world.tags.places("case"))


LISTS: Mapping[str, WorkList] = {
    "wrong": WorkList("Wrong", "The prediction is not the label; the surest come first.", _wrong),
    "sure": WorkList("Wrong and sure", f"Wrong with a probability of at least {SURE:.0%}.", _sure),
    "unsure": WorkList("Unsure", f"The predicted class has less than {UNSURE:.0%}.", _unsure, "unsure"),
    "odd": WorkList(
        "Right for odd reasons", f"Right, but most of the first {FIRST} precedents are of another class.", _odd
    ),
    "unprecedented": WorkList(
        "Unprecedented",
        f"The {FEW:.0%} of the cases whose first precedent has the lowest score.",
        _unprecedented,
        "score",
    ),
    "disagree": WorkList(
        "Metrics disagree",
        f"Metrics have at most {APART:.0%} of their first {COMMON} precedents in common.",
        _disagree,
    ),
    "copies": WorkList("Copies", "A training instance has exactly the same input.", _copies),
    "tagged": WorkList("Tagged", "Cases that have a tag.", _tagged, "place"),
    "all": WorkList("All", "Every case.", lambda world: torch.ones(len(world.test), dtype=torch.bool), "place"),
}

SORTS: Mapping[str, str] = {
    "confidence": "surest first",
    "unsure": "least sure first",
    "loss": "largest loss first",
    "score": "lowest first score first",
    "place": "by place",
}


def ordered(world: World, places: Tensor, sort: str) -> Tensor:
    """The places [m'] in the order of a key of SORTS; ties by place."""
    measures, answers = world.measures.get("case"), world.answers.get(world.main)
    if sort == "place" or measures is None or (sort == "score" and answers is None):
        return places
    keys = {
        "confidence": lambda: -measures.confidences,
        "unsure": lambda: measures.confidences,
        "loss": lambda: -measures.losses,
        "score": lambda: torch.where(answers.done, answers.scores[:, 0], torch.inf),  # type: ignore[union-attr]
    }
    return places[keys[sort]()[places].argsort(stable=True)]

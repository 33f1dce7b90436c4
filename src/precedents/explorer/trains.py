"""The training set as a list: all of it, what the model gets wrong, what is tagged; by loss or by place."""

from collections.abc import Mapping

import torch
from torch import Tensor

from precedents.explorer.failures import FailedCell, cells
from precedents.explorer.limits import MOST
from precedents.explorer.looks import SAMPLE, SIZE, Look, paged
from precedents.explorer.query import Query
from precedents.explorer.rows import instance
from precedents.explorer.world import World

WHICH: Mapping[str, str] = {"all": "all", "wrong": "predicted otherwise", "tagged": "tagged"}
ORDERS: Mapping[str, str] = {"loss": "largest loss first", "place": "by place"}


def trains(world: World, query: Query) -> Look:
    """Some of the training instances."""
    classes, failures = world.subject.classifier.classes, cells(world, "train")
    chosen, sort = query.choice("list", WHICH, "all"), query.choice("sort", ORDERS, "loss")
    label, size = query.maybe("label", 0, classes - 1), query.whole("size", 1, MOST, SIZE)
    cell, page = query.choice("failed", failures, ""), query.whole("page", 1, 10**6, 1)
    query.over()
    places = _places(world, chosen, label, failures.get(cell))
    measures = world.measures.get("train")
    if sort == "loss" and measures is not None:
        places = places[measures.losses[places].argsort(descending=True, stable=True)]
    page, pages, shown = paged(places, page, size)
    k = min(SAMPLE, len(world.subject.train))
    line = f"print(explainer.answers({shown[:SAMPLE]}, test, k={k}))"
    words = [word for i in shown[:SAMPLE] for word in ("--index", str(i))]
    return {
        "list": chosen,
        "lists": WHICH,
        "sort": sort,
        "sorts": ORDERS,
        "label": label,
        "failed": cell,
        "why": failures[cell].why if cell else "",
        "known": measures is not None,
        "count": len(places),
        "page": page,
        "pages": pages,
        "instances": [instance(world, "train", i) for i in shown],
        "asked": query.read,
        "python": world.origin.python(world.main, line) if shown else "",
        "command": world.origin.command("answers", *words, "-k", str(k), metric=world.main) if shown else "",
    }


def _places(world: World, chosen: str, label: int | None, failed: FailedCell | None) -> Tensor:
    """Which instances are asked for, in order; none while nothing is known of them."""
    measures = world.measures.get("train")
    if measures is None:
        return torch.zeros(0, dtype=torch.long)
    mask = torch.ones(len(measures), dtype=torch.bool) if chosen != "wrong" else measures.wrong
    if chosen == "tagged":
        mask = torch.zeros_like(mask)
        mask[torch.tensor([] if world.tags is None else world.tags.places("train"), dtype=torch.long)] = True
    if label is not None:
        mask = mask & (measures.labels == label)
    if failed is not None:
        mask = mask & failed.mask(len(mask))
    return mask.nonzero().flatten()

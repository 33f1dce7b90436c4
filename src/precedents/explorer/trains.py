"""The training set as a list: all of it, what the model gets wrong, what is tagged; by loss or by place."""

from collections.abc import Mapping

import torch

from precedents.explorer.limits import MOST
from precedents.explorer.looks import SIZE, Look, paged
from precedents.explorer.query import Query
from precedents.explorer.rows import instance
from precedents.explorer.world import World

WHICH: Mapping[str, str] = {"all": "all", "wrong": "predicted otherwise", "tagged": "tagged"}
ORDERS: Mapping[str, str] = {"loss": "largest loss first", "place": "by place"}


def trains(world: World, query: Query) -> Look:
    """Some of the training instances."""
    names = [world.class_name(i) for i in range(world.subject.classifier.classes)]
    chosen, sort = query.choice("list", WHICH, "all"), query.choice("sort", ORDERS, "loss")
    label, size = query.maybe("label", 0, len(names) - 1), query.whole("size", 1, MOST, SIZE)
    page = query.whole("page", 1, 10**6, 1)
    query.over()
    measures = world.measures.get("train")
    places = torch.zeros(0, dtype=torch.long)
    if measures is not None:
        mask = torch.ones(len(measures), dtype=torch.bool) if chosen != "wrong" else measures.wrong
        if chosen == "tagged":
            mask = torch.zeros_like(mask)
            mask[torch.tensor([] if world.tags is None else world.tags.places("train"), dtype=torch.long)] = (
                True
            )
        if label is not None:
            mask = mask & (measures.labels == label)
        places = mask.nonzero().flatten()
        if sort == "loss":
            places = places[measures.losses[places].argsort(descending=True, stable=True)]
    page, pages, shown = paged(places, page, size)
    return {
        "list": chosen,
        "lists": WHICH,
        "sort": sort,
        "sorts": ORDERS,
        "label": label,
        "known": measures is not None,
        "count": len(places),
        "page": page,
        "pages": pages,
        "instances": [instance(world, "train", i) for i in shown],
        "asked": query.read,
        "python": "",
        "command": "",
    }

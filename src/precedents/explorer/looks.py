"""Looks: what a page shows, as plain values; the same values are its JSON."""

from collections.abc import Sequence
from math import ceil
from typing import Any

import torch
from torch import Tensor

from precedents.criteria._judgement import Inapplicable
from precedents.criteria._result import Result
from precedents.explorer.failures import FailedCell, cells
from precedents.explorer.lists import LISTS, SORTS, ordered
from precedents.explorer.query import Query
from precedents.explorer.rows import first, instance
from precedents.explorer.world import World

SIZE, MOST = 24, 100  # rows of a page
BROKEN = 500  # the status from which on an error is not of what was asked for
SAMPLE = 5  # instances of a list that code is about
SQUARE = 20  # classes up to which a confusion matrix is drawn

Look = dict[str, Any]

_NONE = torch.zeros(0, dtype=torch.long)


def run(world: World, query: Query) -> Look:
    """The model in a few facts, and how far the work is."""
    query.over()
    return facts(world)


def facts(world: World) -> Look:
    """What every page has above it."""
    cases = world.measures.get("case")
    answered = {name: int(each.done.sum()) for name, each in world.answers.items()}
    return {
        "name": world.name,
        "kind": world.kind,
        "cases": len(world.test),
        "train": len(world.subject.train),
        "classes": [world.class_name(i) for i in range(world.subject.classifier.classes)],
        "right": None if cases is None else int((~cases.wrong).sum()),
        "metric": world.main,
        "metrics": [metric(world, name) for name in world.engines],
        "answered": answered,
        "differing": list(world.differing),
        "stopped": world.stopped,
        "notes": world.notes,
        "version": world.version,
    }


def metric(world: World, name: str) -> Look:
    """What the audit says of a metric, in its heading."""
    known: Look = {"name": name, "failed": [], "verdict": "not audited", "passed": 0, "criteria": 0}
    why = world.failed.get(name)
    known["problem"], known["slow"] = "" if why is None else why.text, world.slow.get(name)
    audit = world.audit
    if why is not None:
        known["verdict"] = "not applicable" if why.status < BROKEN else "could not be computed"
    if why is not None or audit is None or name not in audit.metrics:
        return known
    outcomes = [each for (own, _), each in audit.judgement.outcomes.items() if own == name]
    results = [each for each in outcomes if isinstance(each, Result)]
    known["passed"], known["criteria"] = sum(each.verdict == "passed" for each in results), len(results)
    known["failed"] = audit.failed(name)
    if not results:
        known["verdict"] = "not applicable"
        known["problem"] = next((each.reason for each in outcomes if isinstance(each, Inapplicable)), "")
    else:
        known["verdict"] = "failed" if known["failed"] else f"passes {known['passed']} of {known['criteria']}"
    return known


def cases(world: World, query: Query) -> Look:
    """A work list: some of the cases, each with its first precedent."""
    names = [world.class_name(i) for i in range(world.subject.classifier.classes)]
    chosen = query.choice("list", LISTS, "wrong" if _has_wrong(world) else "all")
    kind = LISTS[chosen]
    sort = query.choice("sort", SORTS, kind.sort)
    label, said = (query.maybe(name, 0, len(names) - 1) for name in ("label", "predicted"))
    failures = cells(world, "case")
    failed = failures.get(query.choice("failed", failures, ""))
    words, page = query.text("q"), query.whole("page", 1, 10**6, 1)
    size = query.whole("size", 1, MOST, SIZE)
    query.over()
    mask = _narrowed(kind.cases(world), failed, _searched(world, words) & _labelled(world, label, said))
    places = ordered(world, _NONE if mask is None else mask.nonzero().flatten(), sort)
    page, pages, shown = paged(places, page, size)
    by = world.main if failed is None or failed.metric not in world.engines else failed.metric
    return {
        "list": chosen,
        "title": kind.title,
        "why": kind.why if failed is None else failed.why,
        "known": mask is not None,
        "lists": _counts(world),
        "sort": sort,
        "sorts": SORTS,
        "label": label,
        "predicted": said,
        "failed": "" if failed is None else failed.name,
        "q": words,
        "count": len(places),
        "page": page,
        "pages": pages,
        "size": size,
        "by": by,
        "cases": [instance(world, "case", i) | {"first": first(world, by, i)} for i in shown],
        "confusion": confusion(world),
        "asked": query.read,
        **_code(world, by, shown[:SAMPLE]),
    }


def _code(world: World, metric: str, places: Sequence[int]) -> Look:
    """What explains the first cases of a list again."""
    if not places:
        return {"python": "", "command": ""}
    line = f"print(explainer.explain(test.selected({list(places)}), k=5))"
    words = [word for place in places for word in ("--case", str(place))]
    return {
        "python": world.origin.python(metric, line),
        "command": world.origin.command("explain", *words, "-k", "5", metric=metric),
    }


def _narrowed(mask: Tensor | None, failed: FailedCell | None, wanted: Tensor) -> Tensor | None:
    """Of the cases of a list those that are wanted, and failed if that is asked for."""
    if mask is None:
        return None
    return mask & wanted if failed is None else mask & wanted & failed.mask(len(mask))


def paged(places: Tensor, page: int, size: int) -> tuple[int, int, list[int]]:
    """The page that there is, how many there are, and what is on it."""
    pages = max(1, ceil(len(places) / size))
    page = min(page, pages)
    return page, pages, places[(page - 1) * size : page * size].tolist()


def _has_wrong(world: World) -> bool:
    measures = world.measures.get("case")
    return measures is None or bool(measures.wrong.any())


def _counts(world: World) -> list[Look]:
    masks = {name: kind.cases(world) for name, kind in LISTS.items()}
    return [
        {"name": name, "title": LISTS[name].title, "count": None if mask is None else int(mask.sum())}
        for name, mask in masks.items()
    ]


def _labelled(world: World, label: int | None, predicted: int | None) -> Tensor:
    mask = torch.ones(len(world.test), dtype=torch.bool)
    if label is not None:
        mask &= world.test.labels == label
    if predicted is not None and "case" in world.measures:
        mask &= world.measures["case"].predictions == predicted
    return mask


def _searched(world: World, words: str) -> Tensor:
    """Cases whose name, class or text has the words."""
    wanted = words.casefold().strip()
    if not wanted:
        return torch.ones(len(world.test), dtype=torch.bool)
    classes = [world.class_name(i).casefold() for i in range(world.subject.classifier.classes)]
    hits = torch.tensor([wanted == name for name in classes])
    measures = world.measures.get("case")
    mask = hits[world.test.labels]
    if measures is not None:
        mask = mask | hits[measures.predictions]
    ids = world.test.ids
    names = map(str, range(len(world.test)) if ids is None else ids)
    mask = mask | torch.tensor([wanted == name.casefold() for name in names])
    if world.texts:
        mask = mask | torch.tensor([wanted in text for text in world.texts])
    return mask


def confusion(world: World) -> Look | None:
    """Labels by predictions, or of many classes the pairs that are taken for each other most often."""
    measures, classes = world.measures.get("case"), world.subject.classifier.classes
    if measures is None:
        return None
    pairs = measures.labels * classes + measures.predictions
    if classes <= SQUARE:
        counts = torch.bincount(pairs, minlength=classes**2).reshape(classes, classes)
        return {"square": counts.tolist(), "pairs": [], "most": int(counts.max())}
    found, counts = pairs[measures.wrong].unique(return_counts=True)
    order = counts.argsort(descending=True, stable=True)[:SQUARE]
    listed = [
        {"label": int(found[i]) // classes, "predicted": int(found[i]) % classes, "count": int(counts[i])}
        for i in order
    ]
    return {"square": [], "pairs": listed, "most": 0}


def hubs(world: World, query: Query) -> Look:
    """The training instances that answer most cases, and how concentrated the answers are."""
    name = query.choice("metric", world.engines, world.main)
    query.over()
    answers, measures = world.answers.get(name), world.measures.get("case")
    known = answers is not None and answers.complete and measures is not None
    found: list[Look] = []
    curve: list[float] = []
    if answers is not None and known:
        firsts = list(answers.firsts.items())
        for place, count in firsts[:SIZE]:
            share = count / len(world.test)
            found.append(
                instance(world, "train", place)
                | {"firsts": count, "share": share, "hub": place in answers.hubs}
            )
        shares = torch.tensor([count for _, count in firsts], dtype=torch.double).cumsum(0) / len(world.test)
        curve = shares.tolist()
    return {
        "metric": name,
        "metrics": [metric(world, each) for each in world.engines],
        "known": known,
        "hubs": found,
        "count": 0 if answers is None or not known else len(answers.hubs),
        "distinct": len(curve),
        "half": next((i + 1 for i, share in enumerate(curve) if share >= 0.5), 0),
        "curve": _thinned(curve),
        "python": world.origin.python(name, "print(explainer.answers(None, test, k=1))"),
        "command": world.origin.command("answers", "-k", "1", metric=name),
    }


def _thinned(curve: Sequence[float], most: int = 200) -> list[tuple[int, float]]:
    """Points of the curve, from (0, 0) to its end."""
    steps = sorted({round(i * (len(curve) - 1) / max(1, most - 1)) for i in range(most)}) if curve else []
    return [(0, 0.0), *((i + 1, curve[i]) for i in steps)]


def tags(world: World, query: Query) -> Look:
    """All tags, the latest first."""
    query.over()
    every = [] if world.tags is None else list(reversed(world.tags.every))
    listed = [
        instance(world, each.set, each.place)
        | {
            "tag": each.tag,
            "note": each.note,
            "better": None if each.label is None else world.class_name(each.label),
        }
        for each in every[:MOST]
    ]
    lines = [] if world.tags is None else world.tags.python()
    begun = "train = explainer.subject.train\n" if lines else ""
    return {
        "known": world.tags is not None,
        "count": len(every),
        "listed": listed,
        "lines": list(lines),
        "python": world.origin.python(world.main, begun + "\n".join(lines)) if lines else "",
        "command": "",
    }

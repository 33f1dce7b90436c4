"""Findings: what the audit and the search for wrong labels say, and cases of one's own, each a page."""

from collections.abc import Mapping
from typing import Any

from precedents.explain.jobs.suspects import Suspects
from precedents.explorer.jobs import OVER, QueuedJob
from precedents.explorer.lists import cells, failing
from precedents.explorer.looks import Look
from precedents.explorer.query import Query
from precedents.explorer.questions import Tried, single
from precedents.explorer.rows import instance, told
from precedents.explorer.safety import Refusal
from precedents.explorer.tags import TAGS
from precedents.explorer.world import World
from precedents.runtime.progress import told as progress_told
from precedents.views.gallery import Album, Picture, Tile
from precedents.views.instance import Cell
from precedents.views.report import scales

SUSPECTS = 60
AUDITED = "print(pr.audit(explainer.subject.classifier, explainer.subject.train, test))"
ACCUSERS = 12  # cases that are shown of those that accuse an instance


def suspects(world: World, query: Query) -> Look:
    """Training labels that may be wrong, most suspicious first, with the reasons."""
    query.over()
    if "train" not in world.measures:
        return {"known": False, "job": None, "suspects": [], "python": "", "command": ""}
    k = min(SUSPECTS, len(world.subject.train))

    def work() -> Suspects:
        return world.explainer.suspects(k, world.test)

    found = single(world, ("suspects",), "labels that may be wrong", work, lasting=True)
    listed = [_suspect(world, row) for row in found["answer"].rows()] if found["known"] else []
    return {
        "known": found["known"],
        "job": found["job"],
        "suspects": listed,
        "choices": TAGS,
        "python": world.origin.python(world.main, f"print(explainer.suspects({k}, test))"),
        "command": "",
    }


def _suspect(world: World, row: Mapping[str, Any]) -> Look:
    better, accusers = row["better"], row["accused_by"] or []
    names = [world.class_name(i) for i in range(world.subject.classifier.classes)]
    number = (
        better
        if better is None or isinstance(better, int)
        else list(world.subject.classes or names).index(better)
    )
    shown = [{"place": i, "called": world.called("case", i)} for i in accusers[:ACCUSERS]]
    return instance(world, "train", row["index"]) | {
        "better": number,
        "better_name": None if number is None else names[number],
        "probability": row["probability"],
        "others": row["neighbours_with_another_label"],
        "doubt": row["doubt"],
        "accused_by": shown,
        "accusers": len(accusers),
    }


def audit(world: World, query: Query) -> Look:
    """The report of the audit, whose cells lead to the cases that failed them."""
    query.over()
    command = world.origin.command("audit")
    if world.audit is None:
        jobs = world.jobs.every.values()
        job = next((each.told() for each in jobs if each.key == "audit" and each.state not in OVER), None)
        can = world.auditing is not None
        return {"known": False, "can": can, "job": job, "python": "", "command": command}
    report = world.audit.report(command)
    rows: dict[str, dict[str, Any]] = {}
    for row in report.rows:
        rows.setdefault(row.metric, {})[row.criterion] = row
    return {
        "known": True,
        "can": False,
        "job": None,
        "verdict": list(report.verdict),
        "metrics": list(rows),
        "columns": scales(report),
        "rows": rows,
        "failed": _failed(world),
        "meaning": dict(report.meaning),
        "facts": dict(report.facts),
        "python": world.origin.python(world.main, AUDITED),
        "command": command,
    }


def _failed(world: World) -> dict[str, int]:
    """By cell how many of our cases failed it."""
    return {cell: int(failing(world, cell).sum()) for cell in cells(world)}


def audited(world: World, job: QueuedJob) -> None:
    """Makes the audit; its own lines say how far it is."""
    assert world.auditing is not None

    def say(line: str) -> None:
        job.step(0, 1, f"audit: {line}")

    with progress_told(say):
        world.audit = world.auditing()
    world.changed()


def attempts(world: World, query: Query) -> Look:
    """A case of one's own, alone or beside another one; begun from a case of the test set or from nothing."""
    place = query.maybe("case", 0, len(world.test) - 1)
    one, other = (query.maybe(name, 1, 10**9) for name in ("id", "with"))
    query.over()
    found = [_attempt(world, number) for number in (other, one) if number is not None]
    begun = found[-1]["given"] if found else None
    start = world.shown("case", 0 if place is None else place) if world.kind != "pictures" else None
    return {
        "tried": found,
        "shared": sorted(_firsts(found[0]) & _firsts(found[1])) if len(found) == 2 else [],
        "given": begun if begun is not None else "" if world.kind == "texts" and place is None else start,
        "case": place,
        "earlier": world.tries.keys(),
        "id": one,
        "python": "",
        "command": "",
    }


def _firsts(found: Look) -> set[int]:
    return {each["index"] for each in next(iter(found["columns"].values()))}


def _attempt(world: World, number: int) -> Look:
    tried: Tried | None = world.tries.get(number)
    if tried is None:
        raise Refusal(404, "This case is not known any more: an explorer keeps the latest 64. Type it again.")
    said = int(tried.measures.predictions[0])
    pairs = zip(tried.measures.likeliest[0].tolist(), tried.measures.probabilities[0].tolist(), strict=True)
    beside = None if world.kind == "pictures" else tried.shown
    return {
        "number": number,
        "prediction": said,
        "prediction_name": world.class_name(said),
        "probabilities": [{"name": world.class_name(i), "label": i, "probability": p} for i, p in pairs],
        "columns": {name: told(world, each, beside, said) for name, each in tried.precedents.items()},
        "given": tried.given,
        "tile": _shown(world, tried),
    }


def _shown(world: World, tried: Tried) -> Tile:
    title = f"your case {tried.number}"
    if world.kind == "pictures":
        return Tile(title, None, Picture(f"pictures/try/{tried.number}.png?v={world.stamp}", "", *world.pixels))
    return Album().tile(Cell(title, tried.shown))

"""Findings: what the audit and the search for wrong labels say, each a page."""

from collections.abc import Mapping
from typing import Any

from precedents.explain.jobs.suspects import Suspects
from precedents.explorer.failures import cells, untold
from precedents.explorer.jobs import OVER, QueuedJob
from precedents.explorer.looks import Look
from precedents.explorer.query import Query
from precedents.explorer.questions import single
from precedents.explorer.rows import instance
from precedents.explorer.tags import TAGS
from precedents.explorer.world import SUSPECTED, World
from precedents.runtime.progress import told as progress_told
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

    name = world.main

    def work() -> Suspects:
        return world.explainer_by(name).suspects(k, world.test)

    found = single(world, (SUSPECTED, name), "labels that may be wrong", work, lasting=True)
    listed = [_suspect(world, found["answer"], row) for row in found["answer"].rows()] if found["known"] else []
    return {
        "known": found["known"],
        "job": found["job"],
        "suspects": listed,
        "choices": TAGS,
        "python": world.origin.python(name, f"print(explainer.suspects({k}, test))"),
        "command": world.origin.command("suspects", "-k", str(k), metric=name),
    }


def _suspect(world: World, found: Suspects, row: Mapping[str, Any]) -> Look:
    accusers, number = row["accused_by"] or [], int(found.evidence.better[row["index"]])
    other = None if row["better"] is None else number  # of two classes of one name, the right one
    shown = [{"place": i, "called": world.called("case", i)} for i in accusers[:ACCUSERS]]
    return instance(world, "train", row["index"]) | {
        "better": other,
        "better_name": None if other is None else world.class_name(other),
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
        "failed": {name: {"set": cell.set, "count": len(cell.places)} for name, cell in cells(world).items()},
        "untold": untold(world),
        "reasons": world.audit.judgement.reasons,
        "meaning": dict(report.meaning),
        "facts": dict(report.facts),
        "python": world.origin.python(world.main, AUDITED),
        "command": command,
    }


def audited(world: World, job: QueuedJob) -> None:
    """Makes the audit; its own lines say how far it is."""
    assert world.auditing is not None

    def say(line: str) -> None:
        job.step(0, 1, f"audit: {line}")

    with progress_told(say):
        world.audit = world.auditing()
    world.changed()

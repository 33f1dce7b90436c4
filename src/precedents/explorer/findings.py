"""Findings: what the audit and the search for wrong labels say, each a page."""

from dataclasses import dataclass, fields
from itertools import accumulate, chain
from typing import Any

import torch
from torch import Tensor

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

    def work() -> Suspected:
        return _suspected(world, name, k)

    found = single(world, (SUSPECTED, name), "labels that may be wrong", work, lasting=True)
    listed = _listed(world, found["answer"]) if found["known"] else []
    return {
        "known": found["known"],
        "job": found["job"],
        "suspects": listed,
        "choices": TAGS,
        "python": world.origin.python(name, f"print(explainer.suspects({k}, test))"),
        "command": world.origin.command("suspects", "-k", str(k), metric=name),
    }


@dataclass(frozen=True, eq=False)
class Suspected:
    """What pages show of k labels that may be wrong, and the doubt of all."""

    places: Tensor  # [k], most suspicious first
    better: Tensor  # [k], the label that is proposed; -1: none
    probability: Tensor  # [k], of the label that is there
    others: Tensor  # [k], the share of the neighbours with another label; NaN where there are none
    doubt: Tensor  # [n], float32
    accusers: Tensor  # the cases that accuse them, one instance after the other,
    begins: Tensor  # [k + 1], and where those of each begin

    @classmethod
    def of(cls, found: Suspects) -> "Suspected":
        """Of all the evidence, which is much larger."""
        rows, evidence = found.rows(), found.evidence
        accusers = [row["accused_by"] or [] for row in rows]
        better = [-1 if row["better"] is None else int(evidence.better[row["index"]]) for row in rows]
        return cls(
            torch.tensor([row["index"] for row in rows]),
            torch.tensor(better),
            torch.tensor([row["probability"] for row in rows], dtype=torch.double),
            evidence.against[[row["index"] for row in rows]],
            evidence.doubt.float(),
            torch.tensor(list(chain(*accusers)), dtype=torch.long),
            torch.tensor([0, *accumulate(map(len, accusers))]),
        )

    def tensors(self) -> dict[str, Tensor]:
        """By name, to be kept."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


def _suspected(world: World, metric: str, k: int) -> Suspected:
    """By a metric, from what is kept or made now."""
    kept = f"{SUSPECTED} by {world.engines[metric].relevance.metric}"
    if world.store is not None and kept in world.store:
        return Suspected(**world.store.tensors(kept))
    found = Suspected.of(world.explainer_by(metric).suspects(k, world.test))
    if world.store is not None:
        world.store.put(kept, found.tensors())
    return found


def _listed(world: World, found: Suspected) -> list[Look]:
    """Each with the reasons against its label."""
    begins = found.begins.tolist()
    listed = []
    for rank, place in enumerate(found.places.tolist()):
        better, accusers = int(found.better[rank]), found.accusers[begins[rank] : begins[rank + 1]].tolist()
        listed.append(
            instance(world, "train", place)
            | {
                "better": None if better < 0 else better,
                "better_name": None if better < 0 else world.class_name(better),
                "probability": float(found.probability[rank]),
                "others": None if found.others[rank].isnan() else float(found.others[rank]),
                "doubt": float(found.doubt[place]),
                "accused_by": [{"place": i, "called": world.called("case", i)} for i in accusers[:ACCUSERS]],
                "accusers": len(accusers),
            }
        )
    return listed


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

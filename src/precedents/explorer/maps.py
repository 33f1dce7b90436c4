"""Maps of the training set: by gradient, by the last hidden layer or by input, each point an instance."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from precedents.errors import NotApplicable
from precedents.explorer.jobs import QueuedJob
from precedents.explorer.looks import Look
from precedents.explorer.projection import LARGEST, components, projected, trust
from precedents.explorer.query import Query
from precedents.explorer.safety import Refusal
from precedents.explorer.tags import TAGS
from precedents.explorer.world import SUSPECTED, World
from precedents.index.sketch import CountSketch
from precedents.metrics.features.gradient import gradient
from precedents.metrics.features.inputs import inputs
from precedents.metrics.features.last_hidden import last_hidden
from precedents.metrics.vectors import Features, Vectors
from precedents.runtime.checkpoint import forget, kept_in
from precedents.views.instance import scores

MAPS: Mapping[str, tuple[str, Features]] = {
    "gradient": ("gradients", gradient),
    "hidden": ("the last hidden layer", last_hidden),
    "input": ("inputs", inputs),
}
LENGTH = 512  # of a sketched vector
COMPONENTS = 50
FLOAT32 = 4  # bytes
LINES = 10  # precedents that a case has lines to


def features_of(world: World, name: str) -> Features | None:
    """The vectors of a map; None where they have no meaning for the model."""
    key = f"map {name}"
    if key not in world.found:
        try:
            Vectors.of(world.explainer.relevance.workspace, MAPS[name][1])
            world.found[key] = MAPS[name][1]
        except NotApplicable:
            world.found[key] = None
    found: Features | None = world.found[key]
    return found


def reduced(world: World, name: str) -> Tensor:
    """The principal components of all vectors of a map, each of unit length before."""
    features = features_of(world, name)
    assert features is not None
    vectors = Vectors.of(world.explainer.relevance.workspace, features)
    room = world.subject.classifier.budget.bytes // (4 * FLOAT32 * len(vectors))
    sketch = CountSketch(vectors.width, max(COMPONENTS, min(LENGTH, room)))
    rows = torch.cat([sketch.of(block).float() for _, block in vectors.blocks()])
    return components(torch.nn.functional.normalize(rows, dim=1), min(COMPONENTS, rows.shape[1]))


def drawn(world: World, name: str, job: QueuedJob) -> dict[str, Tensor]:
    """A map, from what is kept or made now; until it is done the first two components are shown."""
    kept = f"map {name}"
    if world.store is not None and kept in world.store:
        return world.store.tensors(kept)
    points = _components(world, name, job)
    two = points[:, :2] if points.shape[1] > 1 else torch.cat([points, 0 * points], dim=1)
    world.single.stay(("map first", name), {"places": two.contiguous()})
    world.changed()
    folder = None if world.store is None else world.store.own
    with kept_in(folder):
        places = projected(points, 0, lambda done, total: job.step(done, total, f"map by {MAPS[name][0]}"))
    found = {"places": places, "trust": torch.tensor([trust(points, places)])}
    if world.store is not None:
        world.store.put(kept, found)
    forget(folder)
    return found


def _components(world: World, name: str, job: QueuedJob) -> Tensor:
    """What the map is drawn of, kept so that a map that was killed goes on with the same."""
    kept = f"components {name}"
    if world.store is not None and kept in world.store:
        return world.store.tensors(kept)["rows"]
    job.step(0, 1, f"vectors of the map by {MAPS[name][0]}")
    points = reduced(world, name)
    if world.store is not None:
        world.store.put(kept, {"rows": points})
    return points


def _asked(world: World, name: str) -> dict[str, Any]:
    """What is known of a map, or the job that draws it."""
    key = ("map", name)
    if world.store is None:
        raise Refusal(503, "Both sets are still being looked at. Try again in a moment.")
    found = world.single.get(key)
    if found is None:
        job = world.jobs.ask(key, f"map by {MAPS[name][0]}", lambda job: _kept(world, name, job), lasting=True)
        return {"job": job.told(), "map": world.single.get(("map first", name))}
    return {"job": None, "map": found}


def _kept(world: World, name: str, job: QueuedJob) -> None:
    world.single.stay(("map", name), drawn(world, name, job))
    world.changed()


def map_look(world: World, query: Query) -> Look:
    """The page of a map."""
    there = [name for name in MAPS if features_of(world, name) is not None]
    name = query.choice("by", there, there[0])
    case = query.maybe("case", 0, len(world.test) - 1)
    train = query.maybe("train", 0, len(world.subject.train) - 1)
    query.over()
    known = world.store is not None
    found = _asked(world, name) if known else {"job": None, "map": None}
    shown = found["map"]
    lines, ranked = _lines(world, case)
    return {
        "by": name,
        "maps": {each: MAPS[each][0] for each in there},
        "known": known,
        "job": found["job"],
        "drawn": shown is not None,
        "moved": min(LARGEST, len(world.subject.train)),
        "trust": None if shown is None or "trust" not in shown else float(shown["trust"]),
        "case": case,
        "case_called": None if case is None else world.called("case", case),
        "train": train,
        "lines": lines,
        "scores": ranked,
        "metric": world.main,
        "choices": TAGS,
        "python": "",
        "command": "",
    }


def _lines(world: World, case: int | None) -> tuple[list[int], list[str]]:
    """The first precedents of a case and their scores, most relevant first; none while they are not known."""
    answers = world.answers.get(world.main)
    if case is None or answers is None or not bool(answers.done[case]):
        return [], []
    return answers.indices[case, :LINES].tolist(), scores(answers.scores[case, :LINES].tolist())


def columns(world: World, name: str) -> bytes:
    """Places, labels, predictions, losses and doubts of all points, one column after the other.

    Little-endian: float32 [n, 2], uint16 [n], uint16 [n], float32 [n], float32 [n]; what is not known is NaN.
    """
    if name not in MAPS or features_of(world, name) is None:
        raise Refusal(404, "There is no such map.")
    shown = _asked(world, name)["map"]
    measures = world.measures.get("train")
    if shown is None or measures is None:
        raise Refusal(503, "The map is being drawn. Try again in a moment.")
    doubts = world.single.get((SUSPECTED, world.main))
    doubt = torch.full((len(measures),), torch.nan) if doubts is None else doubts.doubt
    parts: list[Tensor] = [
        shown["places"].float(),
        measures.labels,
        measures.predictions,
        measures.losses,
        doubt,
    ]
    kinds: list[Callable[[Tensor], Any]] = [_floats, _shorts, _shorts, _floats, _floats]
    return b"".join(kind(part).tobytes() for kind, part in zip(kinds, parts, strict=True))


def _floats(part: Tensor) -> Any:
    return part.contiguous().numpy().astype(np.dtype("<f4"))


def _shorts(part: Tensor) -> Any:
    return part.contiguous().numpy().astype(np.dtype("<u2"))

"""Instances and precedents as pages and JSON have them: plain values, and a tile that a person looks at."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from precedents.data.batch import Batch
from precedents.data.inputs import mapped
from precedents.explain.cautions import ANOTHER, DUPLICATE, HUB, NORM, UNRANKED, ZERO, equal
from precedents.explain.decomposition import decomposed
from precedents.explain.explanation import Precedent
from precedents.explorer.answers import AllAnswers
from precedents.explorer.world import World
from precedents.metrics.names import GRAD_COS
from precedents.views.gallery import Album, Picture, Tile
from precedents.views.instance import Cell, Shown, scores

MARGIN = 1e-6  # of a percentile that is rounded down


def address(world: World, which: str, place: int) -> str:
    """Where the picture of an instance is, from the first page; another start has other addresses."""
    return f"pictures/{which}/{place}.png?v={world.stamp}"


def tile(world: World, which: str, place: int, beside: Shown | None = None, agrees: bool | None = None) -> Tile:
    """An instance as a tile; a text and a table row beside a case show what they share with it."""
    title = world.called(which, place)
    if world.kind == "pictures":
        return Tile(title, agrees, Picture(address(world, which, place), "", *world.pixels))
    cell = Cell(title, world.shown(which, place), agrees)
    return Album().tile(cell, beside, world.spread)


def instance(world: World, which: str, place: int, beside: Shown | None = None) -> dict[str, Any]:
    """What is known of an instance by itself."""
    measures = world.measures.get(which)
    known: dict[str, Any] = {"set": which, "place": place, "called": world.called(which, place)}
    ids = world.set_of(which).ids
    known["id"] = None if ids is None else ids[place]
    label = int(world.set_of(which).labels[place])
    known |= {"label": label, "label_name": world.class_name(label)}
    if measures is not None:
        said = int(measures.predictions[place])
        known |= {
            "prediction": said,
            "prediction_name": world.class_name(said),
            "right": said == label,
            "confidence": float(measures.confidences[place]),
            "loss": float(measures.losses[place]),
        }
    known["tags"] = [] if world.tags is None else [each.tag for each in world.tags.of(which, place)]
    known["copy_of"] = world.copies.get(place) if which == "case" else None
    known["tile"] = tile(world, which, place, beside)
    return known


def probabilities(world: World, which: str, place: int) -> list[dict[str, Any]]:
    """The likeliest classes of an instance."""
    measures = world.measures[which]
    pairs = zip(measures.likeliest[place].tolist(), measures.probabilities[place].tolist(), strict=True)
    return [{"label": label, "name": world.class_name(label), "probability": p} for label, p in pairs]


def precedents(world: World, metric: str, case: int, k: int) -> list[dict[str, Any]] | None:
    """The first precedents of a case by a metric; None while they are not known."""
    answers = world.answers.get(metric)
    if answers is None or not bool(answers.done[case]):
        return None
    asked = world.test.take([case]).relabelled(world.measures["case"].predictions[case : case + 1])
    found = cited(world, answers, metric, case, asked, k)
    return told(world, found, beside(world, "case", case), int(asked.labels))


def beside(world: World, which: str, place: int) -> Shown | None:
    """What precedents are compared with; pictures are not."""
    return None if world.kind == "pictures" else world.shown(which, place)


def cited(world: World, answers: AllAnswers, metric: str, case: int, asked: Batch, k: int) -> list[Precedent]:
    """The first k precedents of a row of answers, as `Explanation.precedents` gives them.

    `asked` is the case by itself, with the label that it is taken for.
    """
    k = min(k, answers.k)
    indices = answers.indices[case, :k].long()
    train, predictions = world.subject.train, asked.labels
    offered = train.take(indices.tolist())
    copy = equal(asked.inputs, mapped(lambda leaf: leaf[None], offered.inputs))[0]
    below = answers.below[case]
    known = len(answers.lengths) > 0
    marks: dict[str, Tensor] = {
        ANOTHER: offered.labels != predictions,
        HUB: torch.tensor([i in _hubs(world, metric) for i in indices.tolist()]),
        NORM: answers.outlying[indices],
        DUPLICATE: copy,
        ZERO: answers.lengths[indices] == 0 if known else torch.zeros(k, dtype=torch.bool),
        UNRANKED: torch.full((k,), bool((below == 0).all()) and answers.train > 1),
    }
    parts = None
    if metric == GRAD_COS:
        parts = decomposed(world.subject.classifier, asked, offered, torch.arange(k)[None])
    return [
        Precedent(
            rank=rank + 1,
            index=int(i),
            label=int(offered.labels[rank]),
            score=float(answers.scores[case, rank]),
            agrees=bool(offered.labels[rank] == predictions[0]),
            percentile=100 * int(below[rank]) / answers.train,
            cautions=tuple(name for name, mark in marks.items() if bool(mark[rank])),
            residual_cosine=None if parts is None else float(parts.residual[0, rank]),
            feature_cosine=None if parts is None else float(parts.feature[0, rank]),
            id=None if train.ids is None else train.ids[int(i)],
        )
        for rank, i in enumerate(indices)
    ]


def _hubs(world: World, metric: str) -> Mapping[int, float]:
    """The hubs by a metric: of the audit, or of all cases once they are answered."""
    if world.audit is not None and metric in world.audit.metrics:
        return world.audit.hubs(metric)
    answers = world.answers[metric]
    return answers.hubs if answers.complete else {}


def told(
    world: World, found: Sequence[Precedent], beside: Shown | None, prediction: int
) -> list[dict[str, Any]]:
    """Precedents as plain values, with what a person reads."""
    written = scores([each.score for each in found])
    return [
        {
            "rank": each.rank,
            "index": each.index,
            "id": each.id,
            "called": world.called("train", each.index),
            "label": each.label,
            "label_name": world.class_name(each.label),
            "agrees": each.label == prediction,
            "score": each.score,
            "score_text": text,
            "percentile": each.percentile,
            "above": f"{int(10 * each.percentile + MARGIN) / 10:.1f}",
            "cautions": list(each.cautions),
            "residual_cosine": each.residual_cosine,
            "feature_cosine": each.feature_cosine,
            "tile": tile(world, "train", each.index, beside, each.label == prediction),
        }
        for each, text in zip(found, written, strict=True)
    ]


def first(world: World, metric: str, case: int) -> dict[str, Any] | None:
    """The first precedent of a case, as lists show it: without what takes a pass of the model."""
    answers = world.answers.get(metric)
    if answers is None or not bool(answers.done[case]):
        return None
    index = int(answers.indices[case, 0])
    label = int(world.subject.train.labels[index])
    agrees = label == int(world.measures["case"].predictions[case])
    return {
        "index": index,
        "called": world.called("train", index),
        "label": label,
        "label_name": world.class_name(label),
        "agrees": agrees,
        "score_text": scores([float(answers.scores[case, 0])])[0],
        "tile": tile(world, "train", index, beside(world, "case", case), agrees),
    }

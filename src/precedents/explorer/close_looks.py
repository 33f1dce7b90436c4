"""Close looks: one case with its precedents by every metric, and one training instance with whom it answers."""

from collections.abc import Mapping, Sequence
from typing import Any

from precedents.explorer.looks import MOST, Look, metric
from precedents.explorer.query import Query
from precedents.explorer.questions import own_precedents, taken_for
from precedents.explorer.rows import instance, precedents, probabilities
from precedents.explorer.tags import TAGS
from precedents.explorer.world import World

SHOWN = 6  # precedents of a case by a metric
ANSWERED = 24  # cases of a training instance that are shown, right and wrong each


def case(world: World, query: Query) -> Look:
    """One case: its probabilities, and its precedents by every metric."""
    place = query.place("place", len(world.test), "case")
    k = query.whole("k", 1, MOST, SHOWN)
    taken = query.maybe("as", 0, world.subject.classifier.classes - 1)
    only = query.choice("metric", world.engines, "")
    query.over()
    known = instance(world, "case", place)
    likeliest = probabilities(world, "case", place) if "case" in world.measures else []
    names = [only] if only else list(world.engines)
    columns = [
        metric(world, name) | {"precedents": precedents(world, name, place, k) if likeliest else None}
        for name in names
    ]
    others = _others(known, likeliest)
    label = "" if taken is None else f", labels=[{world.own_label(taken)!r}]"
    line = f"print(explainer.explain(test.selected([{place}]), k={k}{label}))"
    return {
        "case": known,
        "probabilities": likeliest,
        "columns": columns,
        "k": k,
        "as": taken,
        "taken": None if taken is None else taken_for(world, place, taken, k),
        "others": others,
        "around": _around(world, "case", place),
        "alternatives": [{"label": each, "name": world.class_name(each)} for each in others],
        "choices": TAGS,
        "python": world.origin.python(only or world.main, line),
        "command": ""
        if taken is not None
        else world.origin.command("explain", "--case", str(place), "-k", str(k), metric=only or world.main),
    }


def _others(known: Mapping[str, Any], likeliest: Sequence[Mapping[str, Any]]) -> list[int]:
    """Classes that the case might have been taken for: its label and the runner-up."""
    wanted = [known["label"], *(each["label"] for each in likeliest[1:2])]
    return [each for each in dict.fromkeys(wanted) if each != known.get("prediction")]


def case_precedents(world: World, query: Query) -> Look:
    """The precedents of a case alone, by one metric; `as` a class, they are computed."""
    place = query.place("place", len(world.test), "case")
    k, name = query.whole("k", 1, MOST, SHOWN), query.choice("metric", world.engines, world.main)
    taken = query.maybe("as", 0, world.subject.classifier.classes - 1)
    query.over()
    if taken is not None:
        return {"case": place, "as": taken} | taken_for(world, place, taken, k)
    found = precedents(world, name, place, k) if "case" in world.measures else None
    return {"case": place, "metric": name, "known": found is not None, "precedents": found}


def train_answers(world: World, query: Query) -> Look:
    """The cases that a training instance answers, alone."""
    place = query.place("place", len(world.subject.train), "training instance")
    name = query.choice("metric", world.engines, world.main)
    query.over()
    there = world.answers.get(name)
    known = there is not None and there.complete and "case" in world.measures
    return {
        "train": place,
        "metric": name,
        "known": known,
        "answers": answered(world, name, place) if known else None,
    }


def _around(world: World, which: str, place: int) -> Look:
    """The places of the instances before and after, and what they are called."""
    near = {"before": place - 1, "after": place + 1}
    there = {side: i if 0 <= i < len(world.set_of(which)) else None for side, i in near.items()}
    names = {f"{side}_called": None if i is None else world.called(which, i) for side, i in there.items()}
    return there | names


def train(world: World, query: Query) -> Look:
    """One training instance: which cases it answers, right and wrong ones apart."""
    place = query.place("place", len(world.subject.train), "training instance")
    name = query.choice("metric", world.engines, world.main)
    own = query.choice("own", ("1",), "")
    query.over()
    answers, measures = world.answers.get(name), world.measures.get("case")
    known = answers is not None and answers.complete and measures is not None
    k = min(MOST, len(world.subject.train))
    return {
        "instance": instance(world, "train", place),
        "probabilities": probabilities(world, "train", place) if "train" in world.measures else [],
        "metric": name,
        "metrics": [metric(world, each) for each in world.engines],
        "known": known,
        "answers": answered(world, name, place) if known else None,
        "own": own_precedents(world, place, name, SHOWN) if own else None,
        "around": _around(world, "train", place),
        "choices": TAGS,
        "classes": [world.class_name(i) for i in range(world.subject.classifier.classes)],
        "python": world.origin.python(name, f"print(explainer.answers({place}, test, k={k}))"),
        "command": world.origin.command("answers", "--index", str(place), "-k", str(k), metric=name),
    }


def answered(world: World, name: str, place: int) -> Look:
    """The cases that a training instance answers by a metric."""
    answers, measures = world.answers[name], world.measures["case"]
    found, ranks = answers.answered_by(place)
    wrong = measures.wrong[found]
    firsts = int((ranks == 0).sum())
    sides = {}
    for side, mask in (("wrong", wrong), ("right", ~wrong)):
        there = zip(found[mask].tolist()[:ANSWERED], ranks[mask].tolist(), strict=False)
        sides[side] = [instance(world, "case", i) | {"rank": rank + 1} for i, rank in there]
    return {
        "count": len(found),
        "firsts": firsts,
        "share": firsts / len(world.test),
        "hub": place in answers.hubs,
        "k": answers.k,
        "wrong_count": int(wrong.sum()),
        "right_count": int((~wrong).sum()),
        **sides,
    }

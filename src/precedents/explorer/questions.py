"""Single questions: what a page asks beyond what is known of all cases, each a short job."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import torch

from precedents.data.batch import Batch
from precedents.data.examples import Examples
from precedents.explain.explanation import Precedent
from precedents.explorer.answers import AllAnswers
from precedents.explorer.jobs import QueuedJob
from precedents.explorer.measures import Measures, measured
from precedents.explorer.rows import beside, cited, told
from precedents.explorer.safety import Refusal
from precedents.explorer.world import World
from precedents.runtime.progress import told as progress_told
from precedents.views.instance import Shown, shown

SHOWN = 8  # precedents of a case of one's own, by a metric


def single(
    world: World, key: Hashable, title: str, work: Callable[[], Any], lasting: bool = False
) -> dict[str, Any]:
    """The answer to a question if it is known, else the job that will know it, `lasting` if nobody waits."""
    found = world.single.get(key)
    if found is None:
        job = world.jobs.ask(key, title, lambda job: _kept(world, key, work, job), lasting=lasting)
        return {"known": False, "job": job.told(), "answer": None}
    return {"known": True, "job": None, "answer": found}


def _kept(world: World, key: Hashable, work: Callable[[], Any], job: QueuedJob) -> None:
    title = job.title

    def say(line: str) -> None:
        job.step(0, 1, f"{title}: {line}")

    job.step(0, 1)
    with progress_told(say):
        answer = work()
    (world.single.stay if job.lasting else world.single.put)(key, answer)
    world.changed()


def taken_for(world: World, place: int, label: int, k: int) -> dict[str, Any]:
    """The precedents that a case would have if it were taken for another class, by the main metric."""
    metric = world.main

    def work() -> list[Precedent]:
        cases = world.test.selected([place]).relabelled(torch.tensor([label]))
        return asked_of(world, metric, cases, k)

    known = single(world, ("as", place, label, k, metric), f"case {place} taken for another class", work)
    if known["known"]:
        known["answer"] = told(world, known["answer"], beside(world, "case", place), label)
    return known | {"label": label, "name": world.class_name(label), "metric": metric}


def own_precedents(world: World, place: int, metric: str, k: int) -> dict[str, Any]:
    """The precedents of a training instance itself, labelled as it is predicted."""
    measures = world.measures.get("train")
    if measures is None:
        raise Refusal(503, "The training set is still being looked at. Try again in a moment.")
    label = measures.predictions[place : place + 1]

    def work() -> list[Precedent]:
        return asked_of(world, metric, world.subject.train.selected([place]).relabelled(label), k)

    known = single(world, ("own", place, metric, k), f"precedents of training instance {place}", work)
    if known["known"]:
        known["answer"] = told(world, known["answer"], beside(world, "train", place), int(label))
    return known


def asked_of(world: World, metric: str, cases: Examples, k: int) -> list[Precedent]:
    """The precedents of one case by a metric, computed now."""
    n = len(world.subject.train)
    answers = AllAnswers.empty(1, n, world.subject.classifier.classes)
    ranked = world.engines[metric].ranked(cases, answers.k)
    answers.put(torch.tensor([0]), ranked)
    batch: Batch = cases.take([0])
    return cited(world, answers, metric, 0, batch, k)


@dataclass(frozen=True, eq=False)
class Tried:
    """A case of one's own, and what the model and the metrics say of it."""

    number: int
    shown: Shown
    given: Any  # what was typed: a text or the values of a row; None of a picture
    measures: Measures
    precedents: dict[str, list[Precedent]]  # by metric


def tried(world: World, x: Any, given: Any) -> QueuedJob:
    """The job that explains a case of one's own; its result is its number."""
    number = int(world.found.setdefault("tries", 0)) + 1
    world.found["tries"] = number

    def work(job: QueuedJob) -> int:
        cases = world.subject.cases(x)
        job.step(0, len(world.engines))
        found = {}
        for done, metric in enumerate(world.engines):
            found[metric] = asked_of(world, metric, cases, SHOWN)
            job.step(done + 1, len(world.engines))
        measures = measured(world.subject.classifier, cases, lambda *_: None)
        view = shown(cases.seen([0])[0], world.subject.render)
        size = len(view) if isinstance(view, str) else getattr(view, "nbytes", 0)
        world.tries.put(number, Tried(number, view, given, measures, found), size)
        world.changed()
        return number

    return world.jobs.ask(("try", number), "a case of your own", work)

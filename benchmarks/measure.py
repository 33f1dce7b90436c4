"""The process in which one contestant does one piece of work and times itself.

Contestants are the limit, what is measured of precedents (`ours.OURS`) and the peers (`peers.PEERS`), which run
in environments of their own. All get the same: a few instances in float64, by which they are checked, a batch
size chosen by trying, a warm-up on a few instances, and then the work.
"""

import argparse
import ctypes
import gc
import json
import logging
import os
import traceback
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch

from benchmarks.agreement import CASES, TRAIN, difference, expected_scores
from benchmarks.limit import pass_seconds, product_seconds
from benchmarks.machine import held_megabytes, here, peak_megabytes, plain
from benchmarks.models import MODELS, Work, work
from benchmarks.peers import PEERS

Run = Callable[[Work, int], dict[str, Any]]  # the work, a batch size -> seconds, and scores if there are any

REFERENCES = Path("/proc/self/clear_refs")
GRADIENT_SCORES = {"dot_grad", "cos_grad", *PEERS}  # whose scores are known from plain autograd


def contestant(who: str) -> tuple[Run, Sequence[int]]:
    """What is timed, and the batch sizes worth trying, if they are not those of the model."""
    if who == "limit":
        return limit, ()
    if who in PEERS:
        return timed(import_module(f"benchmarks.peers.{who}").scores), PEERS[who].batches
    ours = import_module("benchmarks.ours").OURS[who]
    return lambda task, _: timed(partial(_alone, ours, task.memory))(task, 0), (0,)  # which chooses batch sizes


def _alone(ours: Callable[..., np.ndarray], memory: str | None, *parts: Any, batch: int) -> np.ndarray:  # noqa: ARG001
    return ours(*parts, memory=memory)


def timed(scores: Callable[..., np.ndarray]) -> Run:
    """A function that makes scores, with a clock."""

    def run(task: Work, batch: int) -> dict[str, Any]:
        start = perf_counter()
        found = scores(*task.parts, batch=batch)
        return {"seconds": perf_counter() - start, "scores": found}

    return run


def limit(task: Work, batch: int) -> dict[str, Any]:
    """The two parts of the limit and their sum."""
    x, y = torch.cat([task.x_train, task.x_cases]), torch.cat([task.y_train, task.y_cases])
    passed = pass_seconds(task.model, x, y, batch)
    product = product_seconds(len(task.x_cases), len(task.x_train), task.parameters)
    return {"seconds": passed + product, "pass_seconds": passed, "product_seconds": product}


def checked(who: str, run: Run, task: Work, batch: int, sizes: tuple[int, int]) -> float | None:
    """How far the scores of a few instances are from what they should be; None where that is not known.

    In float64, or in float32 by who cannot do float64.
    """
    few = task.head(*sizes)
    try:
        found = run(few.doubled(), batch)
    except Exception:  # peers fail in many ways; what fails in float32 too is raised from there
        found = run(few, batch)
    if who not in GRADIENT_SCORES:
        return None
    return difference(expected_scores(few.doubled(), cosine=who == "cos_grad"), found["scores"])


def tuned(run: Run, task: Work, batches: Sequence[int]) -> int:
    """The fastest of these batch sizes on a part of the work."""
    if len(batches) == 1:
        return batches[0]
    n, m = len(task.x_train), len(task.x_cases)
    part = min(n, max(batches))
    small = task.head(part, max(1, m * part // n))
    return min(batches, key=lambda batch: run(small, batch)["seconds"])


def with_memory(run: Run, task: Work, batch: int) -> dict[str, Any]:
    """A run, and how much memory it took beyond what the process held before, where Linux tells."""
    gc.collect()
    if not REFERENCES.exists():
        return run(task, batch)
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    peak, before = peak_megabytes(), held_megabytes()
    REFERENCES.write_text("5")  # the peak is counted from here on
    found = run(task, batch)
    own = peak_megabytes()
    return found | {"taken_megabytes": own - before, "peak_megabytes": max(peak, own)}


def measured(
    who: str, model: str, n: int, m: int, batch: int | None, runs: int, *, settled: bool = True
) -> dict[str, Any]:
    """The best of so many runs, with all that is worth knowing of it; its own peak of memory, if `settled`."""
    run, batches = contestant(who)
    batches = batches or MODELS[model].batches
    task = work(model, n, m)
    deviation = checked(who, run, task, min(batches), MODELS[model].checked or (TRAIN, CASES))
    if batch is None:
        batch = tuned(run, task, batches)
    run(task.head(8, 4), batch)
    found = (with_memory(run, task, batch) if settled else run(task, batch) for _ in range(runs))
    best = min(found, key=lambda result: result["seconds"])
    return best | {"batch": batch, "parameters": task.parameters, "deviation": deviation}


def main() -> None:
    """Writes a JSON object to `--out` and the scores, if there are any, to `--scores`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("who", help="limit, one of ours or one of the peers")
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--n", type=int, default=5000, help="training instances")
    parser.add_argument("--m", type=int, default=500, help="cases")
    parser.add_argument("--batch", type=int, help="a batch size found before")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--scores", type=Path)
    parser.add_argument("--unsettled", action="store_true", help="memory is not given back before a run")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    result: dict[str, Any]
    try:
        asked = given.who, given.model, given.n, given.m, given.batch, given.runs
        result = measured(*asked, settled=not given.unsettled)
        scores = result.pop("scores", None)
        if given.scores is not None and scores is not None:
            np.save(given.scores, scores)
    except Exception as error:  # whatever a peer's failure is, it is the result
        traceback.print_exc()
        result = {"error": f"{type(error).__name__}: {plain(str(error))}"}
    machine, versions = here()
    if given.who in PEERS:
        versions[PEERS[given.who].package] = version(PEERS[given.who].package)
    peak = max(peak_megabytes(), result.get("peak_megabytes", 0.0))
    result |= {"peak_megabytes": peak, "machine": machine, "versions": versions}
    given.out.write_text(json.dumps(result))
    os._exit(0)  # threads that somebody left behind would keep the process


if __name__ == "__main__":
    main()

"""How right estimates are, and what they cost: the estimated and the measured seconds of the same question.

Each model is a process of its own. Leave the machine alone while it measures.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter

from rich.console import Console

import precedents
from benchmarks.machine import here
from benchmarks.models import MODELS, work
from benchmarks.process import run_module
from benchmarks.records import Record, Records, now

N, M = 5_000, 500  # training instances and cases; large models have fewer


def told(model: str) -> Record:
    """What the process of a model says."""
    task = work(model, *MODELS[model].of(N, M))
    few = precedents.Explainer(task.model, (task.x_train[:64], task.y_train[:64]), memory=task.memory)
    few.explain(task.x_cases[:8])  # libraries are warm, threads are there
    explainer = precedents.Explainer(task.model, (task.x_train, task.y_train), memory=task.memory)
    start = perf_counter()
    estimate = explainer.estimate(len(task.x_cases))
    middle = perf_counter()
    explainer.explain(task.x_cases)
    return {
        "model": model,
        "estimated": estimate.seconds,
        "measured": perf_counter() - middle,
        "cost": middle - start,
    }


def section(records: Sequence[Record]) -> Iterator[str]:
    """The lines of the page."""
    yield ""
    yield "## Estimates"
    yield ""
    yield (
        "`explainer.estimate(m)` before `explainer.explain(cases)` by Grad-Cos: how long it says, how long it "
        "takes, and how long the estimate itself takes. `python -m benchmarks.estimates` measures it."
    )
    yield ""
    yield "| model | estimated, s | measured, s | ratio | the estimate itself, s |"
    yield "|---|---:|---:|---:|---:|"
    for r in records:
        ratio = r["estimated"] / r["measured"]
        title = MODELS[r["model"]].title
        yield f"| {title} | {r['estimated']:.2f} | {r['measured']:.2f} | {ratio:.2f} | {r['cost']:.2f} |"


def main() -> None:
    """Measures all models, or one in this process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--model", help="only this one, in this process")
    given = parser.parse_args()
    if given.model:
        sys.stdout.write(json.dumps(told(given.model)) + "\n")
        return
    records, console = Records(given.out / "estimates.jsonl"), Console(highlight=False)
    for model in MODELS:
        ended = run_module("benchmarks.estimates", f"--model={model}")
        if ended.returncode:
            raise RuntimeError(ended.stderr)
        machine, versions = here()
        found = json.loads(ended.stdout.splitlines()[-1])
        records.append({"key": model, "date": now(), **found, "machine": machine, "versions": versions})
        console.print(
            f"{model}: {found['estimated']:.2f} s estimated in {found['cost']:.2f} s, {found['measured']:.2f} s"
        )


if __name__ == "__main__":
    main()

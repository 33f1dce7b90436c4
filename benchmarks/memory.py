"""Peak memory of explanations, audits and jobs under memory budgets, on models as people have them.

Each model is a process of its own, which tells how much more memory each question took than it had before.
"""

import argparse
import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.machine import here
from benchmarks.process import run_module
from benchmarks.records import Record, Records, now
from precedents.runtime.budget import CONSTANT

MODELS = ("CNN", "ResNet-18", "transformer", "sparse text")
BUDGETS = ("100 MB", "500 MB", "2 GB")
JOBS = ("explain", "explain 1000", "scores", "estimate", "audit", "suspects", "groups", "shares")
AUDITED = "cos_x,cos_last,cos_grad,cos_fisher"


def measured(model: str, known: Collection[str] = ()) -> Iterator[Record]:
    """A record for each job and budget whose key is not known."""
    asked = [(job, budget) for budget in BUDGETS for job in JOBS if f"{model} {job} {budget}" not in known]
    lines = [f"{AUDITED if job == 'audit' else 'cos_grad'}|{job}|{budget}" for job, budget in asked]
    ended = run_module("benchmarks.peak", model, given="\n".join(lines) + "\n")
    if ended.returncode:
        raise RuntimeError(ended.stderr)
    machine, versions = here()
    common = {"date": now(), "machine": machine, "versions": versions}
    for (job, budget), line in zip(asked, ended.stdout.splitlines(), strict=True):
        yield (
            {"key": f"{model} {job} {budget}", "model": model, "job": job, "budget": budget}
            | json.loads(line)
            | common
        )


def section(records: Sequence[Record]) -> Iterator[str]:
    """The lines of the page."""
    yield ""
    yield "## Memory budgets"
    yield ""
    yield (
        "The most memory, in MiB, that a question took beyond what the process held before (model, data, "
        "libraries), in processes of their own; *refused* is a `BudgetError` before the work starts. The bound "
        f"is the budget and {CONSTANT // 2**20} MiB. All are by Grad-Cos; the audit tries "
        f"{AUDITED.replace(',', ', ')} and leaves out what does not fit. "
        "`python -m benchmarks.memory` measures it."
    )
    yield ""
    found = {(r["model"], r["budget"], r["job"]): r for r in records}
    jobs = [job for job in JOBS if any(job == each for *_, each in found)]
    yield "| model | budget | " + " | ".join(jobs) + " |"
    yield "|---|---:|" + "---:|" * len(jobs)
    for model in MODELS:
        for budget in BUDGETS:
            cells = [_cell(found.get((model, budget, job))) for job in jobs]
            yield f"| {model} | {budget} | " + " | ".join(cells) + " |"


def _cell(record: Record | None) -> str:
    if record is None:
        return "not measured"
    return f"{record['peak']:.0f}" if record["ended"] == "done" else "refused"


def main() -> None:
    """Measures what has no record yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--models", default=",".join(MODELS))
    given = parser.parse_args()
    records, console = Records(given.out / "memory.jsonl"), Console(highlight=False)
    known = {record["key"] for record in records}
    for model in given.models.split(","):
        for record in measured(model, known):
            records.append(record)
            console.print(f"{record['key']}: {_cell(record)}")


if __name__ == "__main__":
    main()

"""What each job takes on 60,000 images and a ResNet of 170,000 parameters: seconds and peak memory.

Each job is a process of its own: the explainer is made, the peak is counted from there on, and the job is
done once. What was measured is not measured again; `benchmarks.page` puts the table into docs/benchmarks.md.
"""

import argparse
import ctypes
import gc
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from rich.console import Console

import precedents as pr
from benchmarks.machine import here
from benchmarks.noisy import resnet
from benchmarks.peak import megabytes
from benchmarks.process import run_module
from benchmarks.records import Record, Records, now
from precedents.data.examples import Examples
from precedents.data.parts import together
from precedents.runtime.budget import CONSTANT, Budget
from precedents.runtime.wording import readable
from precedents.zoo.datasets.mnist import mnist
from precedents.zoo.train import Schedule, trained

MEMORY = "2 GB"
TRAINED = 4000  # images that the model is trained on, so that it predicts well
Test = tuple[torch.Tensor, torch.Tensor]


def by_last(explainer: pr.Explainer) -> pr.Explainer:
    """The same model by what its last layer receives."""
    return pr.Explainer(explainer.subject.classifier, explainer.subject.train, "cos_last")


JOBS: dict[str, tuple[str, Callable[[pr.Explainer, Test], Any]]] = {
    "self_relevance": ("`self_relevance()`", lambda e, _: e.self_relevance()),
    "suspects": ("`suspects()`", lambda e, _: e.suspects()),
    "contrast": ("`contrast(x, 4, 9)`", lambda e, test: e.contrast(test[0][:1], 4, 9)),
    "answers": ("`answers(0, cases)`, 100 cases", lambda e, test: e.answers(0, test[0][:100])),
    "near_duplicates": ("`near_duplicates(test)`, 10,000 others", lambda e, test: e.near_duplicates(test)),
    "groups": ("`groups(cases)`, 100 cases", lambda e, test: e.groups(test[0][:100])),
    "groups by error": ('`groups(test, by="error")`, 10,000 cases', lambda e, test: e.groups(test, by="error")),
    "shares": ("`shares(x, 0)`", lambda e, test: e.shares(test[0][:1], 0)),
    "compare": (
        "`compare` with `cos_last`, 100 cases",
        lambda e, test: pr.compare(e, by_last(e), test[0][:100]),
    ),
}


def images(folder: Path | None) -> tuple[Examples, Examples]:
    """All 60,000 of MNIST to train on, what the paper holds out among them, and the 10,000 to test on."""
    dataset = mnist(None if folder is None else folder / "mnist")
    assert dataset.dev is not None
    assert dataset.test is not None
    return together(dataset.train, dataset.dev), dataset.test


def told(job: str, n: int, folder: Path | None) -> Record:
    """One job in this process."""
    every, others = images(folder)
    model = trained(lambda: resnet(blocks=2), every.selected(range(TRAINED)), Schedule(3, rate=3e-3))
    train, test = every.selected(range(min(n, len(every)))), others.take(range(len(others)))
    explainer = pr.Explainer(model, train, memory=MEMORY)
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    before = megabytes("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here on
    began = perf_counter()
    JOBS[job][1](explainer, (test.inputs, test.labels))
    seconds = perf_counter() - began
    parameters = sum(p.numel() for p in model.parameters())
    return {"seconds": seconds, "peak": megabytes("VmHWM") - before, "parameters": parameters, "n": len(train)}


def allowed() -> int:
    """Bytes that a job may take."""
    return Budget.of(MEMORY).bytes + CONSTANT


def section(records: Sequence[Record]) -> Iterator[str]:
    """The lines of the page."""
    latest = {record["job"]: record for record in records}
    one = next(iter(latest.values()))
    yield ""
    yield "## Jobs"
    yield ""
    yield (
        f"Each call once on {one['n']:,} images of MNIST and a ResNet of {one['parameters']:,} parameters by "
        f'Grad-Cos, with `memory="{MEMORY}"` and {one["machine"]["threads"]} thread(s), each in a process of '
        "its own. The memory is what was taken beyond the model, the data and the libraries; the goal is the "
        f"budget and {readable(CONSTANT)} for Python and the libraries: {readable(allowed())}. "
        "`python -m benchmarks.jobs --data FOLDER` measures it."
    )
    yield ""
    yield "| job | seconds | peak memory, MiB | within the goal |"
    yield "|---|---:|---:|---|"
    for job, (title, _) in JOBS.items():
        if job in latest:
            seconds, peak = latest[job]["seconds"], latest[job]["peak"]
            within = "yes" if peak * 2**20 <= allowed() else "**no**"
            yield f"| {title} | {seconds:.0f} | {peak:.0f} | {within} |"


def main() -> None:
    """Measures what is not measured yet, or one job in this process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--data", type=Path, help="the folder with the files of the data sets")
    parser.add_argument("--n", type=int, default=60_000)
    parser.add_argument("--job", choices=JOBS, help="only this one, in this process")
    parser.add_argument("--again", action="store_true", help="measure all of them anew")
    given = parser.parse_args()
    if given.job:
        sys.stdout.write(json.dumps(told(given.job, given.n, given.data)) + "\n")
        return
    records, console = Records(given.out / "jobs.jsonl"), Console(highlight=False)
    machine, versions = here()
    known = set() if given.again else {r["job"] for r in records if r["n"] == given.n}
    data = [] if given.data is None else [f"--data={given.data}"]
    for job in JOBS:
        if job in known:
            continue
        ended = run_module("benchmarks.jobs", f"--job={job}", f"--n={given.n}", *data)
        if ended.returncode:
            raise RuntimeError(ended.stderr)
        found = {"job": job, **json.loads(ended.stdout.splitlines()[-1])}
        records.append({"key": f"{job} {now()}", **found, "machine": machine, "versions": versions})
        console.print(f"{job}: {found['seconds']:.1f} s, {found['peak']:.0f} MiB")


if __name__ == "__main__":
    main()

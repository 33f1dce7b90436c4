"""One work: an index is built, loaded, asked and compared with full passes, in this process."""

import ctypes
import gc
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.index.works import BATCH, CASES, WORKS, Given, IndexWork, Labelled
from benchmarks.peak import megabytes
from benchmarks.records import Record
from precedents import Explainer, Index
from precedents.index.check import IndexCheck
from precedents.index.shards import FOLDER

ASKED = 5  # further questions
LONG = 20.0  # seconds of plain passes, after which the rest is counted by rows
BUFFER = 2**28  # bytes that are copied to see how fast memory is
CODE = 1040  # bytes of a row that a scan reads, about


@dataclass(frozen=True)
class Setting:
    """How a work is done."""

    name: str
    n: int | None = None  # training instances, if not as many as the work has
    data: Path | None = None  # the folder of the data sets
    memory: str = "2 GB"

    @property
    def work(self) -> IndexWork:
        """What is done."""
        return WORKS[self.name]

    def made(self) -> Given:
        """The model, its training set and cases: the same in every process."""
        torch.manual_seed(0)
        return self.work.make(self.n or self.work.n, self.data)


def done(setting: Setting, folder: Path) -> Record:
    """What is found of a work; the index stays in the folder, and what is there of it is not built again."""
    work, (model, train, cases) = setting.work, setting.made()
    found: dict[str, Any] = {
        "n": len(train[0]),
        "parameters": sum(p.numel() for p in model.parameters()),
        "metric": work.metric,
        "memory": setting.memory,
        "source": work.files if work.files is not None and setting.data is not None else "drawn",
        "plain": plain(model, *train),
        "copied": copying(),
    }
    if work.first:
        found |= in_one_process(model, train, cases, setting)
    found |= built(model, train, setting, folder)
    before = found.pop("before")
    began = perf_counter()
    loaded = Explainer.load(folder, model, train, memory=setting.memory)
    found["load"] = perf_counter() - began
    found |= asked(loaded, cases, full=not work.dear) | {"peak": megabytes("VmHWM") - before}
    del loaded
    found |= summary(
        Index.open(folder, model, train, memory=setting.memory).check(cases[: CASES // (1 + work.dear)])
    )
    return found | {"peak with check": megabytes("VmHWM") - before}


def plain(model: nn.Module, x: Tensor, y: Tensor) -> float:
    """Seconds of forward and backward passes over all rows, by as many as there is time for."""
    began = perf_counter()
    for start in range(0, len(x), BATCH):
        rows = slice(start, start + BATCH)
        nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
        spent = perf_counter() - began
        if spent > LONG:
            return spent * len(x) / min(start + BATCH, len(x))
    return perf_counter() - began


def copying() -> float:
    """Seconds in which memory reads a byte, by a copy, which reads and writes."""
    buffer, other = (torch.ones(BUFFER, dtype=torch.uint8) for _ in range(2))
    seconds = []
    for _ in range(5):
        began = perf_counter()
        other.copy_(buffer)
        seconds.append(perf_counter() - began)
    return min(seconds) / (2 * BUFFER)


def in_one_process(model: nn.Module, train: Labelled, cases: Tensor, setting: Setting) -> Record:
    """Seconds of the first question of a new explainer, and of the next ones."""
    explainer = Explainer(model, train, setting.work.metric, memory=setting.memory)
    seconds = timed(explainer, cases[: 1 + ASKED])
    return {"first": seconds[0], "second": median(seconds[1:])}


def timed(explainer: Explainer, cases: Tensor) -> list[float]:
    """Seconds of a question for each case."""
    seconds = []
    for case in cases:
        began = perf_counter()
        explainer.explain(case)
        seconds.append(perf_counter() - began)
    return seconds


def built(model: nn.Module, train: Labelled, setting: Setting, folder: Path) -> Record:
    """An index, in as many pieces as the work has; what the process held before; from here its peak counts."""
    work, before = setting.work, settled()
    Path("/proc/self/clear_refs").write_text("5")
    began = perf_counter()
    for piece in range(work.pieces):
        part = None if work.pieces == 1 else f"{piece + 1}/{work.pieces}"
        Index.build(model, train, folder, work.metric, memory=setting.memory, shard=part)
    took = perf_counter() - began
    sizes = {path: path.stat().st_size for path in folder.rglob("*") if path.is_file()}
    rows = sum(size for path, size in sizes.items() if path.parent.name == FOLDER)
    told = {"bytes": rows, "beside": sum(sizes.values()) - rows}  # of rows, and of the index once
    return {"before": before, "build": took, **told, "pieces": work.pieces}


def settled() -> float:
    """The memory of this process in MiB, without what it could give back."""
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    return megabytes("VmRSS")


def asked(loaded: Explainer, cases: Tensor, *, full: bool) -> Record:
    """Seconds of questions from the index, and of one that is a full pass, if that is wanted."""
    loaded.explain(cases[0])
    found: Record = {"question": median(timed(loaded, cases[1 : 1 + ASKED]))}
    if full:
        began = perf_counter()
        loaded.relevance.ranked(loaded.subject.cases(cases[:1]), 5)
        found["pass"] = perf_counter() - began
    return found


def summary(check: IndexCheck) -> Record:
    """What a check found."""
    again: Sequence[int] = sorted(each.computed for each in check.answered)
    return {
        "recall": check.recall if check.indexed else None,
        "error": check.error if check.indexed else None,
        "passes": check.passes,
        "sure": check.sure,
        "computed": check.computed,
        "most": again[-1],
        "cases": len(again),
        "check": check.seconds,
    }


def least(record: Record) -> float:
    """Seconds that a question takes at least: of a scan, and of the rows of a pass that are computed."""
    whole = record.get("pass", record["check"])
    return float(record["n"] * CODE * record["copied"] + record["computed"] / record["n"] * whole)

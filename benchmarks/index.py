"""Indexes: building beside plain passes, further questions beside the first one, recall, bytes and memory.

Each work is a process of its own: a model is trained or drawn, an index is built in a folder, some cases are
answered from it and by a full pass, and all of it is told as one line.

    python -m benchmarks.index --data FOLDER --out benchmarks/results
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import torch
from rich.console import Console
from torch import Tensor, nn

from benchmarks.machine import here
from benchmarks.peak import megabytes
from benchmarks.process import run_module
from benchmarks.records import Record, Records, now
from precedents import Explainer, Index
from precedents.index.check import IndexCheck

Given = tuple[nn.Module, tuple[Tensor, Tensor], Tensor, str]  # a model, its training set, cases, a metric
BATCH = 128  # of plain passes, and of training
CASES = 20
ASKED = 5  # further questions


class Residual(nn.Module):
    """Two convolutions around which the input goes."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        """The same shape."""
        return (x + self.second(self.first(x).relu())).relu()


def resnet() -> nn.Module:
    """About 150,000 parameters, for images of 28 x 28."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, stride=2, padding=1), nn.ReLU(), Residual(32),
        nn.Conv2d(32, 64, 3, stride=2, padding=1), nn.ReLU(), Residual(64),
        nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(256, 10),
    )  # fmt: skip


def trained(model: nn.Module, x: Tensor, y: Tensor, steps: int) -> nn.Module:
    """By Adam, on drawn batches."""
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for _ in range(steps):
        few = torch.randint(len(x), (BATCH,))
        loss = nn.functional.cross_entropy(model(x[few]), y[few])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


def readme(data: Path | None) -> Given:  # noqa: ARG001
    """The model of the README: digits, 1,210 parameters."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    x, y = torch.tensor(images / 16).float(), torch.tensor(labels)
    model = nn.Sequential(nn.Linear(64, 16), nn.Tanh(), nn.Linear(16, 10))
    return trained(model, x[:1000], y[:1000], 500), (x[:1000], y[:1000]), x[1000:], "cos_grad"


def images(data: Path | None) -> Given:
    """60,000 images of MNIST and a small ResNet."""
    from precedents.zoo.datasets.mnist import mnist

    found = mnist(data)
    parts = [part.take(range(len(part))) for part in (found.train, found.dev) if part is not None]
    x, y = (torch.cat(each) for each in zip(*((part.inputs, part.labels) for part in parts), strict=True))
    cases = torch.as_tensor(found.test.take(range(200)).inputs)
    return trained(resnet(), _square(x), y, 400), (_square(x), y), _square(cases), "cos_grad"


def _square(x: Tensor) -> Tensor:
    return x.float().reshape(-1, 1, 28, 28)


def hidden(n: int) -> Callable[[Path | None], Given]:
    """Many rows of 64 numbers, compared by 512 hidden units."""

    def made(data: Path | None) -> Given:  # noqa: ARG001
        centres = 2 * torch.randn(10, 64)
        y = torch.randint(10, (n + CASES,))
        x = torch.randn(n + CASES, 64) + centres[y]
        model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 10))
        return trained(model, x, y, 300), (x[:n], y[:n]), x[n:], "cos_last"

    return made


def convolutions(n: int) -> Callable[[Path | None], Given]:
    """Many drawn images of 12 x 12, and a small CNN."""

    def made(data: Path | None) -> Given:  # noqa: ARG001
        centres, y = 1.5 * torch.randn(10, 1, 12, 12), torch.randint(10, (n + CASES,))
        x = torch.randn(n + CASES, 1, 12, 12) + centres[y]
        model = nn.Sequential(
            nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Conv2d(8, 16, 3), nn.ReLU(),
            nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(256, 10),
        )  # fmt: skip
        return trained(model, x, y, 300), (x[:n], y[:n]), x[n:], "cos_grad"

    return made


WORKS: dict[str, tuple[str, Callable[[Path | None], Given]]] = {
    "readme": ("README's model, digits", readme),
    "mnist": ("ResNet, MNIST", images),
    "cnn 10,000": ("CNN, drawn images", convolutions(10_000)),
    "cnn 100,000": ("CNN, drawn images", convolutions(100_000)),
    "hidden 100,000": ("512 hidden units, drawn rows", hidden(100_000)),
    "hidden 1,000,000": ("512 hidden units, drawn rows", hidden(1_000_000)),
}


def plain(model: nn.Module, x: Tensor, y: Tensor) -> float:
    """Seconds of forward and backward passes over all rows, extrapolated from at most 10,000."""
    few = min(len(x), 10_000)
    began = perf_counter()
    for start in range(0, few, BATCH):
        rows = slice(start, min(start + BATCH, few))
        nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
    return (perf_counter() - began) * len(x) / few


def told(name: str, data: Path | None, memory: str) -> Record:
    """One work in this process."""
    torch.manual_seed(0)
    model, train, cases, metric = WORKS[name][1](data)
    parameters = sum(p.numel() for p in model.parameters())
    found: dict[str, Any] = {"n": len(train[0]), "parameters": parameters, "metric": metric, "memory": memory}
    found["plain"] = plain(model, *train)
    before = megabytes("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here on
    with TemporaryDirectory() as folder:
        began = perf_counter()
        index = Index.build(model, train, Path(folder) / "index", metric, memory=memory)
        found["build"] = perf_counter() - began
        found["bytes"] = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
        del index
        began = perf_counter()
        loaded = Explainer.load(Path(folder) / "index", model, train, memory=memory)
        found["load"] = perf_counter() - began
        found |= asked(loaded, cases) | {"peak": megabytes("VmHWM") - before}
        checked = Index.open(Path(folder) / "index", model, train).check(cases[:CASES])
    return found | summary(checked)


def asked(loaded: Explainer, cases: Tensor) -> Record:
    """Seconds of questions from the index, and of one that is a full pass."""
    loaded.explain(cases[0])
    seconds = []
    for case in cases[1 : 1 + ASKED]:
        began = perf_counter()
        loaded.explain(case)
        seconds.append(perf_counter() - began)
    began = perf_counter()
    loaded.relevance.ranked(loaded.subject.cases(cases[:1]), 5)
    return {"question": median(seconds), "pass": perf_counter() - began}


def summary(check: IndexCheck) -> Record:
    """What a check found."""
    again = sorted(each.computed for each in check.answered)
    return {
        "recall": check.recall,
        "error": check.error,
        "sure": check.sure,
        "computed": check.computed,
        "most": again[-1],
        "cases": len(again),
    }


def section(records: Sequence[Record]) -> Iterator[str]:
    """The lines of the page."""
    yield ""
    yield "## Indexes"
    yield ""
    yield (
        "`Index.build` beside plain forward and backward passes over the training set in batches of "
        f"{BATCH}; a question to a loaded index (the median of {ASKED}, warm) beside a full pass for the same; "
        "recall at 10 and the error of returned scores against the full pass; how many rows were computed "
        "again for a case, in the median and at most; the peak memory of building, loading and asking beyond "
        "the model, the data and the libraries. Processes of one thread. `python -m benchmarks.index` measures "
        "it."
    )
    yield ""
    yield (
        "| work | rows | parameters | build, of plain passes | question, ms | of a full pass | bytes a row | "
        "recall | error | rows again | how it is known | peak, MiB |"
    )
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|---:|"
    latest = {record["work"]: record for record in records}
    yield from (_line(latest[work]) for work in WORKS if work in latest)


def _line(record: Record) -> str:
    sure = ", ".join(f"{count} {name}" for name, count in record["sure"].items())
    cells = [
        f"{record['n']:,}",
        f"{record['parameters']:,}",
        f"{record['build'] / record['plain']:.2f}",
        f"{1000 * record['question']:.0f}",
        f"1/{record['pass'] / record['question']:.0f}",
        f"{record['bytes'] / record['n']:,.0f}",
        f"{record['recall']:.3f}",
        f"{record['error']:.0e}",
        f"{record['computed']:,} / {record['most']:,}",
        sure,
        f"{record['peak']:.0f}",
    ]
    return f"| {WORKS[record['work']][0]} | " + " | ".join(cells) + " |"


def main() -> None:
    """Measures what has no record yet, each in a process of its own; or one in this process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--data", type=Path, help="the folder that holds the files of the data sets")
    parser.add_argument("--memory", default="2 GB")
    parser.add_argument("--works", default=";".join(WORKS), help="with semicolons between")
    parser.add_argument("--one", choices=WORKS, help="only this one, in this process")
    given = parser.parse_args()
    if given.one:
        torch.set_num_threads(1)
        sys.stdout.write(json.dumps(told(given.one, given.data, given.memory)) + "\n")
        return
    records, console = Records(given.out / "index.jsonl"), Console(highlight=False)
    known = {record["work"] for record in records}
    machine, versions = here()
    for work in (each for each in given.works.split(";") if each not in known):
        where = [] if given.data is None else [f"--data={given.data}"]
        ended = run_module("benchmarks.index", f"--one={work}", f"--memory={given.memory}", *where)
        if ended.returncode:
            raise RuntimeError(ended.stderr)
        found = json.loads(ended.stdout.splitlines()[-1])
        record = {"key": work, "work": work, **found, "date": now(), "machine": machine, "versions": versions}
        console.print(_line(records.append(record)))


if __name__ == "__main__":
    main()

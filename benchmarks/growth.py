"""How time and peak memory of the ten best precedents grow with n, m and p.

Each point is a process of its own that builds the paper's CNN and its data, explains m cases and tells its
seconds and its peak memory. The data are one tensor of 28 x 28 images. A second process that only imports and
builds the same gives the baseline, so that the interpreter, its libraries and that tensor are subtracted.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

import precedents
from benchmarks.machine import here, peak_megabytes, plain
from benchmarks.process import run_module
from benchmarks.records import Record, Records, now
from benchmarks.summary import ROUNDS
from precedents.zoo.architectures.cnn import cnn

IMAGE, CLASSES, K = (1, 28, 28), 10, 10


@dataclass(frozen=True)
class Point:
    """Sizes: training instances, cases, and the width of the CNN, which decides on its parameters."""

    axis: str  # the one that varies
    n: int = 5_000
    m: int = 100
    width: int = 16

    @property
    def key(self) -> str:
        """Its name in the records."""
        return f"{self.axis}: n={self.n} m={self.m} width={self.width}"


def points(scale: float) -> Iterator[Point]:
    """Each size varied by itself; `scale` shrinks n."""
    base = int(5_000 * scale)
    for n in (1, 2, 4, 10):
        yield Point("n", n=n * base)
    for m in (10, 100, 1000):
        yield Point("m", n=base, m=m)
    for width in (8, 16, 32):
        yield Point("p", n=base, width=width)


def told(point: Point, build_only: bool) -> dict[str, Any]:
    """What the process of a point says: seconds, peak memory, number of parameters."""
    torch.manual_seed(0)
    model = cnn(IMAGE, CLASSES, point.width).eval()
    x, y = torch.randn(point.n, *IMAGE), torch.randint(CLASSES, (point.n,))
    cases = torch.randn(point.m, *IMAGE)
    machine, versions = here()
    start = perf_counter()
    if not build_only:
        precedents.Explainer(model, (x, y), metric="cos_grad").explain(cases, k=K)
    return {
        "seconds": perf_counter() - start,
        "peak_megabytes": peak_megabytes(),
        "parameters": sum(p.numel() for p in model.parameters()),
        "machine": machine,
        "versions": versions,
    }


def asked(point: Point, build_only: bool) -> dict[str, Any]:
    """The same from a process of its own."""
    flags = ["--build-only"] if build_only else []
    ended = run_module("benchmarks.growth", f"--point={json.dumps(asdict(point))}", *flags)
    if ended.returncode:
        return {"error": plain((ended.stderr.strip().splitlines() or [f"ended with {ended.returncode}"])[-1])}
    return json.loads(ended.stdout.splitlines()[-1])


def measured(point: Point, times: int) -> Record:
    """The best seconds and the highest peak of all rounds."""
    baseline = asked(point, build_only=True)
    rounds = [asked(point, build_only=False) for _ in range(times)]
    record = {"key": point.key, "date": now(), **asdict(point)}
    errors = [each["error"] for each in (baseline, *rounds) if "error" in each]
    if errors:
        return record | {"status": f"failed: {errors[0]}"}
    peak = max(each["peak_megabytes"] for each in rounds)
    return (
        rounds[0]
        | record
        | {
            "status": "measured",
            "k": K,
            "seconds": min(each["seconds"] for each in rounds),
            "peak_megabytes": peak,
            "baseline_megabytes": baseline["peak_megabytes"],
            "own_megabytes": peak - baseline["peak_megabytes"],
        }
    )


def table(records: list[Record]) -> Table:
    """Seconds and memory, and what they are relative to the first point of the axis."""
    drawn = Table(box=SIMPLE_HEAD)
    for heading in ("varied", "n", "m", "p", "seconds", "x first", "own MB", "x first", "peak MB", ""):
        drawn.add_column(heading, justify="right")
    for record in records:
        sizes = [f"{record[size]:,}" if size in record else "" for size in ("n", "m", "parameters")]
        if "seconds" not in record:
            drawn.add_row(record["axis"], *sizes, "", "", "", "", "", record["status"])
            continue
        first = next(r for r in records if r["axis"] == record["axis"] and "seconds" in r)
        drawn.add_row(
            record["axis"],
            *sizes,
            f"{record['seconds']:.2f}",
            f"{record['seconds'] / first['seconds']:.2f}",
            f"{record['own_megabytes']:.0f}",
            f"{record['own_megabytes'] / first['own_megabytes']:.2f}",
            f"{record['peak_megabytes']:.0f}",
            record["status"],
        )
    return drawn


def main() -> None:
    """Measures, writes `growth.jsonl` and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="the folder of the results")
    parser.add_argument("--scale", type=float, default=1.0, help="a part of the training instances")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--again", action="store_true", help="measure also what is done")
    parser.add_argument("--point", type=json.loads, help=argparse.SUPPRESS)
    parser.add_argument("--build-only", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 140)
    if given.point is not None:
        sys.stdout.write(json.dumps(told(Point(**given.point), given.build_only)) + "\n")
        return
    if given.out is None:
        parser.error("--out is missing")
    records = Records(given.out / "growth.jsonl")
    done = {} if given.again else {record["key"]: record for record in records}
    shown = []
    for point in points(given.scale):
        record = done.get(point.key) or records.append(measured(point, given.rounds))
        seconds = f"{record['seconds']:.2f} s" if "seconds" in record else ""
        console.print(f"{point.key:36} {seconds:10} {record['status']}", markup=False)
        shown.append(record)
    console.print(table(shown))


if __name__ == "__main__":
    main()

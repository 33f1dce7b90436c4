"""Peak memory of an explanation from a training set that is streamed from disk, by its length.

Each length is a process of its own: a file of float32 rows is read through a dataset that maps it for each row,
and five cases are explained twice, so that whatever is kept for the next question is there. The peak is that
of the whole process, with the interpreter and its libraries.
"""

import argparse
import json
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import Dataset

import precedents
from benchmarks.machine import peak_megabytes
from benchmarks.process import run_module

COLUMNS, HIDDEN, CLASSES, CASES, K = 200, 64, 10, 5, 5
LENGTHS = (20_000, 200_000)


class OnDisk(Dataset[tuple[np.ndarray, int]]):
    """Rows of a file; nothing of it stays in memory."""

    def __init__(self, path: Path, n: int, columns: int) -> None:
        self.path, self.n, self.columns = path, n, columns

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> tuple[np.ndarray, int]:
        offset = 4 * self.columns * i
        row = np.memmap(self.path, np.float32, "r", offset=offset, shape=(self.columns,))
        return np.array(row), i % CLASSES


def write(path: Path, n: int, columns: int) -> None:
    """A file of n rows, block by block."""
    random = np.random.default_rng(0)
    with path.open("wb") as file:
        for start in range(0, n, 1000):
            random.standard_normal((min(1000, n - start), columns), dtype=np.float32).tofile(file)


def told(path: Path, n: int, columns: int) -> dict[str, Any]:
    """Seconds of reading, of the first explanation and of the next one, and the peak memory of this process."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(columns, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, CLASSES))
    cases, times = torch.randn(CASES, columns), [perf_counter()]
    explainer = precedents.Explainer(model, OnDisk(path, n, columns))
    for _ in range(2):
        times.append(perf_counter())
        explainer.explain(cases, k=K)
    times.append(perf_counter())
    reading, first, again = (stop - start for start, stop in pairwise(times))
    return {"n": n, "reading": reading, "first": first, "again": again, "peak_megabytes": peak_megabytes()}


def measured(n: int, columns: int = COLUMNS) -> dict[str, Any]:
    """The same from a process of its own."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows.bin"
        write(path, n, columns)
        ended = run_module("benchmarks.streaming", f"--length={n}", f"--columns={columns}", f"--file={path}")
    if ended.returncode:
        raise RuntimeError(ended.stderr)
    return json.loads(ended.stdout.splitlines()[-1])


def main() -> None:
    """All lengths, or, with a file, one in this process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--length", type=int, action="append", help="rows; may be given several times")
    parser.add_argument("--columns", type=int, default=COLUMNS)
    parser.add_argument(
        "--file", type=Path, help="rows that are there already: they are explained in this process"
    )
    options = parser.parse_args()
    for n in options.length or LENGTHS:
        found = told(options.file, n, options.columns) if options.file else measured(n, options.columns)
        print(json.dumps(found))  # noqa: T201


if __name__ == "__main__":
    main()

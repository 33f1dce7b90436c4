"""The same index by one worker and by two: seconds, and whether the bytes are the same."""

from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import torch
from torch import nn

from benchmarks.index.works import Bytes, augmented, resnet
from benchmarks.records import Record
from precedents import Index

NAME = "scaling"
ROWS = 60_000
SHARDS = 32


def done(n: int | None, memory: str) -> Record:
    """Builds by workers in other processes, which count from their start."""
    torch.manual_seed(0)
    n = n or ROWS
    model, train = nn.Sequential(Bytes(), resnet()).eval(), augmented(n, 28)
    seconds, bytes_of = {}, {}
    for workers in (1, 2):
        with TemporaryDirectory() as folder:
            place, rows, began = Path(folder) / "index", max(16, n // SHARDS), perf_counter()
            Index.build(model, train, place, engine=f"processes(workers={workers})", memory=memory, rows=rows)
            seconds[workers] = perf_counter() - began
            bytes_of[workers] = {path.name: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    parameters = sum(p.numel() for p in model.parameters())
    same = bytes_of[1] == bytes_of[2]
    return {"n": n, "parameters": parameters, "one": seconds[1], "two": seconds[2], "same bytes": same}

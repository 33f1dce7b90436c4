"""Random projections of others beside exact cosines, of the same model, training set and cases."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import Tensor

from benchmarks.environments import NotInstalledError, interpreter
from benchmarks.index.measured import Setting, plain
from benchmarks.machine import plain as one_line
from benchmarks.peers import PEERS, TRAK
from benchmarks.process import run_module
from benchmarks.records import Record
from precedents import Explainer

NAME = "projections"
LIBRARIES = {"logra": ("dattri, LoGra", PEERS["dattri"]), "trak": ("TRAK, BasicProjector", TRAK)}
FIRST, NEAR = 10, 100  # of the most relevant: those that are looked for, and those whose errors count
MOST = 3600.0  # seconds


def done(setting: Setting, name: str) -> Record:
    """What a library's projection finds of a work; or why it does not."""
    model, (x, y), cases = setting.made()
    with torch.no_grad():
        predicted = model(cases).argmax(dim=1)
    task = {"model": model, "train": (x, y), "cases": cases, "predicted": predicted, "m": len(cases)}
    size = sum(p.numel() for p in model.parameters())
    found: Record = {"n": len(x), "parameters": size, "plain": plain(model, x, y)}
    exact = Explainer(model, (x, y), index=False).scores(cases)
    with TemporaryDirectory() as folder:
        given, scores = Path(folder) / "task.pt", Path(folder) / "scores.pt"
        torch.save(task, given)
        try:
            python = str(interpreter(LIBRARIES[name][1]))
        except NotInstalledError as error:
            return found | {"failed": str(error)}
        module = "benchmarks.index.projections"
        ended = run_module(module, name, str(given), str(scores), python=python, most=MOST)
        if ended.returncode:
            return found | {"failed": one_line(ended.stderr.strip().splitlines()[-1])}
        told = json.loads(ended.stdout.splitlines()[-1])
        return found | told | compared(torch.load(scores).double(), exact)


def compared(scores: Tensor, exact: Tensor) -> Record:
    """How many of the true first are among the first, and the size of the errors of those that are near."""
    true, seen = (each.topk(FIRST).indices.tolist() for each in (exact, scores))
    hits = sum(len({*a} & {*b}) for a, b in zip(true, seen, strict=True))
    near = exact.topk(min(NEAR, exact.shape[1])).indices
    errors = (scores - exact).gather(1, near)
    return {"recall": hits / (FIRST * len(true)), "error": float(errors.std())}

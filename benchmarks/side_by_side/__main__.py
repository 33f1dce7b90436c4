"""Runs every file in the environment of its library, and notes what came of it."""

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from rich.console import Console
from sklearn.datasets import load_digits
from torch import Tensor, nn

import precedents as pr
from benchmarks.environments import NotInstalledError, interpreter
from benchmarks.machine import plain
from benchmarks.peers import PEERS, TRAK
from benchmarks.records import now
from benchmarks.side_by_side.notes import HERE, NOTES, mark

LIBRARIES = {
    **{name: PEERS[name] for name in ("captum", "alibi", "dattri", "pydvl", "kronfluence")},
    "trak": TRAK,
}
NEAREST: dict[str, str | None] = {  # of our metrics, the one that the file asks for
    "ours": "cos_grad",
    "captum": "dot_grad",
    "alibi": "cos_grad",
    "dattri": "cos_grad",
    "pydvl": "dot:gradient/hessian(kind=exact, negative=keep, damping=26.64)",  # 0.1 in absolute terms
    "kronfluence": "dot:gradient/ekfac",
    "trak": None,  # projected, and averaged over models if there are several
}
RUN = """
import sys
import numpy, torch
names = torch.load(sys.argv[1], weights_only=False)
exec(compile(open(sys.argv[2]).read(), sys.argv[2], "exec"), names)
torch.save(torch.tensor(numpy.array(names["top"])), "top.pt")
"""


def work() -> dict[str, Any]:
    """The digits, a trained network, thirty cases."""
    images, labels = load_digits(return_X_y=True)
    x, y = torch.tensor(images / 16, dtype=torch.float32), torch.tensor(labels)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 16), nn.Tanh(), nn.Linear(16, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(200):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x[:1000]), y[:1000]).backward()
        optimizer.step()
    cases = x[1000:1030]
    return {
        "model": model,
        "x": x[:1000],
        "y": y[:1000],
        "cases": cases,
        "predicted": model(cases).argmax(dim=1),
    }


def ran(python: str, file: Path, task: dict[str, Any]) -> Tensor:
    """What the file leaves in `top`."""
    with TemporaryDirectory() as folder:
        given = Path(folder) / "task.pt"
        torch.save(task, given)
        paths = str(Path(pr.__file__).parent.parent)
        done = subprocess.run(  # noqa: S603
            [python, "-c", RUN, str(given), str(file)],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": paths},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(plain(done.stderr.strip().splitlines()[-1]))
        return torch.load(Path(folder) / "top.pt")


def note(name: str, task: dict[str, Any], top: Tensor, number: str) -> dict[str, Any]:
    """How often the precedents have the predicted class, and how many are those of our nearest metric."""
    found = task["y"][top]
    return {
        "mark": mark(HERE / f"{name}.py"),
        "version": number,
        "date": now()[:10],
        "predicted class": round(float((found == task["predicted"][:, None]).double().mean()), 4),
        "metric": NEAREST[name],
        "shared": shared(task, top, NEAREST[name]),
    }


def shared(task: dict[str, Any], top: Tensor, metric: str | None) -> float | None:
    """Which part of the precedents a metric of ours has among its own five."""
    if metric is None:
        return None
    ours = pr.Explainer(task["model"], (task["x"], task["y"]), metric).explain(task["cases"], k=5)
    pairs = zip(top.tolist(), ours.top.indices.tolist(), strict=True)
    return round(sum(len({*a} & {*b}) for a, b in pairs) / top.numel(), 4)


def main() -> None:
    """Those that are named, or all."""
    console, task = Console(highlight=False), work()
    notes = json.loads(NOTES.read_text()) if NOTES.exists() else {}
    for name in sys.argv[1:] or NEAREST:
        try:
            if name == "ours":
                python, number = sys.executable, version("precedents")
            else:
                peer = LIBRARIES[name]
                python = str(interpreter(peer))
                asked = f"import importlib.metadata as m; print(m.version({peer.package!r}))"
                number = subprocess.run(  # noqa: S603
                    [python, "-c", asked], capture_output=True, text=True, check=True
                ).stdout.strip()
            notes[name] = note(name, task, ran(python, HERE / f"{name}.py", task), number)
        except (NotInstalledError, RuntimeError) as error:
            notes[name] = {"mark": mark(HERE / f"{name}.py"), "failed": str(error)}
        console.print(f"{name}: {notes[name]}", markup=False)
    NOTES.write_text(json.dumps(notes, indent=1) + "\n")


if __name__ == "__main__":
    main()

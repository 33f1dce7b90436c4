"""Two versions of precedents beside each other: time and peak memory of the same work, in interleaved rounds.

`python -m benchmarks.paired OLD` compares the checkout in the folder OLD with this one. Ratios are new by old,
of the best round of each. Leave the machine alone while it measures.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks.models import MODELS

HERE = Path(__file__).parent.parent
WHO = "cos_grad"


def measured(tree: Path, model: str, n: int, m: int) -> dict[str, Any]:
    """One run in a process of its own, with the package and the benchmark of a checkout."""
    with TemporaryDirectory() as folder:
        out = Path(folder) / "result.json"
        command = [sys.executable, "-m", "benchmarks.measure", WHO, model, f"--n={n}", f"--m={m}", "--runs=1"]
        paths = os.pathsep.join([str(tree / "src"), str(tree)])
        environment = os.environ | {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
        command.append(f"--out={out}")
        subprocess.run(command, cwd=tree, env=environment, check=True, capture_output=True)  # noqa: S603
        result: dict[str, Any] = json.loads(out.read_text())
    if "error" in result:
        raise RuntimeError(f"{model} in {tree}: {result['error']}")
    return result


def main() -> None:
    """Measures and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path, help="the folder of the other checkout")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--n", type=int, default=5000, help="training instances; large models have fewer")
    parser.add_argument("--m", type=int, default=500, help="cases; large models have fewer")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    console = Console(highlight=False)
    drawn = Table(box=SIMPLE_HEAD)
    for heading in ("model", "old, s", "new, s", "time", "old, MB", "new, MB", "memory"):
        drawn.add_column(heading, justify="left" if heading == "model" else "right")
    for model in given.models.split(","):
        n, m = MODELS[model].of(given.n, given.m)
        found: dict[Path, list[dict[str, Any]]] = {given.old.resolve(): [], HERE: []}
        for round_ in range(given.rounds):
            for tree in found if round_ % 2 else reversed(found):
                found[tree].append(measured(tree, model, n, m))
        (old, new), (few, many) = (
            [min(float(run[what]) for run in runs) for runs in found.values()]
            for what in ("seconds", "peak_megabytes")
        )
        numbers = (
            f"{old:.3f}",
            f"{new:.3f}",
            f"{new / old:.3f}",
            f"{few:.0f}",
            f"{many:.0f}",
            f"{many / few:.3f}",
        )
        console.print(model, *numbers)
        drawn.add_row(model, *numbers)
    console.print(drawn)


if __name__ == "__main__":
    main()

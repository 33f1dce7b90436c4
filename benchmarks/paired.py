"""Two versions of precedents beside each other: time and peak memory of the same work, in interleaved rounds.

`python -m benchmarks.paired OLD` compares the checkout in the folder OLD with this one; `--out` keeps what is
found. Ratios are new by old, of the best round of each. Leave the machine alone while it measures.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console

from benchmarks.machine import here
from benchmarks.models import MODELS
from benchmarks.records import Record, Records, now

HERE = Path(__file__).parent.parent
WHO = "cos_grad"
ROUNDS = 5
GOAL = 1.05  # of the old, at most
WHY = (
    "All inputs are read once more when an explainer is made, and once more when they are used, so that a "
    "change of them is noticed (8 ms for 61 MB), and inner products are added in double precision (5 ms)."
)
FIVE = "logreg,cnn,lstm,transformer,mobilenet"


def measured(tree: Path, model: str, n: int, m: int) -> dict[str, Any]:
    """One run in a process of its own, with the package and the benchmark of a checkout."""
    with TemporaryDirectory() as folder:
        out = Path(folder) / "result.json"
        command = [sys.executable, "-m", "benchmarks.measure", WHO, model, f"--n={n}", f"--m={m}", "--runs=1"]
        paths = os.pathsep.join([str(tree / "src"), str(tree)])
        environment = os.environ | {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
        command += [f"--out={out}", *(["--unsettled"] if tree == HERE else [])]  # as version 0.1.0
        subprocess.run(command, cwd=tree, env=environment, check=True, capture_output=True)  # noqa: S603
        result: dict[str, Any] = json.loads(out.read_text())
    if "error" in result:
        raise RuntimeError(f"{model} in {tree}: {result['error']}")
    return result


def paired(old: Path, model: str, sizes: tuple[int, int], rounds: int) -> Record:
    """Seconds and megabytes of the best round of each, the order changing from round to round."""
    found: dict[Path, list[dict[str, Any]]] = {old: [], HERE: []}
    for round_ in range(rounds):
        for tree in found if round_ % 2 else reversed(found):
            found[tree].append(measured(tree, model, *sizes))
    seconds, megabytes = (
        [min(float(run[what]) for run in runs) for runs in found.values()]
        for what in ("seconds", "peak_megabytes")
    )
    versions = [runs[0]["versions"]["precedents"] for runs in found.values()]
    return {"model": model, "rounds": rounds, "of": versions, "seconds": seconds, "megabytes": megabytes}


def section(records: Sequence[Record]) -> Iterator[str]:
    """The lines of the page."""
    last = {record["model"]: record for record in records}
    old, new = records[-1]["of"]
    rounds = min(record["rounds"] for record in records)
    yield ""
    yield f"## Beside version {old}"
    yield ""
    yield (
        f"The same Grad-Cos by version {old} and by {new}, in interleaved rounds of processes of their own, "
        f"the best of {rounds} or more; ratios are new by old, and the memory is that of the process. "
        "`python -m benchmarks.paired OLD` measures it."
    )
    yield ""
    yield "| model | old, s | new, s | time | old, MB | new, MB | memory |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for model in MODELS:
        if model in last:
            yield f"| {MODELS[model].title} | {' | '.join(_cells(last[model]))} |"
    for model, record in last.items():
        old, new = record["seconds"]
        if new > GOAL * old:
            yield ""
            yield (
                f"Missed: {MODELS[model].title}, {new / old:.3f} where {GOAL} is the goal, by "
                f"{1000 * (new - old):.0f} ms. {WHY}"
            )


def _cells(record: Record) -> Iterator[str]:
    """Old, new and their ratio, of seconds and of megabytes."""
    for what, digits in (("seconds", 3), ("megabytes", 0)):
        old, new = record[what]
        yield from (f"{old:.{digits}f}", f"{new:.{digits}f}", f"{new / old:.3f}")


def main() -> None:
    """Measures, and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path, help="the folder of the other checkout")
    parser.add_argument("--models", default=FIVE)
    parser.add_argument("--n", type=int, default=5000, help="training instances; large models have fewer")
    parser.add_argument("--m", type=int, default=500, help="cases; large models have fewer")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--out", type=Path, help="the folder of the records, if they are to be written")
    given = parser.parse_args()
    console, found = Console(highlight=False, soft_wrap=True), list[Record]()
    machine, versions = here()
    for model in given.models.split(","):
        record = paired(given.old.resolve(), model, MODELS[model].of(given.n, given.m), given.rounds)
        found.append({"key": model, **record, "date": now(), "machine": machine, "versions": versions})
        console.print(model, *_cells(record))
        if given.out is not None:
            Records(given.out / "paired.jsonl").append(found[-1])
    console.print("\n".join(section(found)), markup=False)


if __name__ == "__main__":
    main()

"""Measures what has no record yet, each work in a process of its own; or one work in this process."""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import TemporaryDirectory
from time import perf_counter

import torch
from rich.console import Console

from benchmarks import index
from benchmarks.index import codes, measured, rivals, scaling
from benchmarks.index.measured import Setting
from benchmarks.index.works import WORKS
from benchmarks.machine import here, plain
from benchmarks.process import run_module
from benchmarks.records import Record, Records, now

CODES = "codes"


def keys() -> list[str]:
    """All that can be measured: the works, the workers, codes of other sizes, and what others keep."""
    compared = [f"{name} {work}" for work, one in WORKS.items() if one.projected for name in rivals.LIBRARIES]
    return [*WORKS, scaling.NAME, *(f"{CODES} {model}" for model in codes.MODELS), *compared]


def one(key: str, given: argparse.Namespace) -> Record:
    """One of them, in this process."""
    torch.set_num_threads(1)
    if key == scaling.NAME:
        return scaling.done(given.n, given.memory)
    library, _, work = key.partition(" ")
    if library == CODES:
        return codes.done(work, given.n)
    if library in rivals.LIBRARIES:
        return {"work": work, **rivals.done(Setting(work, given.n, given.data, given.memory), library)}
    setting = Setting(key, given.n, given.data, given.memory)
    if given.folder is not None:
        return {"work": key, **measured.done(setting, given.folder)}
    with TemporaryDirectory() as folder:
        return {"work": key, **measured.done(setting, Path(folder) / "index")}


def wanted(given: argparse.Namespace, known: set[str]) -> Iterator[str]:
    """What is to be measured now."""
    named = keys() if given.only is None else given.only.split(";")
    for key in named:
        if key not in keys():
            raise SystemExit(f"No work is named {key!r}. Known: {'; '.join(keys())}.")
        if key not in known or given.only is not None:
            yield key


def outcome(ended: "CompletedProcess[str]") -> Record:
    """What a process has found, or why it failed: then the others are measured all the same."""
    if ended.returncode:
        said = ended.stderr.strip().splitlines()
        return {"failed": plain(said[-1]) if said else f"exit code {ended.returncode}"}
    found: Record = json.loads(ended.stdout.splitlines()[-1])
    return found


def arguments() -> argparse.Namespace:
    """What was typed."""
    parser = argparse.ArgumentParser(
        description=index.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--data", type=Path, help="the folder that holds the files of the data sets")
    parser.add_argument("--memory", default="2 GB")
    parser.add_argument("--only", help=f"those of these, with semicolons between: {'; '.join(keys())}")
    parser.add_argument("--n", type=int, help="training instances, if not as many as each work has")
    parser.add_argument("--folder", type=Path, help="where the index is built, to go on there after a kill")
    parser.add_argument("--one", choices=keys(), help="only this one, in this process")
    return parser.parse_args()


def main() -> None:
    """Measures, and prints what came of it."""
    given = arguments()
    if given.one:
        sys.stdout.write(json.dumps(one(given.one, given)) + "\n")
        return
    records, console = Records(given.out / "index.jsonl"), Console(highlight=False)
    machine, versions = here()
    told = {"memory": given.memory, "data": given.data, "n": given.n, "folder": given.folder}
    passed = [f"--{name}={value}" for name, value in told.items() if value is not None]
    done = {record["key"] for record in records if "failed" not in record}
    every = list(wanted(given, done))
    for i, key in enumerate(every):
        console.print(f"{i + 1} of {len(every)}, {now()}: {key}", markup=False)
        began = perf_counter()
        found = outcome(run_module("benchmarks.index", f"--one={key}", *passed))
        console.print(f"{key}, {perf_counter() - began:.0f} s: {found}", markup=False)
        records.append({"key": key, **found, "date": now(), "machine": machine, "versions": versions})


if __name__ == "__main__":
    main()

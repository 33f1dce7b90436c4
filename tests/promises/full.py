"""Writers where no file may have more than 1,000 bytes, each in its own process: what became of them."""

import json
import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path

import torch

from precedents import Explainer
from precedents.runtime.atomic import write
from precedents.runtime.log import Log
from precedents.zoo.run import Prepared, Recipe


def explainer(folder: Path) -> None:
    x = torch.eye(4).repeat(5, 1)
    Explainer(torch.nn.Linear(4, 2), (x, torch.arange(20) % 2)).save(folder / "kept")


def run(folder: Path) -> None:
    Prepared.of(Recipe("wine", "logistic_regression", epochs=1)).run().write(folder / "kept")


def log(folder: Path) -> None:
    records = Log(folder / "log", "")
    while True:
        records.append({"text": "x" * 300})


def file(folder: Path) -> None:
    write(folder / "file", "new" * 1000)


WRITERS: dict[str, Callable[[Path], None]] = {"explainer": explainer, "run": run, "log": log, "file": file}


def main(place: Path) -> None:
    for name, writer in WRITERS.items():
        folder = place / name
        folder.mkdir()
        (folder / "file").write_bytes(b"before")
        if os.fork() == 0:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
            try:
                writer(folder)
            except Exception as error:
                sys.stdout.write(json.dumps([name, type(error).__name__, str(error)]) + "\n")
                sys.stdout.flush()
            os._exit(0)
        os.wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]))

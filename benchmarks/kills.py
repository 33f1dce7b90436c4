"""Random kills: work that is killed at a random moment and done again ends with the same bytes.

`precedents audit --keep`, `precedents train`, a worker of `precedents reproduction run`, `Explainer.save`, and
`Index.build` by two processes side by side, each in a process of its own that is sent SIGKILL at a moment
drawn evenly from the time that it takes. Then the same work is done to its end, and every file is compared with
those of work that nobody killed, but for measured seconds. Nothing else may be left beside them, and every
shard of an index that was there at the kill is whole. Each process notes which shards it begins: of those it
loses one at most.

    python -m benchmarks.kills --count 50 --what audit,save,train,reproduction,index
"""

import argparse
import json
import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch
from warnings import catch_warnings, simplefilter

import torch

from benchmarks.machine import here
from benchmarks.records import Record, Records, now
from precedents import Explainer, Index
from precedents.cli._main import main as command
from precedents.index.shards import Workshop, shard_path
from precedents.reproduction.runner import done, tasks
from precedents.reproduction.settings import chosen
from precedents.zoo.run import Prepared, Recipe

BEGUN = "begun"  # which process began which shard
MEASURED = ("costs.jsonl", "out", BEGUN)  # seconds, which are not the same twice; what a command said
TRAIN = ["train", "--dataset", "wine", "--model", "mlp", "--epochs", "40", "--quiet"]


def train(folder: Path) -> None:
    """Trains a model and keeps it as a run, over one that may be there."""
    _done([*TRAIN, "--out", str(folder / "run"), "--force"])


def audit(folder: Path) -> None:
    """Audits a run, which is made once by `prepared`, and writes down what was found."""
    kept = ["--keep", str(folder / "kept"), "--metrics", "gc,cos_x", "--cases", "10", "--json"]
    _done(["audit", str(folder / "run"), *kept, "--quiet"])


def reproduction(folder: Path) -> None:
    """A repeat of a small setting, as a worker does it."""
    (setting,) = chosen("wine/mlp", 3)
    (task,) = tasks([setting], [0], folder / "results", metrics=["gc"], memory="1 GB")
    done(task)


def save(folder: Path) -> None:
    """Saves an explainer, over one of another metric that may be there."""
    prepared = Prepared.of(Recipe("wine", "mlp"))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = prepared.built(3)
    Explainer(model, prepared.train, "dot_fisher").save(folder / "saved")


def index(folder: Path) -> None:
    """Builds an index in nineteen shards, and notes which are begun."""
    made = Workshop.make

    def noted(self: Workshop, number: int) -> None:
        with (folder / BEGUN).open("a") as file:
            file.write(f"{os.getpid()} {number}\n")
        made(self, number)

    torch.manual_seed(0)
    x, y = torch.randn(600, 8), torch.arange(600) % 3
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 3))
    with patch.object(Workshop, "make", noted):
        Index.build(model, (x, y), folder / "index", memory="100 MB", rows=32)


WORKS: dict[str, Callable[[Path], None]] = {
    "audit": audit,
    "save": save,
    "train": train,
    "reproduction": reproduction,
    "index": index,
}
BESIDE = ("index",)  # what two processes do side by side


def prepared(name: str, folder: Path) -> None:
    """What is there before the work begins."""
    if name == "audit":
        train(folder)


@dataclass
class Count:
    """What became of the kills of one kind of work."""

    killed: int = 0  # before the work was done
    same: int = 0  # bytes in the end
    lost: int = 0  # shards that a process had begun and that were not there at the kill, at most


def tried(name: str, count: int, draw: random.Random, folder: Path) -> Count:
    """So many kills of one kind of work, each followed by the whole of it."""
    work, expected, found = WORKS[name], folder / "expected", Count()
    expected.mkdir()
    with quiet(expected / "out"):  # everything is imported here, and not by each child
        prepared(name, expected)
        work(expected)
    timed = _begun(name, folder / "timed")
    took = _forked(lambda: work(timed))[1]
    for i in range(count):
        place, code = folder / str(i), 0
        while code != -signal.SIGKILL:  # else it was done before: sooner
            place = _again(name, place, whole=i % 2 == 1)
            code = _killed(name, place, [draw.uniform(0, took) for _ in range(1 + (name in BESIDE))])
            took *= 1 if code == -signal.SIGKILL else 0.9
        whole, lost = _whole_files(place, expected), _lost(place)
        found.lost = max(found.lost, lost)
        code = _killed(name, place, [None] * (1 + (name in BESIDE)))
        found.killed += 1
        found.same += code == 0 and contents(place) == contents(expected) and whole and lost <= 1
        shutil.rmtree(place)
        sys.stderr.write(f"\r{name}: {i + 1} of {count} killed, {found.same} with the same bytes ")
    sys.stderr.write("\n")
    return found


def _killed(name: str, place: Path, after: list[float | None]) -> int:
    """Does the work by one process, or by several side by side, each killed after its seconds: an exit code."""
    children = [_child(lambda: WORKS[name](place)) for _ in after]
    began = time.monotonic()
    for child, seconds in sorted(zip(children, after, strict=True), key=lambda each: each[1] or 0):
        if seconds is not None:
            time.sleep(max(0.0, began + seconds - time.monotonic()))
            os.kill(child, signal.SIGKILL)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    return next((code for code in codes if code != 0), 0)


def _whole_files(place: Path, expected: Path) -> bool:
    """Whether every shard that was there at the kill is whole: it is what it will be."""
    shards = place.glob("index/shards/0*.safetensors")
    return all(path.read_bytes() == (expected / path.relative_to(place)).read_bytes() for path in shards)


def _lost(place: Path) -> int:
    """How many of the shards that a process had begun are not there, at most."""
    file = place / BEGUN
    begun = [line.split() for line in file.read_text().splitlines()] if file.is_file() else []
    missing = {
        (process, number) for process, number in begun if not shard_path(place / "index", int(number)).is_file()
    }
    return max(Counter(process for process, _ in missing).values(), default=0)


def _again(name: str, place: Path, *, whole: bool) -> Path:
    """A folder in which the work can begin; with `whole`, what is replaced is there already."""
    shutil.rmtree(place, ignore_errors=True)
    _begun(name, place)
    if whole and name in ("save", "train"):
        _forked(lambda: WORKS[name](place))
    return place


def _begun(name: str, place: Path) -> Path:
    """A folder in which the work can begin."""
    place.mkdir()
    _forked(lambda: prepared(name, place))
    return place


def contents(folder: Path) -> dict[str, object]:
    """Every file by its path; of the records of an audit all but the measured seconds."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name not in MEASURED)
    return {str(path.relative_to(folder)): _content(path) for path in files}


def _content(path: Path) -> object:
    if path.name != "records.jsonl":
        return path.read_bytes()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        del line["checksum"]
        if isinstance(line["value"], dict):
            line["value"].pop("seconds", None)
    return lines


def _forked(work: Callable[[], object]) -> tuple[int, float]:
    """Does work in a process of its own: its exit code, and what it took."""
    began = time.monotonic()
    code = os.waitstatus_to_exitcode(os.waitpid(_child(work), 0)[1])
    return code, time.monotonic() - began


def _child(work: Callable[[], object]) -> int:
    """A process of its own that does the work."""
    with catch_warnings():
        simplefilter("ignore")  # of threads that a fork does not have: none of them is needed
        child = os.fork()
    if child == 0:
        code = 1
        with suppress(BaseException), quiet(Path(os.devnull)):
            work()
            code = 0
        os._exit(code)
    return child


@contextmanager
def quiet(path: Path) -> Iterator[None]:
    """What is printed goes to a file."""
    with path.open("w") as out, redirect_stdout(out), redirect_stderr(out):
        yield


def _done(arguments: list[str]) -> None:
    if command(arguments) != 0:
        raise RuntimeError(" ".join(arguments))


def section(records: Sequence[Record]) -> Iterator[str]:
    """The lines of the page."""
    last = {record["key"]: record for record in records}
    yield ""
    yield "## Kills"
    yield ""
    yield (
        "Work in a process of its own that is sent SIGKILL at a random moment, and then done again: how often "
        "all files have the bytes that they have when nobody kills it, and nothing is left beside them. An "
        "index is built by two processes side by side, each of which may lose one shard. `make kills` does it."
    )
    yield ""
    yield "| work | kills | the same bytes | shards that a process lost, at most |"
    yield "|---|---:|---:|---:|"
    for name in WORKS:
        if name in last:
            found = last[name]
            lost = found["lost"] if name in BESIDE else "–"
            yield f"| {name} | {found['killed']} | {found['same']} | {lost} |"


def main() -> int:
    """Zero if all bytes are the same."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=50, help="kills of each")
    parser.add_argument("--what", default=",".join(WORKS), help="with commas between")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="the folder of the records, if one is to be written")
    given = parser.parse_args()
    torch.set_num_threads(1)
    machine, versions = here()
    same = True
    for name in given.what.split(","):
        with TemporaryDirectory() as folder:
            found = tried(name, given.count, random.Random(given.seed), Path(folder))  # noqa: S311
        sys.stdout.write(f"{name}: {found.killed} kills at work, {found.same} with the same bytes afterwards")
        sys.stdout.write(f"; at most {found.lost} shard of a process lost\n" if name in BESIDE else "\n")
        same = same and found.same == given.count
        if given.out is not None:
            told = {"key": name, **asdict(found), "date": now(), "machine": machine, "versions": versions}
            Records(given.out / "kills.jsonl").append(told)
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())

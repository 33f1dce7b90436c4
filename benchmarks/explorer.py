"""The explorer's goals, each measured: sizes, packages, starts, latencies with 50 clients, memory, maps.

    python -m benchmarks.explorer --out benchmarks/results

appends a record for each and prints a table; `--parts` measures some, `--short` looks at a tenth of everything
without a record. Leave the machine alone while it measures.
"""

import argparse
import gc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import requires
from importlib.resources import files
from pathlib import Path
from time import perf_counter, sleep
from zlib import compress

import psutil
import torch
from rich.console import Console
from rich.table import Table
from torch import nn

import precedents as pr
from benchmarks.explored import starts
from benchmarks.explored.clients import CLIENTS, asked
from benchmarks.explored.drawing import drawn
from benchmarks.machine import here
from benchmarks.process import ROOT
from benchmarks.records import Record, Records, now
from precedents.explorer.answers import AllAnswers
from precedents.explorer.projection import components, projected, trust
from precedents.explorer.running import Explorer

TARGETS = {  # what is asked for: the median and the 99th percentile that are wanted, in milliseconds
    "page": ("/cases?list=all", 60, 150),
    "JSON": ("/api/v1/cases?size=24", 30, 75),
    "picture": ("/pictures/train/3.png", 20, 60),
}
BUSY = 250  # milliseconds of the 99th percentile while a job computes
FIRST, FURTHER = 10, 1  # seconds of the first picture of a million points, and of another one
MAPPED = 600  # seconds of the map of a million
CLICK = 150  # milliseconds of the 95th percentile of a click
KILO, MEGA = 1000, 2**20


@dataclass(frozen=True)
class Measured:
    """One goal, and what was measured."""

    what: str
    goal: str
    measured: str
    met: bool


@dataclass(frozen=True)
class Effort:
    """How much of everything is measured."""

    short: int = 1  # by what sizes are divided
    seconds: float = 10  # of a measurement of latencies
    busy: float = 600  # of all that are made while a job computes


def sizes(_: Effort) -> Iterator[Measured]:
    """Bytes of what a page loads, and of what the room adds to the wheel."""
    folder = files("precedents").joinpath("explorer")
    script, own = (len(folder.joinpath("assets", name).read_bytes()) for name in ("explorer.js", "map.js"))
    parts = (folder, folder / "assets", folder / "templates")
    room = sum(len(compress(path.read_bytes())) for part in parts for path in part.iterdir() if path.is_file())
    for what, size, most in (
        ("script of the first page", script, 60),
        ("script of the map", own, 25),
        ("what the wheel grows by", room, 200),
    ):
        yield Measured(what, f"{most} kB", f"{size / KILO:.0f} kB", size <= most * KILO)


def packages(_: Effort) -> Iterator[Measured]:
    """What the extra brings, with what that brings, beyond what the library needs already."""
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    own, extra = project["dependencies"], project["optional-dependencies"]["explorer"]
    new = sorted(closure([*own, *extra]) - closure(own))
    yield Measured("packages that the extra brings", "5", f"{len(new)}: {', '.join(new)}", 0 < len(new) <= 5)


def closure(lines: Sequence[str]) -> set[str]:
    """All packages that requirements need here."""
    from packaging.requirements import Requirement

    found: set[str] = set()
    waiting = list(lines)
    while waiting:
        needed = Requirement(waiting.pop())
        key = needed.name.lower().replace("_", "-")
        if key not in found and (needed.marker is None or needed.marker.evaluate({"extra": ""})):
            found.add(key)
            waiting += requires(key) or []
    return found


def memory(effort: Effort) -> Iterator[Measured]:
    """What answers of 10,000 cases by five metrics hold, with their reverse."""
    n, m = 60_000 // effort.short, 10_000 // effort.short
    gc.collect()
    before = psutil.Process().memory_info().rss
    held = []
    for _ in range(5):
        answers = AllAnswers.empty(m, n, 10)
        answers.indices[:] = torch.randint(n, answers.indices.shape, dtype=torch.int32)
        answers.scores[:] = torch.rand(answers.scores.shape)
        answers.below[:] = 1
        answers.done[:] = True
        answers.answered_by(3)
        held.append(answers)
    grown = (psutil.Process().memory_info().rss - before) / MEGA
    yield Measured(f"memory of {n:,} x {m:,} x 5 metrics", "300 MB", f"{grown:.0f} MB", grown <= 300)


def started(effort: Effort) -> Iterator[Measured]:
    """Seconds from the command to its address, and to a page with precedents."""
    found = starts.digits()
    for what, name, most in (
        ("first start, digits: a useful page", "fresh useful", 5),
        ("start with kept answers, digits: the address", "address", 3),
        ("start with kept answers, digits: a useful page", "useful", 5),
    ):
        yield Measured(what, f"{most} s", f"{found[name]:.1f} s", found[name] <= most)
    n = 60_000 // effort.short
    found = starts.many(n)
    for what, name, most in (("the address", "address", 3), ("a useful page", "useful", 5)):
        told = f"start with kept answers, {n:,} x 10,000: {what}"
        yield Measured(told, f"{most} s", f"{found[name]:.1f} s", found[name] <= most)


def explorer_of(n: int, m: int) -> Explorer:
    """The explorer of a small model of pictures, when everything is answered."""
    torch.manual_seed(0)
    x, y = torch.rand(n + m, 1, 8, 8), torch.arange(n + m) % 10
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.Tanh(), nn.Linear(16, 10))
    return rested(pr.explore(pr.Explainer(model, (x[:n], y[:n])), (x[n:], y[n:]), metrics=["cos_last"]))


def rested(explorer: Explorer) -> Explorer:
    """When no job is left."""
    while any(job.state in ("waiting", "running") for job in explorer.world.jobs.every.values()):
        sleep(0.1)
    return explorer


def served(effort: Effort) -> Iterator[Measured]:
    """Latencies with 50 clients that never pause, while nothing and while a job computes, and of a click."""
    explorer = explorer_of(2_000, 1_000)
    for what, (target, middle, high) in TARGETS.items():
        found = asked(explorer.door.port, explorer.door.secret, target, effort.seconds)
        met = found["p50"] <= middle and found["p99"] <= high and not found["errors"]
        yield Measured(f"{what}, {CLIENTS} clients", f"p50 {middle}, p99 {high} ms", latency(found), met)
    yield click(explorer)
    explorer.world.jobs.ask("busy", "busy", _busy)
    sleep(0.5)
    for what, (target, _, _) in TARGETS.items():
        found = asked(explorer.door.port, explorer.door.secret, target, effort.busy / len(TARGETS))
        told = f"{what}, {CLIENTS} clients, while a job computes, {effort.busy / len(TARGETS):.0f} s"
        met = found["p99"] <= BUSY and not found["errors"]
        yield Measured(told, f"p99 {BUSY} ms, no error", latency(found), met)
    explorer.stop()


def latency(found: dict[str, float]) -> str:
    """What clients tell, in words."""
    told = f"p50 {found['p50']:.0f}, p99 {found['p99']:.0f} ms, {found['rate']:.0f} a second"
    return f"{told}, {found['errors']:.0f} errors" if found["errors"] else told


def click(explorer: Explorer) -> Measured:
    """One after the other, pages of cases that nobody has looked at yet."""
    import asyncio

    from benchmarks.explored.clients import clients

    door, taken = explorer.door, []
    for case in range(200):
        ((seconds, _),) = asyncio.run(clients(door.port, door.secret, f"/cases/{case}", 0, 1))
        taken.append(1000 * seconds)
    high = sorted(taken)[189]
    return Measured("click to known precedents", f"p95 {CLICK} ms", f"p95 {high:.0f} ms", high <= CLICK)


def _busy(job) -> None:
    x = torch.rand(1500, 1500)
    while True:
        job.step(0, 1)
        (x @ x).relu().sum().item()


def points(effort: Effort) -> Iterator[Measured]:
    """A million points, placed at random, on the explorer's own page, in a browser without a graphics card."""
    n = 1_000_000 // effort.short
    explorer = rows_of(n)
    places = torch.randn(n, 2, generator=torch.Generator().manual_seed(0))
    explorer.world.single.stay(("map", "hidden"), {"places": places, "trust": torch.zeros(1)})
    first, again = drawn(explorer, "map?by=hidden")
    explorer.stop()
    for what, seconds, most in (("the first picture", first, FIRST), ("a further picture", again, FURTHER)):
        told = f"{n:,} points, no graphics card: {what}"
        yield Measured(told, f"{most:g} s", f"{seconds:.2f} s", seconds <= most)


def rows_of(n: int, m: int = 100) -> Explorer:
    """The explorer of a small model of n rows, when everything is answered."""
    torch.manual_seed(0)
    y = torch.arange(n + m) % 10
    x = 2 * torch.randn(10, 16)[y] + torch.randn(n + m, 16)
    model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 10))
    return rested(pr.explore(pr.Explainer(model, (x[:n], y[:n]), "cos_last"), (x[n:], y[n:])))


def million(effort: Effort) -> Iterator[Measured]:
    """A training set of a million rows: a page of its list that nobody has looked at yet, and its map."""
    n = 1_000_000 // effort.short**2
    explorer = rows_of(n)
    door = explorer.door
    found = [asked(door.port, door.secret, f"/train?page={i}", 0.1, 1) for i in range(2, 12)]
    high = max(each["p50"] for each in found)
    met = high <= CLICK and not any(each["errors"] for each in found)
    yield Measured(f"a page of a list of {n:,} instances", f"{CLICK} ms at most", f"{high:.0f} ms", met)
    began = perf_counter()
    asked(door.port, door.secret, "/map?by=hidden", 0.1, 1)
    rested(explorer)
    seconds = perf_counter() - began
    drawn_map = explorer.world.single.get(("map", "hidden"))
    trusted = 0.0 if drawn_map is None else float(drawn_map["trust"])
    met = drawn_map is not None and seconds <= MAPPED and trusted > 0.0
    yield Measured(f"map of {n:,} instances", f"{MAPPED} s", f"{seconds:.0f} s, trust {trusted:.2f}", met)
    explorer.stop()


def projection(effort: Effort) -> Iterator[Measured]:
    """The map of 60,000 points in 50 dimensions; the same bytes for the same seed."""
    n, made = 60_000 // effort.short, torch.Generator().manual_seed(0)
    centres = 4 * torch.randn(10, 50, generator=made)
    given = components(centres[torch.arange(n) % 10] + torch.randn(n, 50, generator=made), 50)
    began = perf_counter()
    places = projected(given, 0)
    seconds = perf_counter() - began
    same = torch.equal(places, projected(given, 0))
    told = f"{seconds:.0f} s, trust {trust(given, places):.2f}, {'the same' if same else 'other'} bytes again"
    yield Measured(f"projection of {n:,} on a plane", "60 s, the same bytes", told, seconds <= 60 and same)


PARTS: dict[str, Callable[[Effort], Iterator[Measured]]] = {
    "memory": memory,
    "sizes": sizes,
    "packages": packages,
    "starts": started,
    "served": served,
    "points": points,
    "projection": projection,
    "million": million,
}


def section(records: Sequence[Record]) -> Iterator[str]:
    """The lines of the page."""
    yield ""
    yield "## Explorer"
    yield ""
    yield (
        f"What the explorer should do, and what was measured. {CLIENTS} clients in a process of their own ask "
        "for the same again and again without a pause, beside the server on the same machine; a job that "
        "computes is a product of matrices on all cores. Goals that are missed are struck out. "
        "`python -m benchmarks.explorer` measures it."
    )
    latest = {(record["part"], record["what"]): record for record in records}
    newest = {record["part"]: record["date"] for record in records}
    shown = [each for (part, _), each in latest.items() if each["date"] == newest[part]]
    yield ""
    yield from unique(f"- {_machine(record)}" for record in shown)
    yield ""
    yield "| | goal | measured |"
    yield "|---|---|---|"
    for record in sorted(shown, key=lambda record: list(PARTS).index(record["part"])):
        goal = record["goal"] if record["met"] else f"~~{record['goal']}~~"
        yield f"| {record['what']} | {goal} | {record['measured']} |"


def _machine(record: Record) -> str:
    machine = record["machine"]
    told = f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gigabytes']} GB"
    return f"{told}, {record['date'][:10]}"


def unique(lines: Iterator[str]) -> Iterator[str]:
    """Each once."""
    yield from dict.fromkeys(lines)


def main() -> None:
    """Measures, records and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="a tenth of everything, without a record")
    parser.add_argument("--out", type=Path, help="the folder of the records; without it none is kept")
    parser.add_argument("--parts", default=",".join(PARTS), help="with commas between")
    given = parser.parse_args()
    effort = Effort(10, 1, 3) if given.short else Effort()
    records = Records(given.out / "explorer.jsonl") if given.out and not given.short else None
    (machine, versions), console = here(), Console(width=150)
    table = Table("what", "goal", "measured", "met")
    for part in given.parts.split(","):
        date = now()
        for found in PARTS[part](effort):
            table.add_row(found.what, found.goal, found.measured, "yes" if found.met else "no")
            if records is not None:
                more = {"date": date, "machine": machine, "versions": versions}
                records.append({"key": f"{part}: {found.what}", "part": part, **asdict(found), **more})
    console.print(table)


if __name__ == "__main__":
    main()

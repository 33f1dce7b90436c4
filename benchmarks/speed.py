"""Measures exact gradient relevance: the machine's limit, precedents and its peers, in one run.

Every measurement is a process of its own (`benchmarks.measure`). The rounds are interleaved: each contestant
once, then each once more. What is done is written down at once, and a second start goes on where the first
one stopped.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks.agreement import difference, verdict
from benchmarks.environments import NotInstalledError, interpreter
from benchmarks.models import MODELS
from benchmarks.peers import PEERS
from benchmarks.process import run_module
from benchmarks.records import Record, Records, now
from benchmarks.summary import ROUNDS, Summary, last_run, summary

console = Console(highlight=False, width=None if sys.stdout.isatty() else 140)


@dataclass(frozen=True)
class Piece:
    """A piece of work and who does it."""

    model: str
    n: int
    m: int
    contestants: tuple[str, ...]


def pieces(given: argparse.Namespace) -> Iterator[Piece]:
    """What the command line asks for."""
    for model in given.models:
        n, m = MODELS[model].of(given.n, given.m)
        extra = ("fisher", *(["curvature"] if given.curvature else [])) if model == "cnn" else ()
        contestants = ("limit", "dot_grad", "cos_grad", *extra, *given.peers)
        yield Piece(model, max(20, n), max(5, m), contestants)
    if given.mobilenet_fisher:
        yield Piece("mobilenet", 5000, 50, ("cos_grad", "fisher"))


def measure(piece: Piece, given: argparse.Namespace) -> Summary:
    """All contestants on one piece of work, round by round."""
    records = Records(given.out / "speed.jsonl")
    started = now()
    before = [] if given.again else last_run(records, piece.model, piece.n, piece.m)
    run = before[-1]["run"] if before else started
    done = {(r["who"], r["round"]): r for r in before if "seconds" in r or not given.retry}
    for round_ in range(1, given.rounds + 1):
        for who in piece.contestants:
            own = [r for (name, _), r in done.items() if name == who]
            if (who, round_) in done or not worth_another(own, given.patience):
                continue
            batch = own[0].get("batch") if own else None
            record = {
                "key": f"{piece.model} n={piece.n} m={piece.m} {who} round {round_} of {run}",
                "run": run,
                "date": now(),
                "model": piece.model,
                "n": piece.n,
                "m": piece.m,
                "who": who,
                "round": round_,
                **measured(piece, who, batch, given),
            }
            done[who, round_] = records.append(record)
            console.print(progress(record), markup=False, soft_wrap=True)
    return summary(last_run(records, piece.model, piece.n, piece.m))


def worth_another(own: list[Record], patience: float) -> bool:
    """Whether one more round tells more: not after a failure, nor when a round takes minutes."""
    return all(r.get("seconds", float("inf")) <= patience for r in own)


def measured(piece: Piece, who: str, batch: int | None, given: argparse.Namespace) -> Record:
    """One contestant in its own process: seconds and status, or why there are none."""
    try:
        python = str(interpreter(PEERS[who])) if who in PEERS else sys.executable
    except NotInstalledError as error:
        return {"status": f"not installed: {error}"}
    kept = given.out / "scores"
    kept.mkdir(parents=True, exist_ok=True)
    scores = kept / f"{piece.model}-{piece.n}-{piece.m}-{who}.npy"
    result = asked(python, piece, who, batch, scores, given.most)
    if "error" in result:
        return {"status": f"failed: {result.pop('error')}"} | result
    if result.get("deviation") is None:
        return {"status": "measured"} | result
    status = verdict(result["deviation"])
    ours = kept / f"{piece.model}-{piece.n}-{piece.m}-dot_grad.npy"
    if who in PEERS and ours.exists():
        result["difference"] = difference(np.load(ours), np.load(scores))
    return {"status": status} | result


def asked(python: str, piece: Piece, who: str, batch: int | None, scores: Path, most: float) -> Record:
    """What the process says, or how it ended without saying anything."""
    with TemporaryDirectory() as folder:
        out = Path(folder) / "result.json"
        flags = [f"--n={piece.n}", f"--m={piece.m}", "--runs=1", f"--out={out}", f"--scores={scores}"]
        flags += [] if batch is None else [f"--batch={batch}"]
        try:
            ended = run_module("benchmarks.measure", who, piece.model, *flags, python=python, most=most)
        except subprocess.TimeoutExpired:
            return {"error": f"not done after {most:.0f} seconds"}
        if not out.exists():
            return {"error": f"the process ended with {ended.returncode}"}
        return json.loads(out.read_text())


def progress(record: Record) -> str:
    """A line for who is waiting."""
    seconds = f"{record['seconds']:9.3f} s" if "seconds" in record else "           "
    where = f"{record['model']} n={record['n']} m={record['m']}"
    return f"{where:28} round {record['round']}  {record['who']:14} {seconds}  {record['status']}"


def table(found: Summary) -> Table:
    """Seconds and ratios."""
    title = f"{MODELS[found.model].title}, {found.parameters:,} parameters, n = {found.n:,}, m = {found.m:,}"
    drawn = Table(title=title, box=SIMPLE_HEAD, title_justify="left")
    for heading in ("", "seconds", "x limit", "x cos_grad", "peak MB", "deviation", "difference"):
        drawn.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    drawn.add_column("")
    for row in found.rows:
        drawn.add_row(
            row.who,
            "" if row.seconds is None else f"{row.seconds:.3f}",
            "" if row.by_limit is None else f"{row.by_limit:.2f}",
            "" if row.by_ours is None else f"{row.by_ours:.2f}",
            "" if row.peak_megabytes is None else f"{row.peak_megabytes:.0f}",
            "" if row.deviation is None else f"{row.deviation:.0e}",
            "" if row.difference is None else f"{row.difference:.0e}",
            row.status,
        )
    return drawn


def names(known: tuple[str, ...], text: str) -> list[str]:
    """A list of known names, separated by commas; `none` for no name."""
    given = [] if text == "none" else text.split(",")
    unknown = [name for name in given if name not in known]
    if unknown:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(known)}")
    return given


def main() -> None:
    """Measures, writes `speed.jsonl` and prints tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    models, peers = tuple(MODELS), tuple(PEERS)
    parser.add_argument("--out", type=Path, required=True, help="the folder of the results")
    parser.add_argument("--models", type=lambda text: names(models, text), default=list(models))
    parser.add_argument("--peers", type=lambda text: names(peers, text), default=list(peers))
    parser.add_argument("--n", type=int, default=5000, help="training instances; large models have fewer")
    parser.add_argument("--m", type=int, default=500, help="cases; large models have fewer")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--curvature", action="store_true", help="also Gauss-Newton influence on the CNN")
    parser.add_argument("--mobilenet-fisher", action="store_true", help="also Fisher on MobileNetV2, n = 5,000")
    parser.add_argument("--again", action="store_true", help="measure also what is done")
    parser.add_argument("--retry", action="store_true", help="measure also what failed")
    parser.add_argument("--patience", type=float, default=120, help="seconds beyond which one round is enough")
    parser.add_argument("--most", type=float, default=7200, help="seconds after which a process is stopped")
    given = parser.parse_args()
    given.out = given.out.resolve()
    for piece in pieces(given):
        console.print(table(measure(piece, given)))


if __name__ == "__main__":
    main()

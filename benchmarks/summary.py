"""The records of a run put together: for each contestant its best seconds and what they are relative to."""

from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.records import Record

ROUNDS = 3  # of which the best counts


@dataclass(frozen=True)
class Row:
    """What one contestant reached at one piece of work."""

    who: str
    status: str  # right, wrong: ..., failed: ..., not installed: ..., or measured if it cannot be checked
    seconds: float | None  # the best of the rounds
    rounds: int
    spread: float | None  # the slowest round by the fastest
    by_limit: float | None  # relative to the limit
    by_ours: float | None  # relative to our Grad-Cos
    deviation: float | None  # from plain autograd in float64
    difference: float | None  # of the whole matrix from ours in float32
    peak_megabytes: float | None
    taken_megabytes: float | None  # by the work itself
    versions: dict[str, str]

    @property
    def counts(self) -> bool:
        """Whether its seconds may be compared with others."""
        return self.seconds is not None and not self.status.startswith("wrong")


@dataclass(frozen=True)
class Summary:
    """One piece of work and all who did it."""

    model: str
    n: int
    m: int
    parameters: int
    date: str
    machine: dict[str, object]
    rows: list[Row]

    def row(self, who: str) -> Row | None:
        """That of one contestant, if it took part."""
        return next((row for row in self.rows if row.who == who), None)


def last_run(records: Iterable[Record], model: str, n: int, m: int) -> list[Record]:
    """The records of the last run of one piece of work; it may have been interrupted and resumed."""
    same = [r for r in records if (r["model"], r["n"], r["m"]) == (model, n, m)]
    return [r for r in same if r["run"] == same[-1]["run"]]


def summaries(records: Iterable[Record]) -> list[Summary]:
    """One for each piece of work, from its last run."""
    every = list(records)
    works = dict.fromkeys((r["model"], r["n"], r["m"]) for r in every)
    return [summary(last_run(every, *work)) for work in works]


def summary(run: list[Record]) -> Summary:
    """From the records of one run of one piece of work."""
    best = {who: _seconds(run, who) for who in dict.fromkeys(r["who"] for r in run)}
    first = run[0]
    return Summary(
        model=first["model"],
        n=first["n"],
        m=first["m"],
        parameters=next((r["parameters"] for r in run if "parameters" in r), 0),
        date=run[-1]["date"],
        machine=next((r["machine"] for r in run if "machine" in r), {}),
        rows=[_row(run, who, best) for who in best],
    )


def _seconds(run: list[Record], who: str) -> float | None:
    return min((r["seconds"] for r in run if r["who"] == who and "seconds" in r), default=None)


def _row(run: list[Record], who: str, best: dict[str, float | None]) -> Row:
    own = [r for r in run if r["who"] == who]
    last = own[-1]
    seconds = best[who]

    def relative(other: str) -> float | None:
        base = best.get(other)
        return None if seconds is None or base is None else seconds / base

    return Row(
        who=who,
        status=last["status"],
        seconds=seconds,
        rounds=sum("seconds" in r for r in own),
        spread=max(r["seconds"] for r in own if "seconds" in r) / seconds if seconds else None,
        by_limit=relative("limit"),
        by_ours=relative("cos_grad"),
        deviation=last.get("deviation"),
        difference=last.get("difference"),
        peak_megabytes=max((r["peak_megabytes"] for r in own if "peak_megabytes" in r), default=None),
        taken_megabytes=max((r["taken_megabytes"] for r in own if "taken_megabytes" in r), default=None),
        versions=last.get("versions", {}),
    )

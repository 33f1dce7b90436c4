"""Writes the page of the benchmarks and its two pictures from the records."""

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks import estimates, explorer, jobs, kills, memory, newsgroups, paired, sparse_text
from benchmarks.agreement import CASES, TRAIN
from benchmarks.figures import growth_figure, speed_figure
from benchmarks.index import told as index
from benchmarks.models import MODELS
from benchmarks.peers import PEERS
from benchmarks.records import Record, Records
from benchmarks.summary import ROUNDS, Row, Summary, summaries

Section = Callable[[Sequence[Record]], Iterator[str]]

NAMES = {
    "dot_grad": "precedents, Grad-Dot",
    "cos_grad": "precedents, Grad-Cos",
    **{who: peer.title for who, peer in PEERS.items()},
}
FIVE = ("logreg", "cnn", "lstm", "transformer", "mobilenet")  # that all contestants are compared on first
GOALS = {"resnet18": 1.25, "resnet50": 1.5, "bert": 1.25, "bert_long": 1.25, "bert_base": 1.6, "vit": 1.3}
FORMED = (
    "The gradients of its layers are formed for each instance, where a plain pass adds them up within the "
    "product; then they are multiplied with those of the cases. Next: both while a gradient is in the cache."
)
MISSED = {"vit": FORMED, "bert_long": FORMED}  # why, where a goal is missed
CURVATURE = {
    "fisher": "`dot_fisher`, `cos_fisher`, `l2_fisher`",
    "curvature": "Gauss-Newton IF and RIF",
}


def page(works: Sequence[Summary], parts: Iterable[tuple[Section, Sequence[Record]]]) -> Iterator[str]:
    """The lines of the page."""
    measured, large = main_works(works), large_works(works)
    compared = with_peers(measured)
    yield "# Benchmarks"
    yield ""
    yield (
        "Time for the exact relevance of every training instance to every case, relative to the limit: one "
        "plain forward and backward pass over all instances plus one float32 product of the gradient matrices. "
        "All numbers of a column come from one run, each the best of up to three interleaved rounds (fewer are "
        "named below), each round in a process of its own. Weights and inputs are random. The spread is the "
        "slowest of a contestant's rounds by its fastest. `make bench` measures anew and writes this page."
    )
    yield ""
    yield from conditions(measured)
    yield ""
    yield "![Time relative to the limit, by model and library](images/benchmarks.svg)"
    yield ""
    yield from speed_table(compared)
    yield ""
    yield from remarks(compared)
    yield ""
    yield from agreement(measured)
    yield from large_models(large, main_works(w for w in works if w.model not in FIVE and has_peers(w)))
    yield from curvature(works)
    for told, records in parts:
        if records:
            yield from told(records)


def main_works(works: Iterable[Summary]) -> list[Summary]:
    """For each model the work with the most contestants, of these the largest."""
    return _last_of_each(sorted(works, key=lambda work: (len(work.rows), work.n * work.m)))


def large_works(works: Sequence[Summary]) -> list[Summary]:
    """For each of the larger models the largest work."""
    return _last_of_each(sorted((w for w in works if w.model not in FIVE), key=lambda work: work.n * work.m))


def _last_of_each(works: Iterable[Summary]) -> list[Summary]:
    last = {work.model: work for work in works}
    return [last[model] for model in MODELS if model in last]


def with_peers(works: Sequence[Summary]) -> list[Summary]:
    """Those of the five models that others took part in; all, if nobody did."""
    five = [w for w in works if w.model in FIVE]
    return [w for w in five if has_peers(w)] or five


def has_peers(work: Summary) -> bool:
    """Whether others took part."""
    return any(row.who in PEERS for row in work.rows)


def conditions(works: Sequence[Summary]) -> Iterator[str]:
    """Machine, versions and date."""
    for machine in unique(
        f"{w.machine.get('processor')}, {w.machine.get('cores')} cores, {w.machine.get('threads')} threads, "
        f"{w.machine.get('memory_gigabytes')} GB, {w.machine.get('system')}"
        for w in works
    ):
        yield f"- machine: {machine}"
    ours = next((row.versions for w in works for row in w.rows if row.who == "limit" and row.versions), {})
    yield "- versions: " + ", ".join([*versions(ours), *unique(peer_versions(works))])
    yield f"- date: {', '.join(unique(w.date[:10] for w in works))}"


def versions(found: dict[str, str]) -> list[str]:
    """As text."""
    return [f"{name} {number}" for name, number in found.items()]


def peer_versions(works: Sequence[Summary]) -> Iterator[str]:
    """Of those who took part."""
    for work in works:
        for row in work.rows:
            package = PEERS[row.who].package if row.who in PEERS else ""
            if package in row.versions:
                yield f"{package} {row.versions[package]}"


def speed_table(works: Sequence[Summary]) -> Iterator[str]:
    """Contestants by models."""
    yield "| | " + " | ".join(MODELS[w.model].title for w in works) + " |"
    yield "|---|" + "---:|" * len(works)
    yield "| parameters | " + " | ".join(f"{w.parameters:,}" for w in works) + " |"
    yield "| training instances x cases | " + " | ".join(f"{w.n:,} x {w.m:,}" for w in works) + " |"
    limits = (w.row("limit") for w in works)
    yield "| the limit, seconds | " + " | ".join(number(r.seconds if r else None) for r in limits) + " |"
    yield "| the limit, rounds and spread | " + " | ".join(_spread(w.row("limit")) for w in works) + " |"
    ours = [w.row("cos_grad") for w in works]
    yield "| precedents, Grad-Cos, rounds and spread | " + " | ".join(_spread(r) for r in ours) + " |"
    for who, name in NAMES.items():
        yield f"| {name} | " + " | ".join(cell(w.row(who)) for w in works) + " |"


def large_models(works: Sequence[Summary], beside: Sequence[Summary] = ()) -> Iterator[str]:
    """Larger models, one in each row; and those works on them that others took part in."""
    if not works:
        return
    yield ""
    yield "## Larger models"
    yield ""
    yield (
        "The same for models as people have them, beside the limit and what we aim at. The "
        "limit's product is made in blocks of parameters, so that every number is read once. The title of a "
        "model says the memory that it was given, where that was less than what is free. The memory is what "
        "Grad-Cos took beyond the model, the data and the libraries, at most."
    )
    yield ""
    yield (
        "| model | parameters | training x cases | the limit, s | Grad-Dot | Grad-Cos | goal "
        "| peak memory, MiB | rounds |"
    )
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|"
    for w in works:
        limit, ours = w.row("limit"), w.row("cos_grad")
        seconds, rounds = number(limit.seconds if limit else None), ours.rounds if ours else 0
        memory = ours.taken_megabytes if ours else None
        taken = "–" if memory is None else f"{memory:.0f}"
        yield (
            f"| {MODELS[w.model].title} | {w.parameters:,} | {w.n:,} x {w.m:,} | {seconds} "
            f"| {cell(w.row('dot_grad'))} | {cell(ours)} | {GOALS.get(w.model, '–')} | {taken} | {rounds} |"
        )
    for w in works:
        ours = w.row("cos_grad")
        ratio = ours.by_limit if ours else None
        if w.model in MISSED and ratio is not None and ratio > GOALS[w.model]:
            yield ""
            yield f"Missed: {MODELS[w.model].title}, {ratio:.2f} of the limit by Grad-Cos. {MISSED[w.model]}"
    if beside:
        yield ""
        yield (
            "Others on them, at sizes that most of them end at. The limit and ours are of the same instances. "
            "Failed is also who was not done in the seconds that are named."
        )
        yield ""
        yield from speed_table(beside)
        yield ""
        yield from remarks(beside)


def _spread(row: Row | None) -> str:
    return "–" if row is None or row.spread is None else f"{row.rounds}, {row.spread:.2f}"


def cell(row: Row | None) -> str:
    """Relative to the limit, with the seconds; or what went wrong."""
    if row is None:
        return "not measured"
    if row.seconds is None:
        return row.status.partition(":")[0]
    ratio = f"{number(row.by_limit)} ({number(row.seconds)} s)"
    if not row.counts:
        return f"~~{ratio}~~ wrong"
    return ratio if row.who in PEERS else f"**{ratio}**"


def number(value: float | None) -> str:
    """Two or three digits."""
    if value is None:
        return "–"
    if value < 0.1:
        return f"{value:.2g}"
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def remarks(works: Sequence[Summary]) -> Iterator[str]:
    """How the peers were used, and why numbers are missing or struck out."""
    for who, name in NAMES.items():
        said = [f"{PEERS[who].note}."] if who in PEERS else []
        for work in works:
            row = work.row(who)
            if row is not None and row.status != "right":
                said.append(f"{MODELS[work.model].title}: {row.status}.")
            elif row is not None and row.rounds < ROUNDS:
                said.append(f"{MODELS[work.model].title}: {row.rounds} of {ROUNDS} rounds.")
        if said:
            yield f"- {name}: {' '.join(said)}"


def agreement(works: Sequence[Summary]) -> Iterator[str]:
    """How the numbers were checked."""
    right = [row for w in works for row in w.rows if row.deviation is not None and row.counts]
    ours = [row.deviation for row in right if row.who not in PEERS]
    peers = [row.deviation for row in right if row.who in PEERS]
    whole = [row.difference for row in right if row.difference is not None]
    yield (
        f"Everyone is checked on {CASES} cases and {TRAIN} training instances, in float64 if possible, against "
        "plain autograd one example at a time, relative to the largest score. "
        + (f"precedents deviates by at most {max(ours):.0e}" if ours else "")
        + (f", the peers that are right by at most {max(peers):.0e}" if peers else "")
        + ". "
        + (f"The whole float32 matrices differ from ours by at most {max(whole):.0e}: " if whole else "")
        + "in float32 a ReLU at its kink may fall on either side."
    )


def curvature(works: Sequence[Summary]) -> Iterator[str]:
    """Fisher and Gauss-Newton."""
    rows = [(w, row) for w in works for row in w.rows if row.who in CURVATURE]
    if not rows:
        return
    yield ""
    yield "## Curvature"
    yield ""
    yield "| metrics | model | training x cases | rounds | seconds | relative to Grad-Cos | peak memory |"
    yield "|---|---|---:|---:|---:|---:|---:|"
    for w, row in rows:
        memory = "–" if row.peak_megabytes is None else f"{row.peak_megabytes / 1024:.1f} GB"
        seconds = row.status if row.seconds is None else number(row.seconds)
        yield (
            f"| {CURVATURE[row.who]} | {MODELS[w.model].title} | {w.n:,} x {w.m:,} | {row.rounds} | {seconds} "
            f"| {number(row.by_ours)} | {memory} |"
        )


def growth_section(records: Sequence[Record]) -> Iterator[str]:
    """Time and memory of the top ten."""
    yield ""
    yield "## Growth"
    yield ""
    yield (
        "The ten best precedents by Grad-Cos, the paper's CNN on 28 x 28 images, the full matrix never held. "
        "The memory is the peak of the process less that of one that only imports the library and holds the "
        "same model and data."
    )
    yield ""
    yield "![Seconds and memory over training instances, cases and parameters](images/growth.svg)"
    yield ""
    yield "| training instances | cases | parameters | seconds | memory, MB |"
    yield "|---:|---:|---:|---:|---:|"
    for r in records:
        values = [number(r["seconds"]), f"{r['own_megabytes']:.0f}"] if "seconds" in r else [r["status"], "–"]
        yield f"| {r['n']:,} | {r['m']:,} | {r.get('parameters', 0):,} | {' | '.join(values)} |"


def unique(values: Iterator[str]) -> list[str]:
    """In the order of their first appearance."""
    return list(dict.fromkeys(values))


def saved(figure: Figure, path: Path) -> None:
    """The same bytes for the same figure."""
    with mpl.rc_context({"svg.hashsalt": "benchmarks"}):
        figure.savefig(path, metadata={"Date": None})


PARTS: tuple[tuple[Any, ...], ...] = (  # the sections of the page, and the files of their records
    (paired.section, "paired"),
    (growth_section, "growth"),
    (memory.section, "memory"),
    (newsgroups.section, "newsgroups"),
    (kills.section, "kills"),
    (estimates.section, "estimates"),
    (sparse_text.section, "sparse_text"),
    (index.section, "index", "cluster"),
    (jobs.section, "jobs"),
    (explorer.section, "explorer"),
)


def last_records(results: Path, files: Iterable[str]) -> list[Record]:
    """The last record of each key."""
    every = (record for name in files for record in Records(results / f"{name}.jsonl"))
    return list({record["key"]: record for record in every}.values())


def main() -> None:
    """Writes `benchmarks.md` and `images/` into `--out`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, required=True, help="the folder of the records")
    parser.add_argument("--out", type=Path, required=True, help="the folder of the page: docs")
    given = parser.parse_args()
    works = summaries(Records(given.results / "speed.jsonl"))
    parts = {told: last_records(given.results, files) for told, *files in PARTS}
    (given.out / "images").mkdir(parents=True, exist_ok=True)
    (given.out / "benchmarks.md").write_text("\n".join(page(works, parts.items())) + "\n")
    titles = {name: kind.title for name, kind in MODELS.items()}
    saved(speed_figure(with_peers(main_works(works)), titles, NAMES), given.out / "images" / "benchmarks.svg")
    if growth := parts[growth_section]:
        saved(growth_figure(growth), given.out / "images" / "growth.svg")


if __name__ == "__main__":
    main()

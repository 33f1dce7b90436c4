"""The part of the page about indexes: every goal with its number beside it, and the works one by one."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.index import codes, rivals, scaling
from benchmarks.index.measured import ASKED, least
from benchmarks.index.works import BATCH, WORKS
from benchmarks.records import Record

Found = Mapping[str, Record]  # the last record of each work


@dataclass(frozen=True)
class Goal:
    """What was to be reached, and by which record that is seen."""

    what: str
    goal: str
    work: str
    number: Callable[[Record], float]
    met: Callable[[float], bool]
    shown: Callable[[float], str]


def at_most(what: str, limit: float, work: str, number: Callable[[Record], float]) -> Goal:
    """A ratio, or a number, that is not to be exceeded."""
    return Goal(what, f"{limit:g}", work, number, lambda found: found <= limit, lambda found: f"{found:.2f}")


def share(what: str, limit: int, work: str, number: Callable[[Record], float]) -> Goal:
    """One of so many parts, at most."""
    return Goal(what, f"1/{limit}", work, number, lambda found: found <= 1 / limit, _part)


def _part(found: float) -> str:
    return f"1/{1 / found:.0f}" if found < 1 else f"{found:.1f}"


def build(record: Record) -> float:
    """Of plain passes."""
    return float(record["build"] / record["plain"])


def second(record: Record) -> float:
    """Of the first question."""
    return float(record["second"] / record["first"])


def question(record: Record) -> float:
    """Of the least that a question takes."""
    return float(record["question"] / least(record))


def size(record: Record) -> float:
    """Bytes a row, without what an index has once."""
    return float(record["bytes"] / record["n"])


def recall(record: Record) -> float:
    """Of what the index answers; NaN where it answers nothing."""
    return math.nan if record["recall"] is None else float(record["recall"])


def peak(record: Record) -> float:
    """In MiB."""
    return float(record["peak"])


def exactly(what: str, goal: str, work: str, number: Callable[[Record], float], most: float) -> Goal:
    """A number that is to be as near to nothing."""
    return Goal(what, goal, work, number, lambda found: found <= most, lambda found: f"{found:.0e}")


SECOND = "second question in one process, of the first"
COMPLETE = "recall at 10"
SCALED = "two workers, of one"
GOALS = [
    at_most("build, of plain passes", 1.3, "mnist", build),
    at_most("build, of plain passes", 1.15, "mobilenet", build),
    share(SECOND, 5, "readme", second),
    share(SECOND, 20, "bert", second),
    share(SECOND, 100, "mnist", second),
    *(
        at_most("question, of a scan and the rows computed", 2, work, question)
        for work in ("mnist", "cnn 100,000")
    ),
    *(
        Goal("bytes a row", "1,126", work, size, lambda found: found <= 1126, lambda found: f"{found:,.0f}")
        for work in ("mnist", "bert", "cnn 1,000,000")
    ),
    *(
        exactly(f"error of returned scores, {precision}", goal, work, lambda r: float(r["error"]), float(goal))
        for precision, goal, work in (("float64", "1e-12", "readme"), ("float32", "1e-5", "mnist"))
    ),
    *(
        Goal(
            COMPLETE,
            "1.000",
            work,
            recall,
            lambda found: found == 1,
            lambda f: f"{f:.3f}",
        )
        for work in WORKS
    ),
    Goal(
        SCALED,
        "1.8",
        scaling.NAME,
        lambda r: float(r["one"] / r["two"]),
        lambda found: found >= 1.8,
        lambda found: f"{found:.2f}",
    ),
    at_most("question, warm, seconds", 2, "cnn 1,000,000", lambda r: float(r["question"])),
    *(
        Goal(
            "peak memory, MiB",
            "1,907 (2 GB)",
            work,
            peak,
            lambda found: found <= 2e9 / 2**20,
            lambda found: f"{found:,.0f}",
        )
        for work in ("cnn 1,000,000", "bert")
    ),
]

FORMED = (
    "A plain pass adds the gradients of a weight up within the convolution; for codes they are formed, all "
    "numbers of every row, then added up in buckets and multiplied by the basis. Next: sketches of layers from "
    "what came back and what was received, where these are shorter."
)
REASONS = {  # why a goal may be missed, and what could be tried, by what and work
    ("build, of plain passes", "mnist"): FORMED,
    ("build, of plain passes", "mobilenet"): FORMED,
    (SECOND, "readme"): (
        "A pass over so few rows is as short as what every question does: a case is read, its gradient "
        "computed, its precedents read and compared with it. Next: parts of an explanation when they are "
        "asked for."
    ),
    ("question, of a scan and the rows computed", "cnn 100,000"): (
        "Codes are bytes, which become numbers of four bytes before they are multiplied: that takes longer "
        "than to read them; and the gradients of a few rows are computed by a pass that is not full. Next: "
        "products of bytes."
    ),
    (SCALED, scaling.NAME): (
        "Two plain passes side by side take 1.1 of the time of one alone on this machine, whose memory they "
        "share, which leaves 1.8 at best; and a worker takes two seconds to start. Runs differ by a fifth."
    ),
}


def section(records: Sequence[Record]) -> Iterator[str]:
    """The lines of the page."""
    found = {record["key"]: record for record in records}
    yield from ("", "## Indexes", "")
    yield (
        "Every goal of the index beside what was measured; single precision but for the README's model, which "
        "computes in double precision. `python -m benchmarks.index` measures it, `make kills` the goal that a "
        "killed build loses one shard of each worker and ends with the same bytes, `make cluster` that a "
        "node is lost."
    )
    yield ""
    yield from goals(found)
    yield ""
    yield from works(found)
    yield from _codes(found)
    yield from _projections(found)


def goals(found: Found) -> Iterator[str]:
    """One line for each goal, and why some are missed."""
    yield "| what | goal | measured | | model | rows |"
    yield "|---|---:|---:|---|---|---:|"
    yield from (reached(goal, found.get(goal.work)) for goal in GOALS)
    for (what, work), reason in REASONS.items():
        goal = next(each for each in GOALS if (each.what, each.work) == (what, work))
        record = found.get(work, {"failed": ""})
        if "failed" not in record and not goal.met(goal.number(record)):
            yield f"\nMissed: {what} ({_title(work)}). {reason}"
    if scaling.NAME in found:
        same = "the same bytes" if found[scaling.NAME]["same bytes"] else "**other bytes**"
        yield f"\nOne worker and two made {same}."
    if "cluster" in found:
        lost = found["cluster"]
        same = "the same bytes as in one process" if lost["same bytes"] else "**other bytes**"
        yield (
            f"\nA node of a two-node Ray cluster was killed when {lost['there']} of {lost['shards']} shards "
            f"were there: the index was complete {lost['after']:.0f} seconds later, with {same}."
        )


def reached(goal: Goal, record: Record | None) -> str:
    """The line of a goal."""
    title = _title(goal.work)
    if record is None or "failed" in record:
        return f"| {goal.what} | {goal.goal} | {'not measured' if record is None else 'failed'} | | {title} | |"
    number = goal.number(record)
    met = "met" if goal.met(number) else "" if math.isnan(number) else "**missed**"
    shown = "by passes" if math.isnan(number) else goal.shown(number)
    return f"| {goal.what} | {goal.goal} | {shown} | {met} | {title} | {record['n']:,} |"


def _title(work: str) -> str:
    return WORKS[work].title if work in WORKS else "ResNet, 28 x 28 images"


def works(found: Found) -> Iterator[str]:
    """One line for each work."""
    yield (
        "`Index.build` beside plain forward and backward passes over the training set in batches of "
        f"{BATCH}; a question to a loaded index (the median of {ASKED}, warm) beside a full pass for the same; "
        "recall at 10 and the error of returned scores against the full pass, over those cases that the index "
        "answers and no pass; how many rows were computed again for a case, in the median and at most; bytes "
        "of a row, and of what an index has once; the peak memory of building, loading and asking beyond the "
        "model, the data and the libraries, of 2 GB that were allowed, and with the check and its full passes. "
        "Images and texts are drawn unless a data set is named. Processes of one thread."
    )
    yield ""
    yield (
        "| work | rows | parameters | build, of plain passes | question, ms | of a full pass | bytes a row | "
        "recall | error | rows again | how it is known | peak, MiB |"
    )
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|---:|"
    yield from (line(found[name]) for name in WORKS if name in found)


def line(record: Record) -> str:
    """Of a work."""
    if "failed" in record:
        return f"| {WORKS[record['key']].title} | {record['failed']}" + " |" * 11
    sure = ", ".join(f"{count} {name}" for name, count in record["sure"].items())
    known = record["recall"] is not None
    cells = [
        f"{record['n']:,}",
        f"{record['parameters']:,}",
        f"{build(record):.2f}",
        f"{1000 * record['question']:.0f}",
        _part(record["question"] / record.get("pass", record["check"])),
        f"{size(record):,.0f} + {record['beside'] / 1e6:.1f} MB",
        f"{record['recall']:.3f}" if known else "–",
        f"{record['error']:.0e}" if known else "–",
        f"{record['computed']:,} / {record['most']:,}",
        sure,
        f"{peak(record):.0f} / {record['peak with check']:.0f}",
    ]
    source = "" if record["source"] == "drawn" else f" ({record['source']})"
    return f"| {WORKS[record['work']].title}{source} | " + " | ".join(cells) + " |"


def _codes(found: Found) -> Iterator[str]:
    """Codes of other sizes."""
    tried = {name: found[f"codes {name}"] for name in codes.MODELS if "codes" in found.get(f"codes {name}", {})}
    if not tried:
        return
    yield ""
    of = (f"{name} ({each['n']:,} rows of {each['parameters']:,} numbers)" for name, each in tried.items())
    yield (
        f"Codes of other sizes, of {', '.join(of)}: the standard deviation of the estimate's error among the "
        f"{codes.NEAR} most relevant, and how many candidates hold the true first {codes.FIRST}, in the median "
        "and at 95%."
    )
    yield ""
    yield "| coordinates + buckets | bytes a row |" + "".join(
        f" {name}: error | candidates |" for name in tried
    )
    yield "|---|---:|" + "---:|---:|" * len(tried)
    for i, (kept, buckets) in enumerate(codes.SIZES):
        each = [record["codes"][i] for record in tried.values()]
        cells = [f"{one['error']:.4f} | {one['needed']:.0f} / {one['needed95']}" for one in each]
        yield f"| {kept} + {buckets} | {max(one['bytes'] for one in each):,.0f} | " + " | ".join(cells) + " |"


def _projections(found: Found) -> Iterator[str]:
    """Beside what others keep."""
    compared = [(name, work) for work in WORKS if WORKS[work].projected for name in rivals.LIBRARIES]
    lines = [_rival(found[f"{name} {work}"], name) for name, work in compared if f"{name} {work}" in found]
    if not lines:
        return
    yield ""
    yield (
        "Others keep random projections of the gradients, and return the scores of these: the same models, "
        "training sets and cases, the cosines of what they keep by their own settings (TRAK 2,048 numbers of a "
        "row, LoGra 4,096 of each linear layer; it has none of others), beside exact ones. Recall is at 10; "
        "the error is the standard deviation among the 100 most relevant."
    )
    yield ""
    yield (
        "| | work | rows | parameters | build, of plain passes | question, ms | bytes a row | recall | error |"
    )
    yield "|---|---|---:|---:|---:|---:|---:|---:|---:|"
    yield from lines


def _rival(record: Record, name: str) -> str:
    cells = [
        rivals.LIBRARIES[name][0],
        WORKS[record["work"]].title,
        f"{record['n']:,}",
        f"{record['parameters']:,}",
    ]
    if "failed" in record:
        return f"| {' | '.join(cells)} | {record['failed']} | | | | |"
    cells += [f"{build(record):.2f}", f"{1000 * record['question']:.0f}", f"{record['bytes']:,.0f}"]
    return f"| {' | '.join(cells)} | {record['recall']:.3f} | {record['error']:.3f} |"

"""The comparison as tables and sentences: counts, targets, what is open, what differs, what is missing."""

from collections.abc import Sequence
from dataclasses import replace

from precedents.metrics.names import FORMS
from precedents.reproduction.comparison import CLOSE, LIMIT, STATUSES, VERDICTS, Compared, Comparison
from precedents.reproduction.published import CRITERIA, without_spread
from precedents.reproduction.rank_agreement import ORDER
from precedents.reproduction.results import RepeatedValue, SettingResults
from precedents.reproduction.tables import counted, lined, titled
from precedents.reproduction.variant_tables import fisher, randomization, variants
from precedents.views.table import NONE, Entry, Table, decimal, mean_and_std, signed

OPEN = "Open: no recorded variant gives the published value"
MOST = 15  # open cells that are printed
MEASURE = (
    f"Agrees: within {LIMIT:g} combined standard deviations, sqrt(s1² + s2² + r²), of ours (s1), the published "
    "repeats (s2) and the rounding to two digits (r). s1 and s2 are at least r and, for rates, at least the "
    "spread of a rate over the cases; s1 over fewer than five repeats is at least s2. Differs: a recorded "
    "variant agrees with the published value instead, and is named. Open: neither."
)


def sentences(comparison: Comparison) -> list[str]:
    """What the comparison comes to."""
    settings = list(dict.fromkeys(each.setting for each in comparison.cells))
    said = []
    if settings:
        counts = comparison.counts()
        compared = sum(counts.values()) - counts["missing"]
        absent = f"; {counts['missing']} more have no number of ours" if counts["missing"] else ""
        text = (
            f"{compared} published numbers in {counted(len(settings), 'setting')} are compared: "
            f"{counts['agrees']} agree, {counts['differs']} differ with a named cause, {counts['open']} are "
            f"open{absent}."
        )
        said += [text, _closeness(comparison), _orders(comparison)]
    if comparison.without:
        names = ", ".join(each.setting for each in comparison.without)
        said.append(f"Without published numbers, ours alone: {names}.")
    return [each for each in said if each]


def grids(comparison: Comparison) -> list[Table]:
    """Everything, in the order of reading."""
    made = []
    if comparison.cells:
        made = [
            _counted(comparison),
            _targets(comparison),
            randomization(comparison),
            fisher(comparison),
            variants(comparison),
            _listed(comparison, "open", OPEN),
            _listed(comparison, "differs", "Differs, and a recorded variant gives the published value"),
            _absent(comparison),
        ]
    return [grid for grid in [*made, *map(alone, comparison.without)] if grid.rows]


def brief(comparison: Comparison) -> list[Table]:
    """What is printed: counts, Fisher rows, the largest open differences, targets, and ours alone."""
    made = []
    if comparison.cells:
        every = _listed(comparison, "open", OPEN)
        hidden = len(every.rows) - MOST
        more = [f"{hidden} more in comparison.md, with --out."] if hidden > 0 else []
        shown = replace(every, rows=every.rows[:MOST], notes=more)
        made = [_counted(comparison), fisher(comparison), shown, _targets(comparison)]
    return [grid for grid in [*made, *map(alone, comparison.without)] if grid.rows]


def alone(found: SettingResults) -> Table:
    """A setting without published numbers."""
    criteria = found.criteria()
    rows: list[list[Entry | str]] = [
        [titled(metric), *(_estimate(found.outcome(metric, criterion)) for criterion in criteria)]
        for metric in sorted(found.tried(), key=lambda name: [*FORMS, name].index(name))
    ]
    notes = [f"{counted(found.repeats, 'repeat')}, mean ± std. The paper has no numbers of this setting."]
    return Table(f"{found.setting}: ours alone", ["metric", *(lined(c) for c in criteria)], rows, notes)


def _closeness(comparison: Comparison) -> str:
    every = comparison.closeness()
    far = [each for each in every.values() if abs(each.cell.difference or 0) > CLOSE]
    of = len(every)
    if not of:
        return ""
    told = ([each.setting, signed(each.cell.difference or 0, 3), *_instead(each)] for each in far)
    listed = ", ".join(map(" ".join, told))
    held = f"{of - len(far)} of {counted(of, 'setting')}" + (f"; not in: {listed}." if far else ".")
    return f"Identical class by GC is within {CLOSE} of the published value in {held}"


def _instead(each: Compared) -> list[str]:
    """A variant that gives the published value where ours does not."""
    cause, theirs = each.cause, each.cell.published
    if cause is None or theirs is None:
        return []
    return [f"({signed(cause.found.mean - theirs.mean, 3)} by {each.named(cause)})"]


def _orders(comparison: Comparison) -> str:
    orders = [each for each in comparison.orders if each.correlation is not None]
    if not orders:
        return ""
    held, named = (sum(each.status == status for each in orders) for status in ("agrees", "differs"))
    return (
        f"The order of the metrics (Spearman, without the Fisher rows) is at least {ORDER} in {held} of "
        f"{len(orders)} columns; for {named} more the table of the targets names why it is not."
    )


def _counted(comparison: Comparison) -> Table:
    """Statuses by setting and criterion: agree + differ + open."""
    settings = list(dict.fromkeys(each.setting for each in comparison.cells))
    rows: list[list[Entry | str]] = []
    for setting in settings:
        row = [
            _count(comparison.counts(setting=setting, criterion=criterion)) for criterion in CRITERIA.values()
        ]
        rows.append([setting, *row, _count(comparison.counts(setting=setting))])
    every = [_count(comparison.counts(criterion=criterion)) for criterion in CRITERIA.values()]
    rows.append(["all", *every, _count(comparison.counts())])
    headings = ["setting", *(lined(criterion) for criterion in CRITERIA.values()), "all"]
    notes = ["Published cells that agree / differ with a named cause / are open.", MEASURE, *_flat(comparison)]
    return Table("Cells by status", headings, rows, notes)


def _flat(comparison: Comparison) -> list[str]:
    """Published columns whose standard deviations cannot be over repeats."""
    here = {(each.criterion, each.setting) for each in comparison.cells if each.cell.ours}
    columns = [f"{setting} {criterion}" for criterion, setting in sorted(without_spread() & here)]
    if not columns:
        return []
    told = "Every published standard deviation is 0.00, which ten repeats cannot give; ours stand in for them"
    return [f"{told}: {', '.join(columns)}."]


def _count(counts: dict[str, int]) -> Entry:
    here = [counts[status] for status in STATUSES[:3]]
    return Entry(
        " / ".join(map(str, here)), (f"{counts['missing']} without ours",) if counts["missing"] else ()
    )


def _targets(comparison: Comparison) -> Table:
    """The order of the metrics in every column, and GC's difference."""
    close = comparison.closeness()
    orders = {(each.setting, each.criterion): each for each in comparison.orders}
    rows: list[list[Entry | str]] = []
    for setting in dict.fromkeys(each.setting for each in comparison.cells):
        row: list[Entry | str] = [setting]
        difference = close[setting].cell.difference if setting in close else None
        if difference is None:
            row.append(NONE)
        elif abs(difference) <= CLOSE:
            row.append(Entry(signed(difference, 3), verdict="passed"))
        else:
            instead = _instead(close[setting])
            row.append(Entry(signed(difference, 3), tuple(instead), VERDICTS["differs" if instead else "open"]))
        for criterion in CRITERIA.values():
            order = orders.get((setting, criterion))
            if order is None or order.correlation is None:
                row.append(NONE)
                continue
            moved = [f"open; moved: {', '.join(order.moved)}"] if order.below else []
            under = tuple(order.reasons) or tuple(moved)
            row.append(Entry(decimal(order.correlation), under, VERDICTS[order.status]))
        rows.append(row)
    headings = [
        "setting",
        "GC, identical\nclass: ours less\npublished",
        *(lined(c) for c in CRITERIA.values()),
    ]
    note = (
        f"Aimed at: GC within {CLOSE}; and a rank correlation of at least {ORDER} between our column and the "
        "published one over the metrics without the Fisher rows, both with two digits, ties at their average "
        "rank. Where it is less: what it is with the variants that are named as causes, a choice among them "
        "made in the whole column; or without the fewest metrics whose cells do not agree; or that all cells "
        "agree; or that the published column itself, drawn again from the combined standard deviations, has "
        "less; or, where it has no spread, how near a single repeat of ours comes to it, and to our own mean. "
        "If none of these explains it, it is open."
    )
    return Table("Targets: GC, and the order of the metrics", headings, rows, [note])


def _listed(comparison: Comparison, status: str, title: str) -> Table:
    """Cells of one status, the largest difference first."""
    chosen = [each for each in comparison.cells if each.status == status]
    chosen.sort(key=lambda each: -abs(each.cell.difference or 0))
    rows = [_line(each) for each in chosen]
    headings = ["setting", "criterion", "metric", "published", "ours", "difference", "deviations"]
    last = "variants that give it" if status == "differs" else "nearest variant"
    return Table(title, [*headings, last], rows, texts=3)


def _line(each: Compared) -> list[Entry | str]:
    nearest = sorted(each.variants, key=lambda variant: abs(variant.deviations))
    shown = [v for v in nearest if v.agrees][:3] or nearest[:1]
    theirs = each.cell.published
    return [
        each.setting,
        each.criterion,
        titled(each.metric),
        mean_and_std(theirs.mean, theirs.std) if theirs else NONE,
        _estimate(each.cell.ours),
        signed(each.cell.difference or 0),
        signed(each.deviations or 0, 1),
        "\n".join(f"{each.named(v)}: {mean_and_std(v.found.mean, v.found.std)}" for v in shown) or NONE,
    ]


def _absent(comparison: Comparison) -> Table:
    """Why there is no number of ours."""
    reasons: dict[tuple[str, str], list[Compared]] = {}
    for each in comparison.cells:
        if each.status == "missing":
            reasons.setdefault((each.setting, each.cell.missing or "not in the records yet"), []).append(each)
    rows: list[list[Entry | str]] = [
        [setting, str(len(cells)), ", ".join(dict.fromkeys(c.metric for c in cells)), reason]
        for (setting, reason), cells in reasons.items()
    ]
    return Table("Published cells without ours", ["setting", "cells", "metrics", "reason"], rows, texts=4)


def _estimate(found: RepeatedValue | None, verdict: str = "") -> Entry:
    return Entry(mean_and_std(found.mean, found.std), verdict=verdict) if found else Entry(NONE)


def notes_of(found: Sequence[SettingResults]) -> Table:
    """What the records say of themselves: repeats, protocol, notes."""
    rows: list[list[Entry | str]] = [
        [
            each.setting,
            str(each.repeats),
            ", ".join(f"{name} {value}" for name, value in dict(each.header.get("protocol") or {}).items()),
            str(each.header.get("note") or ""),
        ]
        for each in found
    ]
    return Table("How it was run", ["setting", "repeats", "protocol", "note"], rows, texts=4)

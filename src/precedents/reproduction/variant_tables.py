"""What recorded variants give, as tables: both label choices, the Fisher matrices, the cells that agree."""

from precedents.metrics.names import FORMS
from precedents.reproduction.comparison import RANK_ONE, VERDICTS, Compared, Comparison
from precedents.reproduction.published import CRITERIA
from precedents.reproduction.results import RepeatedValue
from precedents.reproduction.tables import lined, titled
from precedents.views.table import NONE, Entry, Table, mean_and_std

SHARED = "model_randomization(label=shared)"


def randomization(comparison: Comparison) -> Table:
    """Both label choices and both null intervals."""
    rows: list[list[Entry | str]] = []
    for each in comparison.cells:
        shared = next((v for v in each.variants if (v.metric, v.criterion) == (each.metric, SHARED)), None)
        if each.criterion != "model_randomization" or not (each.cell.ours or shared):
            continue
        ours = each.cell.ours
        nulls = (ours or (shared and shared.found)) or None
        published = each.cell.published
        rows.append(
            [
                each.setting,
                titled(each.metric),
                mean_and_std(published.mean, published.std) if published else NONE,
                Entry(_ticked(ours, each.status == "agrees"), verdict=VERDICTS.get(each.status, "")),
                _ticked(shared and shared.found, shared is not None and shared.agrees),
                *_nulls(nulls, ours, shared and shared.found),
            ]
        )
    headings = ["setting", "metric", "published", "own label", "shared label"]
    headings += ["null over\ntraining instances", "null over\ncases"]
    note = (
        "Own: each model explains its own prediction; shared: both explain the trained model's. Below each "
        "null interval, which of the two lies in it. ✓ agrees with the published value."
    )
    return Table("Randomization: both label choices, both null intervals", headings, rows, [note], texts=2)


def _nulls(
    nulls: RepeatedValue | None, own: RepeatedValue | None, shared: RepeatedValue | None
) -> list[Entry | str]:
    halves = nulls.nulls if nulls else ()
    if len(halves) != 2:
        return [NONE, NONE]
    return [
        Entry(
            f"±{half:.3f}",
            tuple(
                name for name, value in (("own", own), ("shared", shared)) if value and abs(value.mean) <= half
            ),
        )
        for half in halves
    ]


def fisher(comparison: Comparison) -> Table:
    """The correct matrix beside that of the published code."""
    cells = {
        (each.setting, each.metric, each.criterion): each
        for each in comparison.cells
        if "fisher" in each.metric and (each.cell.ours or each.variants)
    }
    rows: list[list[Entry | str]] = [
        [setting, titled(metric), *(_matrices(cells.get((setting, metric, c))) for c in CRITERIA.values())]
        for setting, metric in dict.fromkeys(key[:2] for key in cells)
    ]
    note = (
        "The empirical Fisher matrix (ours) above; then the published value; then ours with the matrix of the "
        "published code, the outer product of the mean gradient: with entries in float32 and a damping below "
        "their rounding, as there (code's), and without rounding (exact). ✓ agrees with the published value."
    )
    headings = ["setting", "metric", *(lined(criterion) for criterion in CRITERIA.values())]
    title = "Fisher rows: the published code's matrix beside the correct one"
    return Table(title, headings, rows, [note], texts=2)


def _matrices(each: Compared | None) -> Entry:
    if each is None or each.cell.published is None:
        return Entry(NONE)
    theirs = {
        name: variant
        for kind, name in RANK_ONE.items()
        for variant in each.variants
        if kind in variant.metric and variant.criterion == each.criterion
    }
    under = [f"published {mean_and_std(each.cell.published.mean, each.cell.published.std)}"]
    under += [f"{name} {_ticked(variant.found, variant.agrees)}" for name, variant in theirs.items()]
    agrees = each.status == "agrees"
    verdict = "passed" if agrees else "weak" if any(variant.agrees for variant in theirs.values()) else ""
    text = _ticked(each.cell.ours, agrees)
    return Entry(text, tuple(under), verdict, "; ".join(variant.metric for variant in theirs.values()))


def _ticked(found: RepeatedValue | None, agrees: bool) -> str:
    return NONE if found is None else mean_and_std(found.mean, found.std) + (" ✓" if agrees else "")


def variants(comparison: Comparison) -> Table:
    """How many published cells each variant gives."""
    scores = comparison.scores()
    names = dict.fromkeys((metric, name) for metric, name, _ in scores)
    order = list(FORMS)
    kinds = ("success rates", "randomization")
    rows: list[list[Entry | str]] = [
        [titled(metric), name, *(_score(scores.get((metric, name, kind))) for kind in kinds)]
        for metric, name in sorted(names, key=lambda key: order.index(key[0]))
    ]
    notes = ["Published cells that agree with the variant, of those where it was recorded."]
    return Table("Variants against the published cells", ["metric", "variant", *kinds], rows, notes, texts=2)


def _score(score: tuple[int, int] | None) -> str:
    return f"{score[0]} of {score[1]}" if score else NONE

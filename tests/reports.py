"""Reports for the tests: a real one of the small world, and one whose every text is hostile."""

from dataclasses import replace

import numpy as np

from precedents import Explainer, Trial, judge
from precedents.criteria._judgement import Inapplicable
from precedents.explain.strips import strips as drawn_of
from precedents.metrics.paper import metric
from precedents.views.instance import Cell
from precedents.views.report import Example, Hub, Report, ReportRow

METRICS = ("cos_grad", "dot_grad", "l2_x", "cos_last", "dot_fisher")
MEANING = {"identical_class": "The first have the predicted class.", "model_randomization": "It is near 0."}
RUN = "window.hacked = true"
HOSTILE = (
    f"<script>{RUN}</script>"
    f'"><img src=x onerror="{RUN}">'
    f"javascript:{RUN} "
    f"</style></title></svg></textarea><script>{RUN}</script>"
    f"' onmouseover='{RUN}' <svg onload={RUN}> "
    "{{ 7 * 7 }}{% if %}{# -- #} ]]> <!-- --> &lt;b&gt; $\\frac{1}{0}$ ‹unknown› "
    "left\u202egnp.exe\u2066 nul\x00 bell\x07 escape\x1b[31m half\ud800 中文"
)


def real(trial: Trial) -> Report:
    """Some metrics by all criteria on the small world, whose instances are rows of a table."""
    judgement = judge(trial, METRICS)
    rows, values = [], {}
    for key, outcome in judgement.outcomes.items():
        if isinstance(outcome, Inapplicable):
            rows.append(ReportRow(*key, None, None, None, None, "not applicable", outcome.reason))
            continue
        numbers = outcome.mean, outcome.low, outcome.high, outcome.chance
        rows.append(ReportRow(*key, *numbers, outcome.verdict, ""))
        values[key] = outcome.values.tolist()
    cases = trial.cases.take(range(2)).inputs
    model, train = trial.workspace.classifier, trial.workspace.train
    strips = {name: drawn_of(Explainer(model, train, name).explain(cases, k=3), {}) for name in METRICS}
    examples = [
        Example(strips[METRICS[0]][i].case, i == 0, {name: strips[name][i].precedents for name in METRICS})
        for i in range(2)
    ]
    norms = trial.scores(metric("dot_grad")).abs().mean(dim=0)
    return Report(
        title="The small world",
        verdict=["Believe cos_grad.", "It passed."],
        rows=rows,
        values=values,
        norms={"gradient": (norms.tolist(), norms[:5].tolist())},
        hubs=[Hub(name, i, 0.3 - 0.1 * i, strips[name][0].precedents[i]) for name in METRICS for i in range(2)],
        agreement={"overlap at 3": {(one, other): 0.5 for one in METRICS for other in METRICS}},
        examples=examples,
        label_agreement=dict.fromkeys(METRICS, 0.9),
        duplicates=[("0", "#4")],
        costs={name: 0.1 * i for i, name in enumerate(METRICS)},
        facts={"cases": "12"},
        command="precedents audit run",
        null=0.2,
        better={"model_randomization": "zero"},
        meaning=MEANING,
    )


def hostile(of: Report, bad: str = HOSTILE) -> Report:
    """The same numbers under names that are markup, scripts, mathematics and control characters."""
    named = {row.metric: f"{bad} {row.metric}" for row in of.rows}
    cells = [Cell(bad, bad, False), Cell(bad, {bad: bad, "x": 1.0}, True), Cell(bad, np.eye(3), False)]
    strips = dict.fromkeys(named.values(), cells)
    return replace(
        of,
        title=bad,
        verdict=[bad, bad],
        rows=[
            replace(row, metric=named[row.metric], criterion=f"{row.criterion}{bad}", reason=bad)
            for row in of.rows
        ],
        values={(named[metric], f"{law}{bad}"): found for (metric, law), found in of.values.items()},
        norms=dict.fromkeys([bad], *of.norms.values()),
        hubs=[replace(hub, metric=named[hub.metric], cell=cells[i % 3]) for i, hub in enumerate(of.hubs)],
        agreement={bad: {(named[one], named[other]): 0.5 for one in METRICS for other in METRICS}},
        examples=[Example(cell, right, strips) for cell in cells for right in (True, False)],
        label_agreement={named[name]: v for name, v in of.label_agreement.items()},
        costs={named[name]: v for name, v in of.costs.items()},
        facts={bad: bad},
        command=bad,
        better={f"{criterion}{bad}": best for criterion, best in of.better.items()},
        meaning={f"{criterion}{bad}": f"{said} {bad}" for criterion, said in of.meaning.items()},
    )


def large() -> Report:
    """Eighteen metrics by eight criteria over 200 cases, four examples, photographs of random dots."""
    random = np.random.default_rng(0)
    metrics = [f"{similarity}_{i}" for similarity in ("dot", "cos", "l2") for i in range(6)]
    laws = ["model_randomization", "model_randomization(label=shared)", *(f"rate_{i}(k=10)" for i in range(6))]
    values = {(m, law): random.uniform(-1, 1, 200).tolist() for m in metrics for law in laws[:2]}
    values |= {(m, law): random.integers(0, 2, 200).tolist() for m in metrics for law in laws[2:]}
    means = {key: float(np.mean(found)) for key, found in values.items()}
    photographs = random.random((60, 224, 224, 3))
    cells = [Cell(f"#{i} class\n+0.123", photograph, i % 3 > 0) for i, photograph in enumerate(photographs)]

    def drawn(count: int) -> list[Cell]:
        return [cells[i] for i in random.choice(len(cells), count, replace=False)]

    rows = [
        ReportRow(
            *key, mean, mean - 0.05, mean + 0.05, 0.1, ("passed", "weak", "failed")[i % 3], "reason " * 10
        )
        for i, (key, mean) in enumerate(means.items())
    ]
    rows[40:] = [
        ReportRow(
            row.metric, row.criterion, None, None, None, None, "not applicable", "It has no hidden layer."
        )
        if row.metric.endswith("5")
        else row
        for row in rows[40:]
    ]

    return Report(
        title="Everything",
        verdict=["Believe none of it."],
        rows=rows,
        values=values,
        norms={m: (random.lognormal(size=5000).tolist(), random.lognormal(size=200).tolist()) for m in metrics},
        hubs=[Hub(m, i, 0.1, cell) for m in metrics for i, cell in enumerate(drawn(3))],
        agreement={
            measure: {(one, other): random.uniform(-1, 1) for one in metrics for other in metrics}
            for measure in ("overlap at 10", "rank correlation")
        },
        examples=[Example(drawn(1)[0], i < 2, {m: drawn(3) for m in metrics}) for i in range(4)],
        label_agreement={m: random.random() for m in metrics},
        duplicates=[(str(i), f"#{2 * i}") for i in range(100)],
        costs={m: 10.0**i for i, m in enumerate(metrics)},
        facts={f"fact {i}": "value" for i in range(20)},
        command="precedents audit " + "run " * 40,
        null=0.1,
    )

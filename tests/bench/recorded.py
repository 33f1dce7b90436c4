"""A small folder of records, made by rule: the numbers mean nothing, their form is that of real ones."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from precedents.bench.published import published
from precedents.names import FORMS
from precedents.views.shown import as_png

SETTINGS = ("mnist/cnn", "vehicle/logreg", "digits/logreg")
REPEATS = 3
SHARED = "model_randomization(label=shared)"
RATES = ("identical_class", "identical_class(k=10)", "identical_subclass", "identical_subclass(k=10)")
CRITERIA = ("model_randomization", *RATES)
NULLS = {"null over training instances": 0.03, "null over cases": 0.0877}
CODE = "fisher(kind=mean_gradient)"
DAMPINGS = ("1e-06", "0.01", "1.0")
HOSTILE = "<script>alert('label')</script> | **x** `y`"


def header(setting: str, **more: Any) -> dict[str, Any]:
    return {
        "format": 1,
        "setting": setting,
        "protocol": {"train": 100, "cases": 50, "epochs": 3},
        "data": "0123abcd",
        "note": "made by rule",
        **more,
    }


def record(repeat: int, piece: list[str], value: Any) -> dict[str, Any]:
    return {"repeat": repeat, "piece": piece, "value": value}


def outcome(repeat: int, metric: str, criterion: str, mean: float, count: int = 500) -> dict[str, Any]:
    least = -1 if criterion.startswith("model_randomization") else 0
    value: dict[str, Any] = {"mean": max(least, min(mean, 1.0)), "count": count, "chance": 0.1}
    if criterion.startswith("model_randomization"):
        value |= {"chance": 0.0, "nulls": NULLS}
    return record(repeat, ["outcome", metric, criterion], value)


def quantiles(middle: float, width: float) -> list[float]:
    return [round(middle + width * (i - 10) / 10, 4) for i in range(21)]


def seen(kind: str, i: int) -> dict[str, Any]:
    if kind == "mnist/cnn":
        return {"png": as_png(np.eye(8) * ((i % 3) + 1) / 3).partition(",")[2]}
    if kind == "digits/logreg":
        return {"text": f"{HOSTILE} {i}"}
    return {"table": {"length": i / 3, HOSTILE: "red"}}


def lines(setting: str) -> list[dict[str, Any]]:
    theirs = {(c, m): cell for (c, s, m), cell in published().items() if s == setting}
    metrics = [m for m in FORMS if not theirs or ("identical_class", m) in theirs]
    made = [header(setting)]
    for repeat in range(REPEATS):
        wobble = 0.004 * (repeat - 1)
        for model in ("trained", "merged"):
            value = {"train accuracy": 0.99, "dev accuracy": 0.96, "test accuracy": 0.95 + wobble}
            made.append(
                record(
                    repeat,
                    ["model", model],
                    value | {"epoch": 7, "parameters": 11930, "train": 100, "cases": 50},
                )
            )
        for i, metric in enumerate(metrics):
            for criterion in CRITERIA:
                mean = theirs[criterion, metric].mean if theirs else 0.04 * i
                if "if" in metric.split("_"):
                    mean += 0.2  # what a variant explains
                made.append(outcome(repeat, metric, criterion, mean + wobble))
            made.append(outcome(repeat, metric, SHARED, 0.3 + wobble))
            made.append(outcome(repeat, metric, "identical_instance", 0.9 + wobble))
            made.append(
                record(repeat, ["hubs", metric], [[i, 40 - 7 * i, HOSTILE, 0.5, 1.2, 99.0] for i in range(5)])
            )
            made.append(record(repeat, ["stability", metric], {"overlap": 0.1 + 0.04 * i, "correlation": 0.5}))
        for similarity in ("dot", "cosine", "l2"):
            short = {"cosine": "cos"}.get(similarity, similarity)
            for criterion in CRITERIA:
                there = theirs.get((criterion, f"{short}_if"))
                for j, damping in enumerate(DAMPINGS):
                    form = f"{similarity}:gradient/hessian(damping={damping})"
                    made.append(outcome(repeat, form, criterion, (there.mean if there else 0.5) + 0.1 * j + wobble))
                made.append(outcome(repeat, f"{similarity}:gradient/{CODE}", criterion, 0.25 + wobble))
        for criterion in RATES:
            made.append(outcome(repeat, "cosine:residual", criterion, 0.11 + wobble))
        for kernel, name in (("gradient", "dot_grad"), ("gradient/hessian", "dot_if")):
            value = {"all": quantiles(-3, 2), "chosen": {name: quantiles(0, 0.5)}}
            made.append(record(repeat, ["norms", kernel], value))
        for model in ("trained", "merged"):
            spread = {
                pair: {"residual": quantiles(m, 0.2), "gradient": quantiles(m - 0.1, 0.2)}
                for pair, m in (("same", 0.7), ("other", -0.3))
            }
            made.append(record(repeat, ["residuals", model], spread))
    made.append(
        record(
            0,
            ["umap"],
            {
                "xy": [[i % 7, i % 5] for i in range(30)],
                "subclass": [f"class {i % 4}" for i in range(30)],
                "superclass": [f"group {i % 2}" for i in range(30)],
            },
        )
    )
    cases = [
        {
            "case": i,
            "predicted": "3" if i else HOSTILE,
            "truth": "3",
            "shown": seen(setting, i),
            "by": {
                metric: [
                    {"index": j, "label": "3" if j else HOSTILE, "score": 0.5, "shown": seen(setting, j)}
                    for j in range(3)
                ]
                for metric in metrics[:4]
            },
        }
        for i in range(2)
    ]
    made.append(record(0, ["gallery"], {"cases": cases}))
    return made


def write(folder: Path, settings: tuple[str, ...] = SETTINGS) -> Path:
    """Fills a folder with records, and with costs."""
    folder.mkdir(parents=True, exist_ok=True)
    for setting in settings:
        written(folder, setting, lines(setting))
    costs = [
        {"setting": setting, "repeat": 0, "metric": metric, "seconds": 0.01 * 2**i, "what": "all criteria"}
        for setting in settings
        for i, metric in enumerate(FORMS)
    ]
    (folder / "costs.jsonl").write_text("".join(json.dumps(each) + "\n" for each in costs))
    return folder


def written(folder: Path, setting: str, made: list[dict[str, Any]]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{setting.replace('/', '-')}.jsonl"
    file.write_text("".join(json.dumps(each) + "\n" for each in made))
    return file

"""A small folder of records, made by rule: the numbers mean nothing, their form is that of real ones."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from precedents.metrics.names import FORMS
from precedents.reproduction.published import published
from precedents.views.instance import as_png

SETTINGS = ("mnist/cnn", "vehicle/logreg", "digits/logreg")
REPEATS = 3
SHARED = "model_randomization(label=shared)"
RATES = ("identical_class", "identical_class(k=10)", "identical_subclass", "identical_subclass(k=10)")
CRITERIA = ("model_randomization", *RATES)
NULLS = {"null over training instances": 0.03, "null over cases": 0.0877}
CODE = "fisher(kind=published, damping=1e-10)"
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
    """The records of a setting: its header and every kind of piece."""
    theirs = {(c, m): cell.mean for (c, s, m), cell in published().items() if s == setting}
    metrics = [m for m in FORMS if not theirs or ("identical_class", m) in theirs]
    made = [header(setting)]
    for repeat in range(REPEATS):
        wobble = 0.004 * (repeat - 1)
        made += outcomes(repeat, wobble, metrics, theirs)
        made += variants(repeat, wobble, theirs)
        made += analyses(repeat, wobble, metrics)
    return [*made, record(0, ["umap"], UMAP), record(0, ["gallery"], {"cases": cases(setting, metrics)})]


def outcomes(repeat: int, wobble: float, metrics: list[str], theirs: dict) -> Iterator[dict[str, Any]]:
    """Ours as published, but for IF, RIF and l2_if, which are 0.2 above."""
    for i, metric in enumerate(metrics):
        off = 0.2 if metric.endswith("_if") else 0.0
        for criterion in CRITERIA:
            yield outcome(repeat, metric, criterion, theirs.get((criterion, metric), 0.04 * i) + off + wobble)
        yield outcome(repeat, metric, SHARED, 0.3 + wobble)
        yield outcome(repeat, metric, "identical_instance", 0.9 + wobble)


def variants(repeat: int, wobble: float, theirs: dict) -> Iterator[dict[str, Any]]:
    """The smallest damping gives the published values; the published code's Fisher matrix always 0.25."""
    for similarity, metric in (("dot", "dot_if"), ("cosine", "cos_if"), ("l2", "l2_if")):
        for criterion in CRITERIA:
            for j, damping in enumerate(DAMPINGS):
                form = f"{similarity}:gradient/hessian(damping={damping})"
                yield outcome(repeat, form, criterion, theirs.get((criterion, metric), 0.5) + 0.1 * j + wobble)
            yield outcome(repeat, f"{similarity}:gradient/{CODE}", criterion, 0.25 + wobble)
    for criterion in RATES:
        yield outcome(repeat, "cosine:residual", criterion, 0.11 + wobble)


def analyses(repeat: int, wobble: float, metrics: list[str]) -> Iterator[dict[str, Any]]:
    for model in ("trained", "merged"):
        accuracies = {"train accuracy": 0.99, "dev accuracy": 0.96, "test accuracy": 0.95 + wobble}
        sizes = {"epoch": 7, "parameters": 11930, "train": 100, "cases": 50}
        yield record(repeat, ["model", model], accuracies | sizes)
        pairs = {
            pair: {"residual": quantiles(m, 0.2), "gradient": quantiles(m - 0.1, 0.2)}
            for pair, m in (("same", 0.7), ("other", -0.3))
        }
        yield record(repeat, ["residuals", model], pairs)
    for i, metric in enumerate(metrics):
        often = [[j, 12 - 2 * j, HOSTILE, 0.5, 1.2, 99.0] for j in range(5)]
        yield record(repeat, ["hubs", metric], often)
        yield record(repeat, ["stability", metric], {"overlap": 0.1 + 0.04 * i, "correlation": 0.5})
    for kernel, name in (("gradient", "dot_grad"), ("gradient/hessian", "dot_if")):
        value = {"all": quantiles(-3, 2), "chosen": {name: quantiles(0, 0.5)}}
        yield record(repeat, ["norms", kernel], value)


UMAP = {
    "xy": [[i % 7 + 0.1 * i, i % 5] for i in range(30)],
    "subclass": [f"class {i % 4}" for i in range(30)],
    "superclass": [f"group {i % 2}" for i in range(30)],
}


def cases(setting: str, metrics: list[str]) -> list[dict[str, Any]]:
    """A wrong prediction and a right one."""
    offered = [
        {"index": j, "label": "3" if j else HOSTILE, "score": 0.5, "shown": seen(setting, j)} for j in range(3)
    ]
    return [
        {
            "case": i,
            "predicted": "3" if i else HOSTILE,
            "truth": "3",
            "shown": seen(setting, i),
            "by": dict.fromkeys(metrics[:4], offered),
        }
        for i in range(2)
    ]


def write(folder: Path, settings: tuple[str, ...] = SETTINGS) -> Path:
    """Fills a folder with records, and with costs."""
    folder.mkdir(parents=True, exist_ok=True)
    for setting in settings:
        written(folder, setting, lines(setting))
    costs = [
        {"setting": setting, "repeat": 0, "piece": ["outcome", metric, CRITERIA[1]], "seconds": 0.01 * 2**i}
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

"""The numbers that the paper prints in its five tables, by criterion, setting and metric."""

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import final

from precedents.metrics.names import ALIASES

CRITERIA: Mapping[str, str] = {  # the tables, and the criterion that each is of
    "randomization": "model_randomization",
    "identical_class": "identical_class",
    "identical_class_top10": "identical_class(k=10)",
    "identical_subclass": "identical_subclass",
    "identical_subclass_top10": "identical_subclass(k=10)",
}
NAMES: Mapping[str, str] = {
    "l2_IF": "l2_if",
    "l2_FK": "l2_fisher",
    "cos_FK": "cos_fisher",
    "l2_GD": "l2_grad",
    **{alias.upper(): name for alias, name in ALIASES.items()},
}


@final
@dataclass(frozen=True)
class PublishedValue:
    """A mean and a standard deviation over ten repeats, as printed: two digits each."""

    mean: float
    std: float


@dataclass(frozen=True)
class PublishedModel:
    """What stands above a column of a table."""

    parameters: str
    accuracy: PublishedValue


def published() -> dict[tuple[str, str, str], PublishedValue]:
    """The cells by criterion, setting and metric, in the order of the tables."""
    return {
        (CRITERIA[row["test"]], _setting(row), NAMES.get(row["metric"], row["metric"])): PublishedValue(
            float(row["mean"]), float(row["std"])
        )
        for row in _rows("published.csv")
    }


def is_rate(criterion: str) -> bool:
    """Whether its numbers are rates of success; those of the randomization are correlations."""
    return not criterion.startswith("model_randomization")


def without_spread() -> set[tuple[str, str]]:
    """Columns, by criterion and setting, in which every printed standard deviation is 0.00.

    Ten repeats cannot have such rates: they differ by more when only the cases are drawn anew.
    """
    spreads: dict[tuple[str, str], float] = {}
    for (criterion, setting, _), cell in published().items():
        spreads[criterion, setting] = max(spreads.get((criterion, setting), 0.0), cell.std)
    return {column for column, largest in spreads.items() if largest == 0}


def published_models() -> dict[tuple[str, str], PublishedModel]:
    """The models by criterion and setting."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for row in _rows("published_models.csv"):
        found.setdefault((CRITERIA[row["test"]], _setting(row)), {})[row["what"]] = row["value"]
    return {key: PublishedModel(each["parameter"], _spread(each["accuracy"])) for key, each in found.items()}


def _rows(name: str) -> Iterator[dict[str, str]]:
    text = files("precedents.reproduction").joinpath(name).read_text("utf-8")
    return csv.DictReader(text.splitlines())


def _setting(row: Mapping[str, str]) -> str:
    return f"{row['dataset']}/{row['model']}"


def _spread(text: str) -> PublishedValue:
    mean, std = re.split(r"\s*±\s*", text)
    return PublishedValue(float(mean), float(std))

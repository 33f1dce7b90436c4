"""Names that the shell completes and the listings show, found without importing what they name."""

from collections.abc import Iterable, Mapping
from typing import Any

from precedents.criteria import CRITERIA
from precedents.metrics.features import FEATURES
from precedents.metrics.names import ALIASES, FORMS
from precedents.metrics.preconditioners import PRECONDITIONERS
from precedents.metrics.similarities import SIMILARITIES
from precedents.registry import Registry, listed
from precedents.runtime.engines import ENGINES
from precedents.zoo.architectures import ARCHITECTURES
from precedents.zoo.datasets import DATASETS

PARTS: Mapping[str, Registry[Any]] = {
    "similarity": SIMILARITIES,
    "features": FEATURES,
    "preconditioner": PRECONDITIONERS,
}


def items(texts: Iterable[str] | None) -> list[str] | None:
    """The parts of texts such as `gc,identical_class(k=10, demand=0.9)`; commas within brackets stay."""
    return None if texts is None else [part for text in texts for part in listed(text)]


def metric_items(texts: Iterable[str] | None) -> list[str] | None:
    """The metrics of texts such as `gc,cos_x`, with names for the paper's abbreviations."""
    found = items(texts)
    return None if found is None else [ALIASES.get(name.lower(), name) for name in found]


def metric_names(incomplete: str) -> list[str]:
    """What the shell offers to complete a list of metrics."""
    return _completed(incomplete, [*FORMS, *ALIASES])


def criterion_names(incomplete: str) -> list[str]:
    """What the shell offers to complete a list of criteria."""
    return _completed(incomplete, CRITERIA.names())


def dataset_names(incomplete: str) -> list[str]:
    """What the shell offers to complete the name of a data set."""
    return _completed(incomplete, DATASETS.names())


def architecture_names(incomplete: str) -> list[str]:
    """What the shell offers to complete the name of an architecture."""
    return _completed(incomplete, ARCHITECTURES.names())


def engine_names(incomplete: str) -> list[str]:
    """What the shell offers to complete the name of an engine."""
    return _completed(incomplete, ENGINES.names())


def _completed(incomplete: str, names: Iterable[str]) -> list[str]:
    """Names that go on from the last comma."""
    before, comma, begun = incomplete.rpartition(",")
    return [before + comma + name for name in names if name.startswith(begun)]

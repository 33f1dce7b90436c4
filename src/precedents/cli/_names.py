"""Names that the shell completes and the listings show, found without importing what they name."""

from collections.abc import Iterable, Mapping

from precedents import criteria
from precedents.metrics import features, preconditioners, similarities
from precedents.metrics.names import ALIASES, FORMS
from precedents.registry import Registry, listed
from precedents.runtime import engines
from precedents.zoo import architectures, datasets

CRITERIA: Registry[object] = Registry("criterion", criteria)
DATASETS: Registry[object] = Registry("data set", datasets)
ARCHITECTURES: Registry[object] = Registry("model", architectures)
ENGINES: Registry[object] = Registry("engine", engines)
PARTS: Mapping[str, Registry[object]] = {
    "similarity": Registry("similarity", similarities),
    "features": Registry("feature map", features),
    "preconditioner": Registry("preconditioner", preconditioners),
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

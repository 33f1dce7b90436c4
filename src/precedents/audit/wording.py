"""Metrics in words, for who has not read the paper: a name, and one sentence of what is compared."""

from collections.abc import Mapping
from sys import modules
from typing import Any

from precedents.errors import PrecedentsError
from precedents.metrics.metric import Metric
from precedents.metrics.names import DEFAULT, TITLES
from precedents.metrics.paper import metric as metric_of
from precedents.metrics.paper import name_of
from precedents.metrics.preconditioners.identity import identity
from precedents.registry import written

UNITS = (("s", 1), ("min", 60), ("h", 3600))


def meaning(metric: str | Metric) -> str:
    """What a metric compares, in a sentence without its full stop.

    Of a metric that is not known here, as in an audit from elsewhere, it is empty.

    >>> meaning("cos_grad")
    'Grad-Cos: the angle between the loss gradients'
    """
    said = _compared(metric)
    return said[:1].upper() + said[1:]


def _compared(metric: str | Metric) -> str:
    """The same within a sentence: each part by the PHRASE of its file, or else by its name."""
    try:
        form = metric_of(metric)
    except PrecedentsError:
        return ""
    how, what, matrix = form.similarity, form.features, form.preconditioner
    said = f"{_phrase(how, f'{written(how)} of')} {_phrase(what, written(what).replace('_', ' '))}"
    if matrix != identity:
        name, _, _ = written(matrix).partition("(")
        said += f" {_phrase(matrix, f'after weighting by {name}')}"
    title = TITLES.get(name_of(form))
    return f"{title}: {said}" if title else said


def _phrase(part: Any, otherwise: str) -> str:
    return str(getattr(modules.get(getattr(part, "__module__", "")), "PHRASE", otherwise))


def recommended(best: str | None, costs: Mapping[str, float], *, roughly: bool = False) -> list[str]:
    """What the recommended metric compares, and what it costs beside the default, in sentences.

    >>> recommended("cos_x", {"cos_x": 0.01, "cos_grad": 90}, roughly=True)[1]
    'Explaining one case by cos_x took less than a second here, and by cos_grad, the default, 90 s.'
    """
    says = [f"{best} is {said}."] if best is not None and (said := _compared(best)) else []
    return [*says, *price(best, costs, roughly=roughly)]


def rough(seconds: float) -> str:
    """Seconds in a narrow column, with the digits that they would have tomorrow.

    >>> rough(0.02), rough(1.2), rough(600), rough(20000)
    ('<1 s', '1.2 s', '10 min', '5.6 h')
    """
    if seconds < 1:
        return "<1 s"
    unit, size = next((each for each in UNITS if seconds < 100 * each[1]), UNITS[-1])
    return f"{seconds / size:.2g} {unit}"


def in_words(seconds: float) -> str:
    """Seconds as they are told in a sentence."""
    return "less than a second" if seconds < 1 else rough(seconds)


def price(best: str | None, costs: Mapping[str, float], *, roughly: bool = False) -> list[str]:
    """What explaining a case by the recommended metric took, beside the default, where that is known."""
    if best is None or best not in costs:
        return []
    told = in_words if roughly else "{:.2g} s".format
    own = f"Explaining one case by {best} took {told(costs[best])}"
    if best == DEFAULT or DEFAULT not in costs:
        return [f"{own} here."]
    return [f"{own} here, and by {DEFAULT}, the default, {told(costs[DEFAULT])}."]

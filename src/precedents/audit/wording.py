"""Metrics in words, for who has not read the paper: a name, and one sentence of what is compared."""

from collections.abc import Mapping

from precedents.errors import PrecedentsError
from precedents.metrics.metric import Metric
from precedents.metrics.paper import metric as metric_of
from precedents.metrics.paper import name_of
from precedents.registry import Call

DEFAULT = "cos_grad"  # the metric of an Explainer that is told none
TITLES = {
    "cos_grad": "Grad-Cos",
    "dot_grad": "Grad-Dot",
    "cos_if": "RIF",
    "dot_if": "IF",
    "dot_fisher": "Fisher kernel",
}
MEASURES = {"cosine": "the angle between", "dot": "the inner product of", "l2": "the distance between"}
COMPARED = {
    "gradient": "the loss gradients",
    "inputs": "the inputs themselves, whatever the model",
    "last_hidden": "what the last layer receives",
    "all_hidden": "what all hidden layers give",
    "residual": "the errors of the outputs",
}
WEIGHED = {"hessian": "after influence-function weighting", "fisher": "after weighting by the Fisher matrix"}


def meaning(metric: str | Metric) -> str:
    """What a metric compares, in a sentence.

    Of a metric that is not known here, as in an audit from elsewhere, it is empty.

    >>> meaning("cos_grad")
    'Grad-Cos: the angle between the loss gradients'
    """
    try:
        form = metric_of(metric)
    except PrecedentsError:
        return ""
    similarity, _, rest = str(form).partition(":")
    features, _, matrix = rest.partition("/")
    how, what, weighed = (_first(each) for each in (similarity, features, matrix))
    said = f"{MEASURES.get(how, f'{how} of')} {COMPARED.get(what, what.replace('_', ' '))}"
    said += f" {WEIGHED.get(weighed, f'after weighting by {weighed}')}" if weighed else ""
    title = TITLES.get(name_of(form))
    return f"{title}: {said}" if title else said[:1].upper() + said[1:]


def _first(text: str) -> str:
    """`hessian(damping=0.1)` as `hessian`."""
    return (Call.read(text) or Call(text)).name if text else ""


def price(best: str | None, costs: Mapping[str, float]) -> list[str]:
    """What explaining a case by the recommended metric took, beside the default, where that is known."""
    if best is None or best not in costs:
        return []
    own = f"Explaining one case by {best} took {costs[best]:.2g} s"
    if best == DEFAULT or DEFAULT not in costs:
        return [f"{own} here."]
    return [f"{own} here, and by {DEFAULT}, the default, {costs[DEFAULT]:.2g} s."]

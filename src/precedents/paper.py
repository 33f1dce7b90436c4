"""The eighteen metrics of the paper by name, with its abbreviations as aliases."""

from collections.abc import Mapping

from precedents.errors import InputError, UnknownNameError
from precedents.features.all_hidden import all_hidden
from precedents.features.gradient import gradient
from precedents.features.inputs import inputs
from precedents.features.last_hidden import last_hidden
from precedents.metric import Metric
from precedents.preconditioners.fisher import InverseFisher
from precedents.preconditioners.hessian import InverseHessian
from precedents.similarities.cosine import cosine
from precedents.similarities.dot import dot
from precedents.similarities.l2 import l2

METRICS: Mapping[str, Metric] = {
    "l2_x": Metric(inputs, l2),
    "l2_last": Metric(last_hidden, l2),
    "l2_all": Metric(all_hidden, l2),
    "cos_x": Metric(inputs, cosine),
    "cos_last": Metric(last_hidden, cosine),
    "cos_all": Metric(all_hidden, cosine),
    "dot_x": Metric(inputs, dot),
    "dot_last": Metric(last_hidden, dot),
    "dot_all": Metric(all_hidden, dot),
    "dot_if": Metric(gradient, dot, InverseHessian(negative="keep")),  # influence function
    "cos_if": Metric(gradient, cosine, InverseHessian(negative="drop")),  # relative influence function
    "l2_if": Metric(gradient, l2, InverseHessian(negative="drop")),
    "dot_fisher": Metric(gradient, dot, InverseFisher()),  # Fisher kernel
    "cos_fisher": Metric(gradient, cosine, InverseFisher()),
    "l2_fisher": Metric(gradient, l2, InverseFisher()),
    "dot_grad": Metric(gradient, dot),
    "cos_grad": Metric(gradient, cosine),
    "l2_grad": Metric(gradient, l2),
}

ALIASES: Mapping[str, str] = {
    "if": "dot_if",
    "rif": "cos_if",
    "fk": "dot_fisher",
    "gd": "dot_grad",
    "gc": "cos_grad",
}


def metric(wanted: str | Metric) -> Metric:
    """A metric by its name, its abbreviation in the paper (in any case), or its textual form."""
    if isinstance(wanted, Metric):
        return wanted
    if not isinstance(wanted, str):
        raise InputError(f"The metric is {wanted!r}. Pass a name such as 'cos_grad', or a Metric.")
    if ":" in wanted:
        return Metric.read(wanted)
    name = wanted.lower()
    if ALIASES.get(name, name) not in METRICS:
        raise UnknownNameError("metric", wanted, [*METRICS, *ALIASES])
    return METRICS[ALIASES.get(name, name)]


def name_of(wanted: Metric) -> str:
    """The paper's name of a metric, else its textual form."""
    return next((name for name, known in METRICS.items() if known == wanted), str(wanted))

"""The eighteen metrics of the paper by name, with its abbreviations as aliases."""

from collections.abc import Mapping

from precedents.errors import InputError, UnknownNameError
from precedents.metrics.metric import Metric
from precedents.metrics.names import ALIASES, FORMS

METRICS: Mapping[str, Metric] = {name: Metric.read(form) for name, form in FORMS.items()}
_NAMES = {str(known): name for name, known in METRICS.items()}


def metric(wanted: str | Metric) -> Metric:
    """The `wanted` metric by its name, its abbreviation in the paper (in any case), or its textual form."""
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
    known = next((name for name, metric in METRICS.items() if metric is wanted), None)
    return known or _NAMES.get(str(wanted), str(wanted))

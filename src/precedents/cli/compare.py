"""precedents compare: two models or two metrics on the same cases."""

from pathlib import Path
from typing import Annotated

from typer import Option

from precedents.cli._jobs import JobRequest, JobValue, Some, job
from precedents.cli._names import metric_names
from precedents.cli._options import OneMetric
from precedents.errors import InputError


@job
def compare(
    asked: JobRequest,
    other: Annotated[
        Path | None,
        Option(help="The run folder of another model, on the same training set.", show_default=False),
    ] = None,
    metric: OneMetric = "gc",
    other_metric: Annotated[
        str | None,
        Option(help="The metric of the other explainer.", show_default="the same", autocompletion=metric_names),
    ] = None,
    k: Annotated[
        int | None, Option("-k", help="How many precedents of a case are compared.", show_default="10")
    ] = None,
    cases: Some = None,
) -> JobValue:
    """Compares two models, or two metrics, on the test set: where predictions and precedents differ.

    Examples:
      $ precedents compare runs/digits-logistic_regression --other-metric cos_x
      $ precedents compare runs/digits-logistic_regression --other runs/digits-logistic_regression --cases 9
      $ precedents compare runs/digits-logistic_regression --other-metric cos_x --csv compare.csv --force
      $ precedents compare --target my_model:factory --other-metric cos_last

    """
    from precedents.explain.jobs.compare import compare as compared

    if other is None and other_metric is None:
        raise InputError("There is nothing to compare with. Name --other, another run, or --other-metric.")
    beside = None if other is None else asked.opened(other, None)
    cases_asked = asked.cases(cases)
    return compared(asked.by(metric), asked.by(other_metric or metric, beside), cases_asked, k)

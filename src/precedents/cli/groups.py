"""precedents groups: the precedents of many cases, summed up."""

from typing import Annotated

from typer import Option

from precedents.cli._jobs import JobRequest, JobValue, Some, job
from precedents.cli._options import OneMetric


@job
def groups(
    asked: JobRequest,
    by: Annotated[str, Option(help="prediction, truth, or error: what was taken for what.")] = "error",
    metric: OneMetric = "gc",
    k: Annotated[int, Option("-k", help="How many first precedents of a case count.")] = 5,
    cases: Some = None,
) -> JobValue:
    """Sums up the precedents of the test set in groups: their classes, which there are most, what they share.

    Examples:
      $ precedents groups runs/digits-logistic_regression
      $ precedents groups runs/digits-logistic_regression --by prediction --cases 50 -k 3
      $ precedents groups runs/digits-logistic_regression --csv groups.csv --html groups.html --force
      $ precedents groups runs/digits-logistic_regression --json
      $ precedents groups --target my_model:factory --by truth

    """
    return asked.by(metric).groups(asked.cases(cases), by, k)

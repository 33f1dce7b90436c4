"""precedents suspects: training labels that may be wrong."""

from typing import Annotated

from typer import Option

from precedents.cli._jobs import JobRequest, JobValue, job
from precedents.cli._options import OneMetric


@job
def suspects(
    asked: JobRequest,
    metric: OneMetric = "gc",
    k: Annotated[int, Option("-k", help="How many labels.")] = 20,
    accuse: Annotated[bool, Option(help="Let wrong predictions of the test set accuse.")] = True,
) -> JobValue:
    """Finds training labels that may be wrong, most suspicious first, each with the reasons against it.

    Examples:
      $ precedents suspects runs/digits-logistic_regression
      $ precedents suspects runs/digits-logistic_regression -k 5 --no-accuse
      $ precedents suspects runs/digits-logistic_regression --csv suspects.csv --html suspects.html --force
      $ precedents suspects runs/digits-logistic_regression --json
      $ precedents suspects --target my_model:factory

    """
    train, test = asked.subject.train, asked.subject.test
    return asked.by(metric).suspects(min(k, len(train)), test if accuse else None)

"""precedents self-relevance: how relevant each training instance is to itself."""

from precedents.cli._jobs import JobRequest, JobValue, job
from precedents.cli._options import OneMetric


@job
def self_relevance(
    asked: JobRequest,
    metric: OneMetric = "gd",
) -> JobValue:
    """Lists the training instances by their relevance to themselves, the largest first.

    Examples:
      $ precedents self-relevance runs/digits-logistic_regression
      $ precedents self-relevance runs/digits-logistic_regression --csv own.csv --html own.html --force
      $ precedents self-relevance runs/digits-logistic_regression --metric fk --json
      $ precedents self-relevance --target my_model:factory

    """
    return asked.by(metric).self_relevance()

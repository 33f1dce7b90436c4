"""precedents answers: which cases a training instance is a precedent of."""

from typing import Annotated

from typer import Option

from precedents.cli._jobs import JobRequest, JobValue, Some, job, places
from precedents.cli._options import OneMetric


@job
def answers(
    asked: JobRequest,
    index: Annotated[
        list[str] | None,
        Option(
            help="The place of a training instance, or its id; may be repeated. Without it, all first ones.",
            show_default=False,
        ),
    ] = None,
    metric: OneMetric = "gc",
    k: Annotated[int, Option("-k", help="Among how many first precedents it must be.")] = 5,
    cases: Some = None,
) -> JobValue:
    """Lists the cases that training instances are precedents of, and hubs, which answer very many.

    Examples:
      $ precedents answers runs/digits-logistic_regression --index 429
      $ precedents answers runs/digits-logistic_regression --cases 50 -k 1
      $ precedents answers runs/digits-logistic_regression --index 429 --index 70 --csv answers.csv --force
      $ precedents answers runs/digits-logistic_regression --index 429 --json
      $ precedents answers --target my_model:factory --index 3

    """
    return asked.by(metric).answers(places(index), asked.cases(cases), k)

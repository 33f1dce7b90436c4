"""precedents shares: why a training instance is relevant to a case, in parts that sum to the score."""

from typing import Annotated

from typer import Option

from precedents.cli._jobs import JobRequest, JobValue, job, places
from precedents.cli._options import OneMetric


@job
def shares(
    asked: JobRequest,
    case: Annotated[str, Option(help="The place of a case in the test set, or its id.")],
    index: Annotated[
        str | None,
        Option(help="The place of a training instance, or its id.", show_default="the case's first precedent"),
    ] = None,
    metric: OneMetric = "gc",
) -> JobValue:
    """Divides the score of a case and a training instance into layers, and words, columns or regions.

    Examples:
      $ precedents shares runs/digits-logistic_regression --case 12
      $ precedents shares runs/digits-logistic_regression --case 12 --index 429 --html shares.html --force
      $ precedents shares runs/digits-logistic_regression --case 12 --csv shares.csv --force --json
      $ precedents shares --target my_model:factory --case 12

    """
    explainer, one = asked.by(metric), asked.case(case)
    named = places(None if index is None else [index])
    return explainer.explain(one, 1).shares() if named is None else explainer.shares(one, named[0])

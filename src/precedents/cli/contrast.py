"""precedents contrast: what speaks for one class, and what for another."""

from typing import Annotated

from typer import Option

from precedents.cli._jobs import JobRequest, JobValue, job, names
from precedents.cli._options import OneMetric


@job
def contrast(
    asked: JobRequest,
    case: Annotated[str, Option(help="The place of the case in the test set, or its id.")],
    one: Annotated[str, Option(help="A class, by name or number.")],
    other: Annotated[str, Option(help="Another class.")],
    metric: OneMetric = "gc",
    k: Annotated[int, Option("-k", help="How many precedents for each class.")] = 5,
) -> JobValue:
    """Shows the precedents of a case for each of two classes side by side, and what separates them.

    Examples:
      $ precedents contrast runs/digits-logistic_regression --case 12 --one 1 --other 8
      $ precedents contrast runs/digits-logistic_regression --case 12 --one 1 --other 8 -k 3 --json
      $ precedents contrast runs/digits-logistic_regression --case 12 --one 1 --other 8 --html contrast.html
      $ precedents contrast --target my_model:factory --case 0 --one 0 --other 2

    """
    explainer = asked.by(metric)
    first, second = names([one, other], explainer.classes)
    return explainer.contrast(asked.case(case), first, second, k)

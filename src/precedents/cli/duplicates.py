"""precedents duplicates: instances that are the same or nearly."""

from typing import Annotated

from typer import Option

from precedents.cli._jobs import JobRequest, JobValue, job


@job
def duplicates(
    asked: JobRequest,
    least: Annotated[
        float | None, Option(help="How alike near duplicates are, from 0 to 1.", show_default="by the data")
    ] = None,
    within: Annotated[bool, Option("--within", help="Only within the training set.")] = False,
) -> JobValue:
    """Finds instances that are the same or nearly, within the training set and between it and the test set.

    Examples:
      $ precedents duplicates runs/digits-logistic_regression
      $ precedents duplicates runs/digits-logistic_regression --within --least 0.9
      $ precedents duplicates runs/digits-logistic_regression --csv duplicates.csv --html duplicates.html
      $ precedents duplicates runs/digits-logistic_regression --json
      $ precedents duplicates --target my_model:factory

    """
    return asked.by("gc").near_duplicates(None if within else asked.subject.test, least=least)

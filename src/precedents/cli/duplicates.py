"""precedents duplicates: instances that are the same or nearly."""

from typing import Annotated

from typer import Option

from precedents.cli._jobs import Csv, Html, explainer, files, told
from precedents.cli._options import Data, Force, Json, Memory, Quiet, RunFolder, Target
from precedents.cli._output import reporting
from precedents.cli._subject import subject


def duplicates(
    run: RunFolder = None,
    target: Target = None,
    least: Annotated[
        float | None, Option(help="How alike near duplicates are, from 0 to 1.", show_default="by the data")
    ] = None,
    within: Annotated[bool, Option("--within", help="Only within the training set.")] = False,
    csv: Csv = None,
    html: Html = None,
    memory: Memory = None,
    data: Data = None,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Finds instances that are the same or nearly, within the training set and between it and the test set.

    Examples:
      $ precedents duplicates runs/digits-logistic_regression
      $ precedents duplicates runs/digits-logistic_regression --within --least 0.9
      $ precedents duplicates runs/digits-logistic_regression --csv duplicates.csv --html duplicates.html
      $ precedents duplicates runs/digits-logistic_regression --json
      $ precedents duplicates --target my_model:factory

    """
    written = files(csv, html, force)
    with reporting(quiet):
        chosen = subject(run, target, data).told(memory=memory)
        found = explainer(chosen, "gc").near_duplicates(None if within else chosen.test, least=least)
        told(found, written, as_json)

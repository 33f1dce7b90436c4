"""precedents suspects: training labels that may be wrong."""

from typing import Annotated

from typer import Option

from precedents.cli._jobs import Csv, Html, explainer, files, told
from precedents.cli._options import Data, Force, Json, Memory, OneMetric, Quiet, RunFolder, Target
from precedents.cli._output import reporting
from precedents.cli._subject import subject


def suspects(
    run: RunFolder = None,
    target: Target = None,
    metric: OneMetric = "gc",
    k: Annotated[int, Option("-k", help="How many labels.")] = 20,
    accuse: Annotated[bool, Option(help="Let wrong predictions of the test set accuse.")] = True,
    csv: Csv = None,
    html: Html = None,
    memory: Memory = None,
    data: Data = None,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Finds training labels that may be wrong, most suspicious first, each with the reasons against it.

    Examples:
      $ precedents suspects runs/digits-logistic_regression
      $ precedents suspects runs/digits-logistic_regression -k 5 --no-accuse
      $ precedents suspects runs/digits-logistic_regression --csv suspects.csv --html suspects.html --force
      $ precedents suspects runs/digits-logistic_regression --json
      $ precedents suspects --target my_model:factory

    """
    written = files(csv, html, force)
    with reporting(quiet):
        chosen = subject(run, target, data).told(memory=memory)
        found = explainer(chosen, metric).suspects(min(k, len(chosen.train)), chosen.test if accuse else None)
        told(found, written, as_json)

"""precedents groups: the precedents of many cases, summed up."""

from typing import Annotated

from typer import Option

from precedents.cli._jobs import Csv, Html, Some, explainer, files, some_cases, told
from precedents.cli._options import Data, Force, Json, Memory, OneMetric, Quiet, RunFolder, Target
from precedents.cli._output import reporting
from precedents.cli._subject import subject


def groups(
    run: RunFolder = None,
    target: Target = None,
    by: Annotated[str, Option(help="prediction, truth, or error: what was taken for what.")] = "error",
    metric: OneMetric = "gc",
    k: Annotated[int, Option("-k", help="How many first precedents of a case count.")] = 5,
    cases: Some = None,
    csv: Csv = None,
    html: Html = None,
    memory: Memory = None,
    data: Data = None,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Sums up the precedents of the test set in groups: their classes, which there are most, what they share.

    Examples:
      $ precedents groups runs/digits-logistic_regression
      $ precedents groups runs/digits-logistic_regression --by prediction --cases 50 -k 3
      $ precedents groups runs/digits-logistic_regression --csv groups.csv --html groups.html --force
      $ precedents groups runs/digits-logistic_regression --json
      $ precedents groups --target my_model:factory --by truth

    """
    written = files(csv, html, force)
    with reporting(quiet):
        chosen = subject(run, target, data).told(memory=memory)
        found = explainer(chosen, metric).groups(some_cases(chosen, cases), by, k)
        told(found, written, as_json)

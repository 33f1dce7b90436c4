"""precedents shares: why a training instance is relevant to a case, in parts that sum to the score."""

from typing import Annotated

from typer import Option

from precedents.cli._jobs import Csv, Html, explainer, files, one_case, places, told
from precedents.cli._options import Data, Force, Json, Memory, OneMetric, Quiet, RunFolder, Target
from precedents.cli._output import reporting
from precedents.cli._subject import subject


def shares(
    case: Annotated[str, Option(help="The place of a case in the test set, or its id.")],
    run: RunFolder = None,
    target: Target = None,
    index: Annotated[
        str | None,
        Option(help="The place of a training instance, or its id.", show_default="the case's first precedent"),
    ] = None,
    metric: OneMetric = "gc",
    csv: Csv = None,
    html: Html = None,
    memory: Memory = None,
    data: Data = None,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Divides the score of a case and a training instance into layers, and words, columns or regions.

    Examples:
      $ precedents shares runs/digits-logistic_regression --case 12
      $ precedents shares runs/digits-logistic_regression --case 12 --index 429 --html shares.html --force
      $ precedents shares runs/digits-logistic_regression --case 12 --csv shares.csv --force --json
      $ precedents shares --target my_model:factory --case 12

    """
    written = files(csv, html, force)
    with reporting(quiet):
        chosen = subject(run, target, data).told(memory=memory)
        asked, one = explainer(chosen, metric), one_case(chosen, case)
        named = places(None if index is None else [index])
        found = asked.explain(one, 1).shares() if named is None else asked.shares(one, named[0])
        told(found, written, as_json)

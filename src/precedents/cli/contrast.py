"""precedents contrast: what speaks for one class, and what for another."""

from typing import Annotated

from typer import Option

from precedents.cli._jobs import Csv, Html, explainer, files, names, one_case, told
from precedents.cli._options import Data, Force, Json, Memory, OneMetric, Quiet, RunFolder, Target
from precedents.cli._output import reporting
from precedents.cli._subject import subject


def contrast(
    case: Annotated[str, Option(help="The place of the case in the test set, or its id.")],
    one: Annotated[str, Option(help="A class, by name or number.")],
    other: Annotated[str, Option(help="Another class.")],
    run: RunFolder = None,
    target: Target = None,
    metric: OneMetric = "gc",
    k: Annotated[int, Option("-k", help="How many precedents for each class.")] = 5,
    csv: Csv = None,
    html: Html = None,
    memory: Memory = None,
    data: Data = None,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Shows the precedents of a case for each of two classes side by side, and what separates them.

    Examples:
      $ precedents contrast runs/digits-logistic_regression --case 12 --one 1 --other 8
      $ precedents contrast runs/digits-logistic_regression --case 12 --one 1 --other 8 -k 3 --json
      $ precedents contrast runs/digits-logistic_regression --case 12 --one 1 --other 8 --html contrast.html
      $ precedents contrast --target my_model:factory --case 0 --one 0 --other 2

    """
    written = files(csv, html, force)
    with reporting(quiet):
        chosen = subject(run, target, data).told(memory=memory)
        asked = explainer(chosen, metric)
        first, second = names([one, other], asked.classes)
        found = asked.contrast(one_case(chosen, case), first, second, k)
        told(found, written, as_json)

"""precedents answers: which cases a training instance is a precedent of."""

from typing import Annotated

from typer import Option

from precedents.cli._jobs import Csv, Html, Some, explainer, files, places, some_cases, told
from precedents.cli._options import Data, Force, Json, Memory, OneMetric, Quiet, RunFolder, Target
from precedents.cli._output import reporting
from precedents.cli._subject import subject


def answers(
    run: RunFolder = None,
    target: Target = None,
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
    csv: Csv = None,
    html: Html = None,
    memory: Memory = None,
    data: Data = None,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Lists the cases that training instances are precedents of, and hubs, which answer very many.

    Examples:
      $ precedents answers runs/digits-logistic_regression --index 429
      $ precedents answers runs/digits-logistic_regression --cases 50 -k 1
      $ precedents answers runs/digits-logistic_regression --index 429 --index 70 --csv answers.csv --force
      $ precedents answers runs/digits-logistic_regression --index 429 --json
      $ precedents answers --target my_model:factory --index 3

    """
    written = files(csv, html, force)
    with reporting(quiet):
        chosen = subject(run, target, data).told(memory=memory)
        found = explainer(chosen, metric).answers(places(index), some_cases(chosen, cases), k)
        told(found, written, as_json)

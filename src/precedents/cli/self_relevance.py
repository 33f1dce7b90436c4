"""precedents self-relevance: how relevant each training instance is to itself."""

from precedents.cli._jobs import Csv, Html, explainer, files, told
from precedents.cli._options import Data, Force, Json, Memory, OneMetric, Quiet, RunFolder, Target
from precedents.cli._output import reporting
from precedents.cli._subject import subject


def self_relevance(
    run: RunFolder = None,
    target: Target = None,
    metric: OneMetric = "gd",
    csv: Csv = None,
    html: Html = None,
    memory: Memory = None,
    data: Data = None,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Lists the training instances by their relevance to themselves, the largest first.

    Examples:
      $ precedents self-relevance runs/digits-logistic_regression
      $ precedents self-relevance runs/digits-logistic_regression --csv own.csv --html own.html --force
      $ precedents self-relevance runs/digits-logistic_regression --metric fk --json
      $ precedents self-relevance --target my_model:factory

    """
    written = files(csv, html, force)
    with reporting(quiet):
        chosen = subject(run, target, data).told(memory=memory)
        told(explainer(chosen, metric).self_relevance(), written, as_json)

"""precedents compare: two models or two metrics on the same cases."""

from pathlib import Path
from typing import Annotated

from typer import Option

from precedents.cli._jobs import Csv, Html, Some, explainer, files, some_cases, told
from precedents.cli._names import metric_names
from precedents.cli._options import Data, Force, Json, Memory, OneMetric, Quiet, RunFolder, Target
from precedents.cli._output import reporting
from precedents.cli._subject import subject
from precedents.errors import InputError


def compare(
    run: RunFolder = None,
    target: Target = None,
    other: Annotated[
        Path | None,
        Option(help="The run folder of another model, on the same training set.", show_default=False),
    ] = None,
    metric: OneMetric = "gc",
    other_metric: Annotated[
        str | None,
        Option(help="The metric of the other explainer.", show_default="the same", autocompletion=metric_names),
    ] = None,
    k: Annotated[
        int | None, Option("-k", help="How many precedents of a case are compared.", show_default="10")
    ] = None,
    cases: Some = None,
    csv: Csv = None,
    html: Html = None,
    memory: Memory = None,
    data: Data = None,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compares two models, or two metrics, on the test set: where predictions and precedents differ.

    Examples:
      $ precedents compare runs/digits-logistic_regression --other-metric cos_x
      $ precedents compare runs/digits-logistic_regression --other runs/digits-logistic_regression --cases 9
      $ precedents compare runs/digits-logistic_regression --other-metric cos_x --csv compare.csv --force
      $ precedents compare --target my_model:factory --other-metric cos_last

    """
    written = files(csv, html, force)
    with reporting(quiet):
        from precedents.explain.jobs.compare import compare as compared

        chosen = subject(run, target, data).told(memory=memory)
        if other is None and other_metric is None:
            raise InputError("There is nothing to compare with. Name --other, another run, or --other-metric.")
        beside = chosen if other is None else subject(other, None, data).told(memory=memory)
        asked = some_cases(chosen, cases)
        found = compared(explainer(chosen, metric), explainer(beside, other_metric or metric), asked, k)
        told(found, written, as_json)

"""precedents explain: the training instances most relevant to the prediction of some cases."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from precedents.cli._jobs import Csv, Files, Html, case_places, files, names
from precedents.cli._names import metric_names
from precedents.cli._options import Data, DryRun, Force, Json, Memory, Quiet, RunFolder, Target, steady
from precedents.cli._output import put, reporting, show, show_estimate, show_json
from precedents.cli._subject import subject

if TYPE_CHECKING:
    from precedents.explain.explanation import Explanation


def explain(
    case: Annotated[
        list[str],
        Option(
            help="The place of a case in the test set, or its id (a number is a place); may be repeated.",
        ),
    ],
    run: RunFolder = None,
    target: Target = None,
    metric: Annotated[
        str | None,
        Option(
            help="A metric: see `precedents metrics`.",
            autocompletion=metric_names,
            show_default="gc, or that of the index",
        ),
    ] = None,
    index: Annotated[
        Path | None,
        Option(
            metavar="FOLDER",
            help="The folder of an index to answer from, which `index build` makes.",
            callback=steady,
            show_default=False,
        ),
    ] = None,
    k: Annotated[int, Option("-k", help="How many precedents.")] = 5,
    label: Annotated[
        list[str] | None,
        Option(
            help="Explain this class, by name or number, not the prediction: one, or one for each case.",
            show_default=False,
        ),
    ] = None,
    shares: Annotated[
        bool, Option("--shares", help="Show what each first score is a sum of; on the page, what all are.")
    ] = False,
    csv: Csv = None,
    html: Html = None,
    memory: Memory = None,
    data: Data = None,
    force: Force = False,
    dry_run: DryRun = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Explains predictions: shows the training instances most relevant to each case.

    Examples:
      $ precedents explain runs/digits-logistic_regression --case 12
      $ precedents explain runs/digits-logistic_regression --case 0 --case 3 --metric rif -k 3 --html page.html
      $ precedents explain runs/digits-logistic_regression --case 12 --json
      $ precedents explain runs/digits-logistic_regression --case 12 --shares --csv explained.csv --force
      $ precedents explain runs/digits-logistic_regression --case 12 --memory "200 MB"
      $ precedents explain runs/digits-logistic_regression --case 12 --index index-of-digits
      $ precedents explain runs/digits-logistic_regression --case 12 --label 8
      $ precedents explain --target my_model:factory --case 12

    """
    written = files(csv, html, force)
    with reporting(quiet):
        from precedents.explain.explainer import Explainer

        chosen = subject(run, target, data).told(memory=memory)
        asked = case_places(chosen, case)
        told = chosen.known_to(Explainer) | ({} if metric is None else {"metric": metric})
        if index is None:
            explainer = Explainer(chosen.model, chosen.train, **{"metric": "gc"} | told)
        else:
            explainer = Explainer.load(index, chosen.model, chosen.train, **told)
        if dry_run:
            show_estimate(replace(explainer.estimate(len(asked)), disk=0), as_json)
            return
        several = label * len(asked) if label is not None and len(label) == 1 else label
        labels = None if several is None else names(several, explainer.classes)
        cases = chosen.test.selected(asked)
        explanation = explainer.explain(cases, k, labels=labels)
        explanation = replace(explanation, numbers=tuple(asked), truth=cases.labels)
        parts = [explanation.shares(i) for i in range(len(asked))] if shares else []
        keep(explanation, written, shares)
        if as_json:
            show_json(
                explanation.to_dict() | ({"shares": [part.to_dict() for part in parts]} if shares else {})
            )
        else:
            show("\n".join(map(str, [explanation, *parts])))


def keep(explanation: "Explanation", written: Files, shares: bool) -> None:
    """Writes it to the files that were asked for."""
    csv, html = written
    if csv is not None:
        put(csv, explanation.to_csv())
    if html is not None:
        put(html, explanation.to_html(shares=shares))

"""precedents index check: cases answered from an index and by a full pass, side by side."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from typer import Option

from precedents.cli._options import Data, Json, Memory, Quiet, RunFolder, Target
from precedents.cli._output import reporting, show, show_json
from precedents.cli._subject import subject
from precedents.cli.index._options import IndexPath, told


def check(
    run: RunFolder = None,
    target: Target = None,
    index: IndexPath = Path("index"),
    cases: Annotated[int, Option(min=1, help="How many cases of the test set.")] = 50,
    k: Annotated[int, Option("-k", help="How many precedents are compared.")] = 10,
    memory: Memory = None,
    data: Data = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compares the answers of an index with those of a full pass: recall, errors, rows computed again.

    Examples:
      $ precedents index check runs/digits-logistic_regression --index index-of-digits --cases 20
      $ precedents index check runs/digits-logistic_regression --index index-of-digits --cases 5 -k 3 --json

    """
    with reporting(quiet):
        from precedents.index.index import Index

        chosen = subject(run, target, data)
        opened = Index.open(index, chosen.model, chosen.train, memory=memory, **told(chosen))
        found = opened.check(chosen.test.selected(range(min(cases, len(chosen.test)))), k)
        if as_json:
            good = {"recall": found.recall, "error": found.error} if found.indexed else {}
            show_json({**good, "passes": found.passes, "sure": found.sure, **asdict(found)})
        else:
            show(str(found))

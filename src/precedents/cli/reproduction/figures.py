"""precedents reproduction figures: the paper's figures from records, and a page that shows all."""

from pathlib import Path
from typing import Annotated

from typer import Option

from precedents.cli._names import items
from precedents.cli._options import Quiet
from precedents.cli._output import reporting, show
from precedents.cli.reproduction._options import RecordsFolder, Settings, written


def figures(
    records: RecordsFolder = Path("results"),
    out: Annotated[Path, Option(metavar="FOLDER", help="Where the files go.")] = Path("figures"),
    settings: Settings = None,
    quiet: Quiet = False,
) -> None:
    """Draws the paper's figures from records as SVG, with the examples, the tables and an index.html of all.

    What is not recorded yet is left out.

    Examples:
      $ precedents reproduction figures --records results --out pages --settings digits/logreg

    """
    with reporting(quiet, "Interrupted: the files written so far are whole."):
        from precedents.reproduction.output import figure_files
        from precedents.reproduction.results import costs, read_results
        from precedents.runtime.progress import tracked

        found = read_results(records, items(settings))
        spent = [each for each in costs(records) if each.setting in {one.setting for one in found}]
        for name, text in tracked(figure_files(found, spent), "drawing"):
            written({name: text}, out)
        show(str(out / "index.html"))

"""precedents reproduction table: the paper's tables from records, ours beside the published numbers."""

from pathlib import Path
from typing import Annotated

from typer import Option

from precedents.cli._names import items
from precedents.cli._options import Quiet
from precedents.cli._output import reporting, show
from precedents.cli.reproduction._options import RecordsFolder, Settings, written


def table(
    records: RecordsFolder = Path("results"),
    out: Annotated[
        Path | None, Option(metavar="FOLDER", help="Write Markdown, CSV and HTML there.", show_default=False)
    ] = None,
    test: Annotated[
        str | None,
        Option(
            metavar="NAME",
            help="One table: randomization, identical_class, identical_class_top10, identical_subclass or "
            "identical_subclass_top10.",
            show_default="all five and the overview",
        ),
    ] = None,
    settings: Settings = None,
    quiet: Quiet = False,
) -> None:
    """Prints the paper's tables from records: ours, the published value and the difference.

    Numbers are mean ± std over the repeats that are recorded so far.

    Examples:
      $ precedents reproduction table
      $ precedents reproduction table --test identical_class --settings digits/logreg
      $ precedents reproduction table --records results --out tables

    """
    with reporting(quiet) as say:
        from precedents.reproduction.output import table_files, table_grids
        from precedents.reproduction.results import read_results

        found = read_results(records, items(settings))
        for grid in table_grids(found, test):
            show(grid)
        if out is not None:
            paths = written(table_files(found, test), out)
            say(f"Wrote {len(paths)} files into {out}")

"""precedents reproduction compare: every published number beside ours, and why they differ."""

from pathlib import Path
from typing import Annotated

from typer import Option

from precedents.cli._names import items
from precedents.cli._options import Json, Quiet
from precedents.cli._output import reporting, show, show_json
from precedents.cli.reproduction._options import RecordsFolder, Settings, written


def compare(
    records: RecordsFolder = Path("results"),
    out: Annotated[
        Path | None, Option(metavar="FOLDER", help="Write Markdown, CSV and HTML there.", show_default=False)
    ] = None,
    settings: Settings = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compares the records with the published numbers: each agrees, differs with a named cause, or is open.

    A cause is named when a recorded variant of the metric or the criterion gives the published value. With
    --out, every cell is in comparison.csv, and the tables are in comparison.md and comparison.html.

    Examples:
      $ precedents reproduction compare
      $ precedents reproduction compare --settings digits/logreg --out tables
      $ precedents reproduction compare --json

    """
    with reporting(quiet) as say:
        from precedents.reproduction.comparison import compare as compared
        from precedents.reproduction.comparison_tables import brief, sentences
        from precedents.reproduction.output import comparison_files
        from precedents.reproduction.results import read_results

        found = read_results(records, items(settings))
        comparison = compared(found)
        if as_json:
            show_json([each.record() for each in comparison.cells])
        else:
            for grid in brief(comparison):
                show(grid)
            for sentence in sentences(comparison):
                show(sentence)
        if out is not None:
            paths = written(comparison_files(comparison, found), out)
            say(f"Wrote {', '.join(path.name for path in paths)} into {out}")

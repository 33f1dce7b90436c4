"""precedents index status: how far an index is."""

from pathlib import Path

from precedents.cli._options import Json
from precedents.cli._output import reporting, show, show_json
from precedents.cli.index._options import PathAlone


def status(index: PathAlone = Path("index"), as_json: Json = False) -> None:
    """Says how far an index is, and of what; the model is not asked.

    Examples:
      $ precedents index status --index index-of-digits
      $ precedents index status --index index-of-digits --json

    """
    with reporting(True):
        from precedents.index.contents import state

        found = state(index)
        if as_json:
            show_json({"folder": str(index), **found.to_dict()})
        else:
            show(f"{index}: {found}")

"""precedents criteria: what a metric is put on trial by."""

from precedents.cli._options import Json
from precedents.cli._output import listing, show, show_json
from precedents.criteria import CRITERIA


def criteria(as_json: Json = False) -> None:
    """Lists the criteria that `precedents audit` puts the metrics through.

    Examples:
      $ precedents criteria
      $ precedents criteria --json

    """
    rows = [(name, CRITERIA.meaning(name).partition(": ")[2]) for name in CRITERIA.names()]
    if as_json:
        show_json([{"name": name, "meaning": meaning} for name, meaning in rows])
    else:
        show(listing(("criterion", "what a believable metric does"), rows))

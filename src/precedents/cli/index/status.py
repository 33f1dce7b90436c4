"""precedents index status: how far an index is."""

from pathlib import Path

from precedents.cli._options import Data, Json, RunFolder, Target
from precedents.cli._output import reporting, show, show_json
from precedents.cli._subject import CommandSubject, subject
from precedents.cli.index._options import IndexPath, given, told


def status(
    run: RunFolder = None,
    target: Target = None,
    index: IndexPath = Path("index"),
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Says how far an index is; with a run or a target, it is refused if it is of another model or data.

    Examples:
      $ precedents index status --index index-of-digits
      $ precedents index status runs/digits-logistic_regression --index index-of-digits
      $ precedents index status --index index-of-digits --json

    """
    with reporting(True):
        from precedents.index.contents import state

        found = state(index)
        if run is not None or target is not None:
            _refuse_others(index, subject(run, target, data), found.complete)
        if as_json:
            show_json({"folder": str(index), **found.to_dict()})
        else:
            show(f"{index}: {found}")


def _refuse_others(index: Path, chosen: CommandSubject, complete: bool) -> None:
    """Refuses an index of another model or other data, by what differs."""
    from precedents.index.index import Index
    from precedents.index.shards import opened, read_plans

    if complete:
        Index.open(index, chosen.model, chosen.train, **told(chosen))
    else:
        plans = read_plans(index)
        opened(index, plans, given(chosen, plans[0].metric))

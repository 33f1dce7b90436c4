"""precedents index add: codes of training instances that came after those of an index."""

from pathlib import Path

from precedents.cli._options import Data, Memory, Quiet, RunFolder, Target
from precedents.cli._output import reporting, show
from precedents.cli._subject import subject
from precedents.cli.index._options import IndexPath, told


def add(
    run: RunFolder = None,
    target: Target = None,
    index: IndexPath = Path("index"),
    memory: Memory = None,
    data: Data = None,
    quiet: Quiet = False,
) -> None:
    """Adds the instances at the end of the training set that the index does not have yet.

    The training set begins with the instances of the index. Nothing is computed again.

    Examples:
      $ precedents index add --target grown:factory --index index-of-half

    """
    with reporting(quiet, "Interrupted: the same command goes on."):
        from precedents.index.index import Index

        chosen = subject(run, target, data)
        show(str(Index.extend(index, chosen.model, chosen.train, memory=memory, **told(chosen))))

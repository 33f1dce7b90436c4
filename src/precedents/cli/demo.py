"""precedents demo: two models on the digits, explained and judged."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from precedents.cli._options import Force, Quiet
from precedents.cli._output import console, reporting
from precedents.errors import InputError


def demo(
    folder: Annotated[Path, Argument(help="Where the pictures and tables go.")] = Path("demo"),
    short: Annotated[
        bool, Option("--short", help="Fewer epochs, cases and criteria: seconds, and worse models.")
    ] = False,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Trains two models on the digits, explains four predictions and puts all eighteen metrics on trial.

    It needs no data and takes two to three minutes; with --short some seconds.

    Examples:
      $ precedents demo --short
      $ precedents demo pictures --short

    """
    if folder.exists() and not force and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(
            f"{folder} is there already. Add --force to overwrite its files, or name another folder."
        )
    with reporting(quiet):
        from precedents.zoo.demo import main

        main(folder, console(), short=short)

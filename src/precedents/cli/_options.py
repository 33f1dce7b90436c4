"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from precedents.cli._names import engine_names, metric_names


def steady(path: Path | None) -> Path | None:
    """The path as it is from the folder where the command began, wherever a user's code may go."""
    return None if path is None else path.absolute()


RunFolder = Annotated[
    Path | None,
    Argument(metavar="[RUN]", help="A run folder, which `precedents train` makes.", show_default=False),
]
Target = Annotated[
    str | None,
    Option(
        metavar="MODULE:FACTORY",
        help="Your own model instead of a run: a function that returns (model, train, test), or a mapping "
        "with these keys and any of classes, render, text, image, labels, ids, hidden, output, vectorise, "
        "loss, subclasses, retrain, fresh.",
        show_default=False,
    ),
]
OneMetric = Annotated[str, Option(help="A metric: see `precedents metrics`.", autocompletion=metric_names)]
Data = Annotated[
    Path | None,
    Option(
        help="The folder that holds the files of the data sets.", envvar="PRECEDENTS_DATA", show_default=False
    ),
]
Memory = Annotated[str | None, Option(help="What may be used, as '2 GB'.", show_default="half of what is free")]
EngineName = Annotated[
    str | None,
    Option(
        "--engine",
        help="Who does the work, as processes(workers=2): see docs/engines.md.",
        autocompletion=engine_names,
        show_default=False,
    ),
]
Address = Annotated[
    str | None, Option(help="Of a cluster that is there, for --engine ray or dask.", show_default=False)
]
Shard = Annotated[
    str | None,
    Option(metavar="I/N", help="Every n-th task from the i-th, for job arrays: 7/64.", show_default="all"),
]
Json = Annotated[bool, Option("--json", help="Print the result as JSON.")]
Quiet = Annotated[bool, Option("--quiet", "-q", help="No progress and no messages; results and errors only.")]
Force = Annotated[bool, Option("--force", help="Overwrite what is there already.")]
DryRun = Annotated[bool, Option("--dry-run", help="Estimate time, memory and disk, and do nothing.")]

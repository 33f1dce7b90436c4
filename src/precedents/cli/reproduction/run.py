"""precedents reproduction run: train the models of the paper's settings and try all metrics on them."""

from pathlib import Path
from typing import Annotated

from typer import Option

from precedents.cli._engine import chosen_engine
from precedents.cli._names import items, metric_names
from precedents.cli._options import Address, Data, EngineName, Quiet, Shard
from precedents.cli._output import reporting, show


def run(
    settings: Annotated[
        str | None,
        Option(help="Settings by name, as vehicle/logreg,segment/*.", show_default="the paper's thirteen"),
    ] = None,
    repeats: Annotated[
        str, Option(help="How many repeats, or which: 10, or 3-5 for the fourth to the sixth.")
    ] = "10",
    metrics: Annotated[
        list[str] | None,
        Option(
            help="Metrics, with commas between.",
            autocompletion=metric_names,
            show_default="the eighteen and their variants",
        ),
    ] = None,
    out: Annotated[Path, Option(metavar="FOLDER", help="The folder of the records.")] = Path("results"),
    data: Data = None,
    epochs: Annotated[int | None, Option(min=1, help="Of training, instead of the setting's own.")] = None,
    workers: Annotated[
        int | None, Option(min=1, help="Processes of one thread each.", show_default="a core each")
    ] = None,
    engine: EngineName = None,
    address: Address = None,
    shard: Shard = None,
    memory: Annotated[
        str | None,
        Option(help="What a worker may use, as '4 GB'.", show_default="a share of what is free"),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Trains the models of the settings, tries the metrics on them, and records every number.

    Killed or interrupted, the same command goes on where it stopped; more repeats or metrics are added to what
    is there. The numbers do not depend on the engine, nor on the number of workers.

    The data sets of the paper are downloaded, or read from the folder that --data names; digits, wine and
    breast_cancer come with scikit-learn.

    Examples:
      $ precedents reproduction run --settings wine/mlp --repeats 1 --epochs 3 --engine serial
      $ precedents reproduction run --settings "wine/*" --repeats 3-3 --epochs 3 --metrics gc,cosine:residual
      $ precedents reproduction run --settings wine/mlp --repeats 4 --metrics gc --engine serial --shard 1/4

    """
    from precedents.reproduction.settings import chosen, counted
    from precedents.runtime.budget import Budget, available
    from precedents.runtime.engines._find import engine_of
    from precedents.runtime.engines._share import Share
    from precedents.runtime.wording import readable

    with reporting(quiet, f"Interrupted: the same command goes on. What is done is in {out}.") as say:
        wanted, places, share = chosen(settings, epochs), counted(repeats), Share.of(shard)
        Budget.of(memory)
        told = chosen_engine(engine, address, workers) or engine_of("processes", workers=workers)
        from os import cpu_count

        from precedents.reproduction.runner import tasks, work
        from precedents.runtime.progress import tracked

        memory = memory or readable(available() // ((workers or cpu_count() or 1) + 1))
        every = share.of_all(tasks(wanted, places, out, data=data, metrics=items(metrics), memory=memory))
        made = work(every, told, None if quiet else say)
        for task in tracked(made, "repeats", len(every), at_once=told.elsewhere):
            say(f"{task.setting.name} repeat {task.repeat} is done")
        count = "1 repeat" if len(places) == 1 else f"{len(places)} repeats"
        show(f"{out}: {count} of {', '.join(setting.name for setting in wanted)}{share}")

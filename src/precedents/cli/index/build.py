"""precedents index build: codes of the training set in a folder, made by one process or by many."""

from pathlib import Path
from typing import Annotated

from typer import Option

from precedents.cli._engine import chosen_engine
from precedents.cli._options import (
    Address,
    Data,
    DryRun,
    EngineName,
    Json,
    Memory,
    OneMetric,
    Quiet,
    RunFolder,
    Shard,
    Target,
)
from precedents.cli._output import reporting, show, show_estimate
from precedents.cli.index._options import IndexPath, Named, told


def build(
    run: RunFolder = None,
    target: Target = None,
    index: IndexPath = Path("index"),
    metric: OneMetric = "gc",
    engine: EngineName = None,
    address: Address = None,
    shard: Shard = None,
    rows: Annotated[
        int | None,
        Option(
            min=16,
            help="Training instances of a shard: what a kill loses at most.",
            show_default="4096, or as the folder was planned",
        ),
    ] = None,
    prepare: Annotated[bool, Option("--prepare", help="Write the plan and the basis, and no shard.")] = False,
    memory: Memory = None,
    data: Data = None,
    dry_run: DryRun = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Builds an index of the training set, or goes on where a build was stopped or killed.

    Several of these commands may build one folder side by side, on any machines that share it.

    Examples:
      $ precedents index build runs/digits-logistic_regression --index index-of-digits
      $ precedents index build runs/digits-logistic_regression --index part --shard 1/2 --rows 256
      $ precedents index build --target my_model:factory --index wine --dry-run

    """
    with reporting(quiet, f"Interrupted: the same command goes on. What is done is in {index}."):
        from precedents.index.build import Building
        from precedents.index.index import Index

        named = Named(run, target, data, metric)
        if dry_run:
            chosen = named.subject()
            options = told(chosen) | {"memory": memory}
            show_estimate(Index.estimate(chosen.model, chosen.train, metric, **options), as_json)
            return
        building = Building(index, named, memory, rows)
        workshop = building.prepared() if prepare else building.built(chosen_engine(engine, address), shard)
        _ = workshop.basis  # which is made, and written
        show(str(Index(workshop)))

"""precedents train: train a model of the paper on a data set and keep it in a run folder."""

from pathlib import Path
from typing import Annotated

from typer import Option

from precedents.cli._names import architecture_names, dataset_names
from precedents.cli._options import Data, DryRun, Force, Json, Quiet
from precedents.cli._output import reporting, show, show_estimate, show_json
from precedents.errors import InputError
from precedents.runtime.given import SEEDS


def train(
    dataset: Annotated[str, Option(help="A data set.", autocompletion=dataset_names, show_default=False)],
    model: Annotated[
        str, Option(help="An architecture.", autocompletion=architecture_names, show_default=False)
    ],
    out: Annotated[
        Path | None, Option(metavar="RUN", help="The folder of the run.", show_default="runs/DATASET-MODEL")
    ] = None,
    seed: Annotated[
        int, Option(min=0, max=SEEDS - 1, help="Of the split, the first weights and the order of the batches.")
    ] = 0,
    epochs: Annotated[int, Option(help="How often the training set is gone through.")] = 100,
    data: Data = None,
    force: Force = False,
    dry_run: DryRun = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Trains a model on a data set and keeps both in a run folder, which `explain` and `audit` take.

    The folder has the weights (safetensors), the split, the vocabulary, the settings and fingerprints.

    Examples:
      $ precedents train --dataset digits --model logistic_regression
      $ precedents train --dataset digits --model cnn --epochs 3 --seed 1 --out runs/quick
      $ precedents train --dataset digits --model cnn --dry-run

    """
    with reporting(quiet) as say:
        from precedents.zoo.run import Prepared, Recipe, is_run

        recipe = Recipe(dataset, model, seed, epochs)
        folder = out or recipe.folder
        if folder.exists() and not (force and is_run(folder)):
            advice = "Add --force to overwrite it" if is_run(folder) else "It has no run in it, so it stays"
            raise InputError(f"{folder} is there already. {advice}, or name another folder by --out.")
        prepared = Prepared.of(recipe, data)
        if dry_run:
            show_estimate(prepared.estimate(), as_json)
            return
        if prepared.dataset.note:
            say(prepared.dataset.note)
        say(f"Training {model} on {len(prepared.train)} instances of {dataset}, {epochs} epochs")
        run = prepared.run()
        run.write(folder)
        if as_json:
            show_json({"run": str(folder), **run.metrics})
        else:
            right, seen = (run.metrics[f"{part} accuracy"] for part in ("test", "train"))
            show(f"{folder}: predicts {right:.1%} of the test set and {seen:.1%} of the training set correctly")

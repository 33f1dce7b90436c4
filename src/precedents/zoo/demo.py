"""The demo: two models on the digits, four explanations of each, and all eighteen metrics on trial.

`precedents demo FOLDER` runs it: it needs only scikit-learn, and writes pictures and tables.
"""

import sys
from dataclasses import replace
from pathlib import Path
from shutil import which
from time import monotonic

from rich.console import Console

from precedents.audit.profile import example_places
from precedents.criteria._judgement import default_criteria, judge
from precedents.criteria._trial import Trial
from precedents.explain.explainer import Explainer
from precedents.explain.explanation import Explanation
from precedents.zoo.run import Prepared, Recipe, Run

RECIPES = (Recipe("digits", "cnn", epochs=100), Recipe("digits", "logistic_regression", epochs=200))
CASES = 200
RUNS = "runs"  # the folder of the trained models
K = 10  # precedents that the criteria look at, besides the first


def main(folder: Path, out: Console, *, short: bool = False) -> None:
    """Trains, explains, judges; everything it shows is also written to the folder.

    A short demo has the smaller model only, with a tenth of the epochs and of the cases.
    """
    folder.mkdir(parents=True, exist_ok=True)
    recipes = RECIPES if not short else [replace(RECIPES[-1], epochs=RECIPES[-1].epochs // 10)]
    for recipe in recipes:
        began = monotonic()
        out.rule(recipe.model.replace("_", " "))
        run = Prepared.of(recipe).run()
        run.write(folder / RUNS / recipe.model)
        shown(run, CASES // 10 if short else CASES, folder / recipe.model, out)
        out.print(f"{recipe.model}: {monotonic() - began:.0f} seconds")
    out.print(f"Pictures and tables are in {folder}/")
    command = "precedents" if which("precedents") else sys.argv[0]
    out.print(f"Look at it in your browser: {command} explore {folder / RUNS / recipes[0].model}")


def shown(run: Run, cases: int, name: Path, out: Console) -> None:
    """Explanations and the judgement of a model, also as files of this name."""
    prepared = run.prepared
    test = prepared.test.selected(range(cases))
    trial = Trial.of(run.model, prepared.train, test, retrain=prepared.retrain)
    right = (trial.cases.labels == trial.truth).double().mean()
    out.print(f"{len(prepared.train)} training images, {right:.1%} of {cases} cases predicted correctly")
    explanation = explained(run, trial)
    out.print(str(explanation))
    truth = ", ".join(prepared.dataset.classes[int(label)] for label in trial.truth[shown_cases(trial)])
    out.print(f"The cases really are {truth}: the right predictions come first.")
    explanation.plot().savefig(name.with_suffix(".png"), dpi=150)
    name.with_suffix(".html").write_text(explanation.to_html(), encoding="utf-8")
    judgement = judge(trial, criteria=default_criteria(trial, K).values())
    out.print(judgement)
    judgement.to_frame().to_csv(name.with_suffix(".csv"), index=False)


def explained(run: Run, trial: Trial) -> Explanation:
    """The precedents of two right and two wrong predictions, by Grad-Cos."""
    places, prepared = shown_cases(trial), run.prepared
    explainer = Explainer(run.model, prepared.train, classes=prepared.dataset.classes)
    return replace(explainer.explain(trial.cases.take(places).inputs), numbers=places)


def shown_cases(trial: Trial) -> list[int]:
    """The first two cases that are predicted right and the first two that are not."""
    return example_places(trial, 2)

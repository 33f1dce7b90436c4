"""The demo: two models on the digits, four explanations, and all eighteen metrics on trial.

Run it with `python -m precedents.demo FOLDER`: it needs only scikit-learn, and writes pictures and tables.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import torch
from rich.console import Console
from torch import nn

from precedents.bench.architectures.cnn import cnn
from precedents.bench.architectures.logistic_regression import logistic_regression
from precedents.bench.catalogue import Build
from precedents.bench.datasets.digits import digits
from precedents.bench.train import trained
from precedents.criteria._trial import Trial
from precedents.data import Examples
from precedents.explain import Explainer, Explanation
from precedents.judgement import Judgement, judge

LAWS = (
    "model_randomization",
    "model_randomization(label=shared)",
    "identical_class",
    "identical_class(k=10)",
    "identical_subclass",
    "identical_subclass(k=10)",
    "identical_instance",
)
CASES = 200


@dataclass(frozen=True)
class Setting:
    """A model of the demo."""

    name: str
    build: Build
    epochs: int

    def train(self, shape: tuple[int, ...], train: Examples, classes: int, seed: int = 0) -> nn.Module:
        """A model of this kind, trained."""
        return trained(lambda: self.build(shape, classes), train, epochs=self.epochs, seed=seed)


SETTINGS = (Setting("cnn", cnn, 100), Setting("logistic_regression", logistic_regression, 200))


def main(folder: Path, out: Console) -> None:
    """Trains, explains, judges; everything it shows is also written to the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    dataset = digits()
    shape, classes, split = dataset.shape, dataset.classes, dataset.split(seed=0)
    train, test = split.train, split.test
    for setting in SETTINGS:
        began = monotonic()
        out.rule(setting.name.replace("_", " "))
        model = setting.train(shape, train, len(classes))
        trial = Trial.of(
            model,
            train,
            test.selected(range(CASES)),
            retrain=lambda merged, seed, setting=setting: setting.train(shape, merged, 2, seed),  # type: ignore[misc]
        )
        right = (trial.cases.labels == trial.truth).double().mean()
        out.print(f"{len(train)} training images, {right:.1%} of {CASES} cases predicted correctly")
        explanation = explained(model, train, trial, classes)
        out.print(str(explanation))
        truth = ", ".join(classes[int(label)] for label in trial.truth[shown_cases(trial)])
        out.print(f"The cases really are {truth}: two right predictions and two wrong ones.")
        explanation.plot().savefig(folder / f"{setting.name}.png", dpi=150)
        (folder / f"{setting.name}.html").write_text(explanation.to_html(), encoding="utf-8")
        judgement = judged(trial, out)
        out.print(judgement)
        judgement.to_frame().to_csv(folder / f"{setting.name}.csv", index=False)
        out.print(f"{setting.name}: {monotonic() - began:.0f} seconds")
    out.print(f"Pictures and tables are in {folder}/")


def explained(model: nn.Module, train: Examples, trial: Trial, classes: Sequence[str]) -> Explanation:
    """The precedents of two right and two wrong predictions, by Grad-Cos."""
    places = shown_cases(trial)
    return Explainer(model, train, classes=classes).explain(trial.cases.take(places).inputs)


def shown_cases(trial: Trial) -> list[int]:
    """The first two cases that are predicted right and the first two that are not."""
    wrong = trial.cases.labels != trial.truth
    return [*(~wrong).nonzero().flatten().tolist()[:2], *wrong.nonzero().flatten().tolist()[:2]]


def judged(trial: Trial, out: Console) -> Judgement:
    """All metrics by all criteria; a line for each criterion where there is no terminal for a bar."""
    parts = []
    for law in LAWS:
        if not out.is_terminal:
            out.print(f"  {law} ...")
        parts.append(judge(trial, criteria=[law]))
    return Judgement({key: outcome for part in parts for key, outcome in part.outcomes.items()})


if __name__ == "__main__":
    torch.manual_seed(0)
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"), Console())

"""Run: a trained model in a folder of its own, with all that is needed to explain and audit it later.

run.json             format, recipe, classes, vocabulary, split, metrics of training, fingerprints, a checksum
weights.safetensors  the state of the model
audit-*/             what `precedents audit` has finished
explorer/            what `precedents explore` has computed, and a person's tags
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import nn
from torch.nn.functional import cross_entropy

from precedents import __version__
from precedents.audit.ledger import LOCK
from precedents.classifier.behaviour import sketched, summarised_alike, summary
from precedents.classifier.classifier import Classifier
from precedents.classifier.outputs import fed
from precedents.data.examples import Examples
from precedents.errors import FormatError, InputError, StaleError
from precedents.runtime.atomic import recovered, whole, written_to
from precedents.runtime.cost import Estimate, elapsed
from precedents.runtime.given import seed, whole_number
from precedents.runtime.sealed import is_sealed, sealed
from precedents.runtime.strict_json import loads, regular, text_of
from precedents.zoo.architectures import ARCHITECTURES
from precedents.zoo.dataset import Dataset, Subset, subset
from precedents.zoo.datasets import DATASETS
from precedents.zoo.train import EVALUATED, SIZE, Schedule, trained

FORMAT, OLDER = 2, 1
MANIFEST, WEIGHTS = "run.json", "weights.safetensors"
AUDIT, OWN = re.compile("audit-[0-9a-f]{8}"), (".json", ".jsonl", ".safetensors")  # of a kept audit
EXPLORED = re.compile(r"explorer/(explorer\.json|\.lock|\d{4,}\.safetensors|partial/.+)")  # all but tags
WITHIN = 1e-3  # of the largest logit, within which a model does the same on another machine


@dataclass(frozen=True)
class Recipe:
    """What a run is made from."""

    dataset: str
    model: str
    seed: int = 0  # of the split, the first weights and the order of the batches
    epochs: int = 100

    def __post_init__(self) -> None:
        DATASETS.known(self.dataset)
        ARCHITECTURES.known(self.model)
        whole_number(self.epochs, "epochs", advice="Train for at least one")
        seed(self.seed)

    @property
    def folder(self) -> Path:
        """Where the run is kept unless said otherwise."""
        return Path("runs") / (f"{self.dataset}-{self.model}" + (f"-{self.seed}" if self.seed else ""))


@dataclass(frozen=True, eq=False)
class Prepared:
    """A recipe with its data at hand."""

    recipe: Recipe
    dataset: Dataset
    train: Examples
    test: Examples

    @classmethod
    def of(cls, recipe: Recipe, data: Path | None = None) -> "Prepared":
        """Reads the data set, from the files in `data` if it has files; what cannot be trained fails here."""
        dataset = DATASETS.get(recipe.dataset)(data)
        split = dataset.split(recipe.seed)
        prepared = cls(recipe, dataset, split.train, split.test)
        Classifier.of(prepared.untrained(), split.train)
        return prepared

    def built(self, classes: int) -> nn.Module:
        """An untrained model, drawn from the global random state."""
        return ARCHITECTURES.get(self.recipe.model)(self.dataset.shape, classes)

    def untrained(self) -> nn.Module:
        """A model for all classes of the data set; the global random state is left as it was."""
        with torch.random.fork_rng(devices=[]):
            return self.built(len(self.dataset.classes))

    def retrain(self, train: Examples, seed: int, watch: Callable[[float], None] | None = None) -> nn.Module:
        """A model of this kind, trained on these instances; `watch` is told the mean loss of each epoch."""
        classes = int(train.labels.max()) + 1
        return trained(lambda: self.built(classes), train, Schedule(self.recipe.epochs, seed), watch=watch)

    def run(self) -> "Run":
        """Trains the model, and gives it with its losses and accuracies as a run."""
        losses: list[float] = []
        model = self.retrain(self.train, self.recipe.seed, watch=losses.append)
        classifier = Classifier.of(model, self.train)
        metrics = {
            "loss": losses,
            "train accuracy": accuracy(classifier, self.train),
            "test accuracy": accuracy(classifier, self.test),
        }
        return Run(self, model, metrics)

    def estimate(self) -> Estimate:
        """What training will take, from a trial on one batch."""
        model = self.untrained()
        batch = self.train.take(range(min(SIZE, len(self.train))))

        def step() -> None:
            cross_entropy(fed(model, batch.inputs), batch.labels).backward()

        with torch.enable_grad():
            seconds = elapsed(step) * self.recipe.epochs * len(self.train) / len(batch.labels)
        weights = sum(value.numel() * value.element_size() for value in model.state_dict().values())
        return Estimate(seconds, memory=4 * weights, disk=weights)  # weights, gradients and Adam's two moments


@dataclass(frozen=True, eq=False)
class Run:
    """A trained model with what it was trained from."""

    prepared: Prepared
    model: nn.Module
    metrics: Mapping[str, Any] = field(default_factory=dict)

    @property
    def options(self) -> Mapping[str, Any]:
        """What else `audit` and `Explainer` may be told about the model and its data."""
        dataset = self.prepared.dataset
        known = {"classes": dataset.classes, "render": dataset.render, "vectorise": dataset.vectorise}
        recipe = self.prepared.recipe
        return known | {"retrain": self.prepared.retrain, "name": f"{recipe.model} on {recipe.dataset}"}

    def write(self, folder: Path) -> None:
        """Keeps the run in the folder, in the place of the run and its audits there; other files stay."""
        weights = save({name: value.contiguous() for name, value in self.model.state_dict().items()})
        prepared = self.prepared
        manifest = {
            "format": FORMAT,
            "version": __version__,
            "recipe": asdict(prepared.recipe),
            "classes": prepared.dataset.classes,
            "words": prepared.dataset.words,
            "split": {"train": places(prepared.train), "test": places(prepared.test)},
            "metrics": self.metrics,
            "fingerprints": fingerprints(prepared, weights),
            "logits": _conduct(self.model, prepared.train),
            "torch": str(torch.__version__),
        }
        with whole(folder, _is_own) as fresh:
            written_to(fresh / WEIGHTS, weights)
            lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in manifest.items())
            written_to(fresh / MANIFEST, sealed(f"{{\n{lines}\n}}") + "\n")

    @classmethod
    def open(cls, folder: Path, data: Path | None = None) -> "Run":
        """Reads a run; whatever is not what was written is refused."""
        recovered(folder)
        manifest = _manifest(folder)
        weights = _weights(folder)
        try:
            recipe = Recipe(**manifest["recipe"])
            dataset = DATASETS.get(recipe.dataset)(data)
            split = manifest["split"]
            train = subset(dataset.train, torch.tensor(split["train"]))
            test = subset(dataset.train if dataset.test is None else dataset.test, torch.tensor(split["test"]))
            then, metrics = dict(manifest["fingerprints"]), dict(manifest["metrics"])
            words = tuple(manifest["words"])
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, RuntimeError) as error:
            if isinstance(error, InputError):
                raise
            raise FormatError(f"{folder / MANIFEST} is damaged: {error!r}. {_again(folder)}") from None
        prepared = Prepared(recipe, dataset, train, test)
        now = fingerprints(prepared, weights)
        if now["weights"] != then.get("weights"):
            raise FormatError(f"{folder / WEIGHTS} is damaged or of another run. {_again(folder)}")
        differs = [part for part, mark in now.items() if mark != then.get(part)]
        if differs or words != dataset.words:
            raise StaleError(
                f"{folder} was trained on other data: the {' and '.join(differs) or 'vocabulary'} set of "
                f"{recipe.dataset} differs. Name the folder with the same files by --data, or train again."
            )
        return cls(prepared, _loaded(folder, manifest, prepared, weights), metrics)


def _loaded(folder: Path, manifest: Mapping[str, Any], prepared: Prepared, weights: bytes) -> nn.Module:
    """The model with its weights, which does what it did when it was trained."""
    model, name = prepared.untrained().eval(), prepared.recipe.model
    try:
        model.load_state_dict(load(weights))
    except (SafetensorError, RuntimeError):
        raise FormatError(f"{folder / WEIGHTS} has no weights of {name}. {_again(folder)}") from None
    logits = manifest.get("logits")
    if logits is not None and not summarised_alike(str(logits), _conduct(model, prepared.train), WITHIN):
        raise StaleError(
            f"{folder} has weights with which {name} gives other logits than when it was trained, by version "
            f"{manifest.get('version')} and torch {manifest.get('torch')}. {_again(folder)}"
        )
    return model


@torch.no_grad()
def _conduct(model: nn.Module, train: Examples) -> str:
    """What the model makes of the training set, in a few numbers."""
    model.eval()
    return summary(torch.cat([sketched(fed(model, batch.inputs)) for batch in train.batches(EVALUATED)]))


def _is_own(path: Path) -> bool:
    """Whether a file in a run's folder is of the run or of an audit that a command kept there."""
    if len(path.parts) == 1:
        return path.name in (MANIFEST, WEIGHTS)
    if EXPLORED.fullmatch(path.as_posix()):
        return True
    return AUDIT.fullmatch(path.parts[0]) is not None and (path.suffix in OWN or path.name == LOCK)


def accuracy(model: Classifier, examples: Examples) -> float:
    """The share of instances that are predicted correctly."""
    return float((model.predicted(examples) == examples.labels).double().mean())


def places(examples: Examples) -> list[int]:
    """Where a split's instances are in the data set."""
    assert isinstance(examples.source, Subset)
    return list(examples.source.places)


def fingerprints(prepared: Prepared, weights: bytes) -> dict[str, str]:
    """Texts that differ when the weights, the training set or the test set differ."""
    return {
        "weights": blake2b(weights, digest_size=16).hexdigest(),
        "training": prepared.train.fingerprint(),
        "test": prepared.test.fingerprint(),
    }


def is_run(folder: Path) -> bool:
    """Whether there is a run in the folder."""
    return (folder / MANIFEST).is_file()


def _manifest(folder: Path) -> dict[str, Any]:
    if not is_run(folder):
        state = "has no run in it" if folder.is_dir() else "is no folder"
        raise InputError(f"{folder} {state}. Make one: precedents train --dataset digits --model cnn")
    content = b""
    try:
        content = text_of(folder / MANIFEST).encode()
        manifest = loads(content)
    except ValueError:
        manifest = None
    if not isinstance(manifest, dict) or "format" not in manifest:
        raise FormatError(f"{folder / MANIFEST} is no manifest of a run. {_again(folder)}")
    if manifest["format"] not in (FORMAT, OLDER):
        found = f"{folder / MANIFEST} has the format {manifest['format']!r}"
        raise FormatError(f"{found}; this version reads {OLDER} and {FORMAT}. {_again(folder)}")
    if not is_sealed(content) and (manifest["format"] == FORMAT or "checksum" in manifest):
        raise FormatError(f"{folder / MANIFEST} is damaged: its checksum differs. {_again(folder)}")
    return manifest


def _weights(folder: Path) -> bytes:
    try:
        return regular(folder / WEIGHTS).read_bytes()
    except FileNotFoundError:
        raise FormatError(f"{folder} has no {WEIGHTS}. {_again(folder)}") from None


def _again(folder: Path) -> str:
    return f"Train again: precedents train ... --out {folder} --force"

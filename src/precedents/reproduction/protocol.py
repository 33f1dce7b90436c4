"""The paper's protocol: each repeat draws data, trains two models and puts every metric before the criteria.

The first model knows all classes: identical class and model randomization are tried on it. The second one
knows two, into which the classes were merged at random: identical subclass is tried on it. What is finished is
recorded at once, and weights are kept: a repeat that was killed goes on, and metrics can be added later.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from gc import collect
from hashlib import blake2b
from json import dumps
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from torch import nn

from precedents.classifier.classifier import Classifier, Vectorise
from precedents.criteria._criterion import Criterion
from precedents.criteria._trial import Trial
from precedents.criteria.identical_class import IdenticalClass
from precedents.criteria.identical_instance import IdenticalInstance
from precedents.criteria.identical_subclass import IdenticalSubclass
from precedents.criteria.model_randomization import ModelRandomization
from precedents.data.examples import Examples
from precedents.errors import NotApplicable, NumericalError
from precedents.metrics.metric import Metric
from precedents.metrics.paper import METRICS, metric
from precedents.metrics.preconditioners.hessian import InverseHessian
from precedents.reproduction import analyses
from precedents.reproduction.alternatives import Alternative, alternatives
from precedents.reproduction.analyses import Made
from precedents.reproduction.records import COSTS, Piece, Records, log
from precedents.reproduction.settings import CASES, Setting
from precedents.runtime.allocator import memory_kept
from precedents.runtime.atomic import write
from precedents.runtime.progress import tracked, within
from precedents.runtime.tensor_files import sealed_tensors, unsealed_tensors
from precedents.zoo.architectures import ARCHITECTURES
from precedents.zoo.checkpoint import Checkpoint
from precedents.zoo.dataset import Dataset, Split
from precedents.zoo.datasets import DATASETS
from precedents.zoo.run import accuracy
from precedents.zoo.train import Schedule, moved, trained

SHORT = 0.01  # seconds that are no cost
EARLY = 3  # repeats in which a model is trained otherwise; one where it is pre-trained
FAR = 100_000  # between the seeds of a repeat's model and of the one that is trained again
TRAINED, MERGED, AGAIN = "trained", "merged", "again"  # all classes, two of them, all from another seed

Model = tuple[str, Alternative | None]  # one of these, from other initial weights if so


@lru_cache(maxsize=2)
def dataset(name: str, data: Path | None) -> Dataset:
    """A data set, read once."""
    return DATASETS.get(name)(data)


def header(setting: Setting, data: Path | None) -> dict[str, Any]:
    """What the records of a setting rest on."""
    read = dataset(setting.dataset, data)
    return {"protocol": {"train": read.keep, **setting.protocol}, "data": _mark(read), "note": read.note}


def _mark(read: Dataset) -> str:
    digest = blake2b(read.train.fingerprint().encode(), digest_size=16)
    digest.update(b"" if read.test is None else read.test.fingerprint().encode())
    return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class Repeat:
    """One repeat of a setting: its share of the data, its models, its records."""

    setting: Setting
    index: int  # which repeat it is, from 0; the seed of all that it draws
    records: Records
    data: Path | None = None
    memory: int | str | None = None
    trials: dict[str, Trial] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def dataset(self) -> Dataset:
        """With what its owners publish."""
        return dataset(self.setting.dataset, self.data)

    @cached_property
    def split(self) -> Split:
        """The repeat's training, development and test instances."""
        drawn = self.dataset.split(self.index)
        return drawn.standardized() if self.setting.standardized else drawn

    @cached_property
    def merged(self) -> Split:
        """The same with the classes merged into two."""
        return self.split.merged(len(self.dataset.classes), self.index)

    def trial(self, part: str, other: Alternative | None = None) -> Trial:
        """The trial of one of the two models, which is trained at the first use; or an alternative to it."""
        key = _key(part, other)
        if key not in self.trials:
            if other is None or other.start:
                self.trials[key] = self._trial(part, other)
            else:
                self.trials[key] = self._changed(part, other)
        return self.trials[key]

    @property
    def parts(self) -> tuple[str, ...]:
        """What is tried: merging two classes into two leaves no subclasses."""
        return (TRAINED, MERGED) if len(self.dataset.classes) > 2 else (TRAINED,)

    def _classifier(self, model: nn.Module, train: Examples, seen: Vectorise | None = None) -> Classifier:
        seen = seen or self.dataset.vectorise
        return Classifier.of(model, train, hidden=_hidden(model), vectorise=seen, memory=self.memory)

    def _trial(self, part: str, other: Alternative | None) -> Trial:
        split = self.merged if part == MERGED else self.split
        classifier = self._classifier(self.model(part, split, other), split.train)
        cases, subclasses = torch.arange(min(CASES, len(split.test))), None
        if part == MERGED:
            right = classifier.predicted(split.test) == split.test.labels
            cases = right.nonzero().flatten()[:CASES]
            assert split.subclasses is not None
            subclasses = (split.subclasses[0], split.subclasses[1][cases])
        if part != AGAIN:
            summary = partial(self._summary, classifier, split, len(cases))
            self.records.once(self.index, ("model", _key(part, other)), summary)
        return Trial.of(classifier, split.train, split.test.selected(cases.tolist()), subclasses=subclasses)

    def _changed(self, part: str, other: Alternative) -> Trial:
        """The same instances before a model or a view of them that differs in one choice."""
        trial = self.trial(part)
        self.trials.clear()  # other alternatives: one is held at a time
        self.trials[part] = trial
        train = trial.workspace.train
        classifier = self._classifier(other.change(trial.workspace.classifier.module), train, other.vectorise)
        return Trial.of(classifier, train, trial.cases, subclasses=trial.subclasses)

    def _summary(self, model: Classifier, split: Split, cases: int) -> dict[str, Any]:
        return {
            "train accuracy": accuracy(model, split.train),
            "dev accuracy": accuracy(model, split.dev),
            "test accuracy": accuracy(model, split.test),
            "parameters": model.size,
            "train": len(split.train),
            "cases": cases,
        }

    def model(self, part: str, split: Split, other: Alternative | None = None) -> nn.Module:
        """A model trained on a split, from the weights that were kept if there are any."""
        build = partial(self._build, 2 if part == MERGED else len(self.dataset.classes), other)
        path = self._weights(_key(part, other))
        steps = [Checkpoint(path.with_suffix(f".{step}")) for step in ("pretraining", "training")]
        if path.exists():
            with torch.random.fork_rng(devices=[]):
                model = build()
            model.load_state_dict(unsealed_tensors(path, "Delete it, and it is trained again."))
        else:
            with memory_kept():
                model = self._trained(build, split, self.index + FAR * (part == AGAIN), *steps)
            path.parent.mkdir(parents=True, exist_ok=True)
            write(path, sealed_tensors(model.state_dict()))
        for step in steps:  # also those that a killed process left
            step.remove()
        return model.eval()

    def _build(self, classes: int, other: Alternative | None = None) -> nn.Module:
        model = ARCHITECTURES.get(self.setting.architecture)(self.dataset.shape, classes)
        return other.start(model) if other and other.start else model

    @cached_property
    def alternatives(self) -> list[Alternative]:
        """Choices that are made otherwise, beside the protocol."""
        with torch.random.fork_rng(devices=[]):
            early = self.setting.published and self.index < (1 if self.setting.pretraining else EARLY)
            return list(alternatives(self.dataset, self._build(2), first=self.index == 0, early=early))

    def _trained(
        self,
        build: Callable[[], nn.Module],
        split: Split,
        seed: int,
        before: Checkpoint,
        after: Checkpoint,
    ) -> nn.Module:
        setting, change = self.setting, moved if self.setting.moved else None
        plan = Schedule(setting.epochs, seed, decay=setting.decay, cooled=setting.cooled, change=change)
        if setting.pretraining:
            pretraining = replace(plan, epochs=setting.pretraining)
            first = trained(build, split.pool, pretraining, dev=split.dev, checkpoint=before)
            return trained(lambda: first, split.train, plan, dev=split.dev, checkpoint=after)
        return trained(build, split.train, plan, dev=split.dev, checkpoint=after)

    def _weights(self, key: str) -> Path:
        mark = blake2b(dumps(self.records.header, sort_keys=True).encode(), digest_size=4).hexdigest()
        folder = self.records.path.parent / "models" / f"{self.records.path.stem}-{mark}"
        return folder / f"{self.index}-{key.replace(', ', '-')}.safetensors"

    def pieces(self, metrics: Sequence[str]) -> dict[Model, list[Made]]:
        """All that is to be done, by model: the criteria, the cheap metrics first, and the analyses."""
        metrics = sorted(metrics, key=lambda name: "hessian" in str(metric(name)))
        known = {name: self.metric(name) for name in metrics if name in METRICS}
        every: dict[Model, list[Made]] = {}
        for part in self.parts:
            every[part, None] = [
                (("outcome", name, text), partial(self._outcome, part, name, criterion))
                for name in metrics
                for text, criterion in self._criteria(part).items()
            ]
            every[part, None] += analyses.pieces(self, part, known)
            for other in self.alternatives:
                model = (part, other if other.start else None)
                every.setdefault(model, []).extend(self._otherwise(part, other, metrics))
        return every

    def _otherwise(self, part: str, other: Alternative, metrics: Sequence[str]) -> Iterator[Made]:
        """How often the class, or the subclass, is found by an alternative; all criteria of another model."""
        for name in (each for each in other.metrics if each in metrics):
            for text, criterion in self._criteria(part).items():
                if other.start or isinstance(criterion, (IdenticalClass, IdenticalSubclass)):
                    start = f"{text[:-1]}, " if text.endswith(")") else f"{text}("
                    piece = ("outcome", name, f"{start}{other.choice})")
                    yield piece, partial(self._outcome, part, name, criterion, other)

    def run(self, metrics: Sequence[str]) -> None:
        """All pieces that are not recorded yet."""
        for model, made in self.pieces(metrics).items():
            left = [(piece, make) for piece, make in made if not self.records.has(self.index, piece)]
            with within(f"{self.setting.name} repeat {self.index}, {_key(*model)}"):
                if left:
                    self.trial(*model)  # before the pieces, so that the progress of its training is shown
                for piece, make in tracked(left, "metrics"):
                    began = perf_counter()
                    self.records.once(self.index, piece, make)
                    self._cost(piece, perf_counter() - began)
            self.trials.clear()
            collect()  # they and what they keep hold each other; their memory is for the next

    def _criteria(self, part: str) -> dict[str, Criterion]:
        """What is tried on one of the two models, by its text in the records."""
        if part == MERGED:
            return {f"identical_subclass{k}": IdenticalSubclass(n) for k, n in (("", 1), ("(k=10)", 10))}
        drawn = partial(ModelRandomization, draws=1, seed=self.index)
        return {
            "identical_class": IdenticalClass(),
            "identical_class(k=10)": IdenticalClass(10),
            "identical_instance": IdenticalInstance(),
            "model_randomization": drawn(),
            "model_randomization(label=shared)": drawn(label="shared"),
        }

    def _outcome(
        self, part: str, name: str, criterion: Criterion, other: Alternative | None = None
    ) -> dict[str, Any]:
        try:
            outcome = criterion(self.trial(part, other), self.metric(name))
        except (
            NotApplicable,
            NumericalError,
        ) as reason:  # too little memory is no result: it stops
            return {"missing": str(reason)}
        nulls = {key: value for key, value in outcome.notes.items() if key.startswith("null")}
        known = {"mean": outcome.mean, "count": len(outcome.values), "chance": outcome.chance}
        return known | ({"nulls": nulls} if nulls else {})

    def metric(self, name: str) -> Metric:
        """By name; a Hessian of no kind is of the setting's kind, so that free memory decides nothing."""
        found = metric(name)
        weighed = found.preconditioner
        if isinstance(weighed, InverseHessian) and weighed.kind == "auto":
            return replace(found, preconditioner=replace(weighed, kind=self.setting.curvature))
        return found

    def _cost(self, piece: Piece, seconds: float) -> None:
        if seconds < SHORT:
            return
        where = {"setting": self.setting.name, "repeat": self.index, "piece": piece}
        log(self.records.path.parent / COSTS).append(where | {"seconds": round(seconds, 3)})


def _key(part: str, other: Alternative | None) -> str:
    return f"{part}, {other.choice}" if other else part


def _hidden(model: nn.Module) -> list[str] | None:
    """The paper's hidden layers of its CNN: whatever is activated, pooled or averaged; None for others."""
    kinds = (nn.ReLU, nn.MaxPool2d, nn.AdaptiveAvgPool2d)
    if not (isinstance(model, nn.Sequential) and any(type(layer) is nn.Conv2d for layer in model)):
        return None
    return [name for name, layer in model.named_children() if isinstance(layer, kinds)]

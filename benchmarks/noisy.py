"""Training sets with some wrong labels, and models that were fitted to them: by heart, or not."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from precedents.data.examples import Examples
from precedents.zoo.architectures.bi_lstm import bi_lstm
from precedents.zoo.architectures.mlp import mlp
from precedents.zoo.dataset import Dataset
from precedents.zoo.datasets.digits import digits
from precedents.zoo.datasets.fashion_mnist import fashion_mnist
from precedents.zoo.datasets.mnist import mnist
from precedents.zoo.datasets.segment import segment
from precedents.zoo.datasets.trec import read, trec
from precedents.zoo.datasets.vehicle import vehicle
from precedents.zoo.train import Schedule, trained

SHARES = (0.02, 0.05, 0.2)  # of labels that are made wrong
KINDS = ("uniform", "by class")  # any other class is as likely; or class c is taken for c + 1 alone
CASES = 500  # that were not trained on
FOLDS = 3
KNOWN: dict[str, Tensor] = {}  # what models of folds say, which is the same for all fits
WORDS = 2500  # that TREC has no more of
FITS = ("short", "long")  # until it predicts well, or until it has learnt the wrong labels by heart


@dataclass(frozen=True)
class World:
    """A data set, a model and how it is trained."""

    name: str
    title: str
    data: Callable[[int, Path | None], tuple[Any, Any, int]]  # (seed, folder) -> training set, cases, classes
    fitted: Callable[[Examples, int, str, int], Any]  # (train, classes, fit, seed) -> model


@dataclass(frozen=True)
class Noisy:
    """A training set in which some labels are wrong, and a model that was fitted to it."""

    model: Any
    train: Any
    wrong: Tensor  # [n], whether the label was made wrong
    cases: Any  # with right labels
    folds: Callable[[], Tensor]  # probabilities [n, c] of models that were not trained on the instance


def flipped(labels: Tensor, classes: int, share: float, kind: str, seed: int) -> Tensor:
    """The labels, a share of them wrong."""
    draw = torch.Generator().manual_seed(1000 + seed)
    places = torch.randperm(len(labels), generator=draw)[: round(share * len(labels))]
    step = torch.randint(1, classes, (len(places),), generator=draw) if kind == "uniform" else 1
    noisy = labels.clone()
    noisy[places] = (noisy[places] + step) % classes
    return noisy


class Block(nn.Module):
    """Two convolutions and a way around them."""

    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(before, width, 3, stride, padding=1, bias=False)
        self.second = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(width), nn.BatchNorm2d(width)])
        self.around = nn.Conv2d(before, width, 1, stride, bias=False) if stride > 1 else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """Images [b, width, h, w]."""
        found = self.norms[1](self.second(self.norms[0](self.first(x)).relu()))
        return (found + self.around(x)).relu()


def resnet(width: int = 16, blocks: int = 1, classes: int = 10) -> nn.Module:
    """Three stages of residual blocks on grey images; of width 16 with 2 blocks each, 170,000 parameters."""
    stages = []
    for i in range(3):
        before, now = (width * 2 ** max(0, i - 1), width * 2**i)
        stages += [Block(before if j == 0 else now, now, 2 if i and j == 0 else 1) for j in range(blocks)]
    return nn.Sequential(
        nn.Conv2d(1, width, 3, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        *stages,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4 * width, classes),
    )


def _drawn(load: Callable[..., Dataset], keep: int | None, table: bool) -> Any:
    @cache
    def data(seed: int, folder: Path | None) -> tuple[Examples, Examples, int]:
        dataset = load() if load is digits else load(None if folder is None else folder / load.__name__)
        split = dataset.split(seed, keep)
        split = split.standardized() if table else split
        cases = split.test.selected(range(min(CASES, len(split.test))))
        return split.train.selected(range(len(split.train))), cases, len(dataset.classes)

    return data


def _network(build: Callable[[tuple[int, ...], int], nn.Module], short: int, long: int, rate: float) -> Any:
    def fitted(train: Examples, classes: int, fit: str, seed: int) -> nn.Module:
        inputs = train.take(range(len(train))).inputs
        shape = tuple(inputs.shape[1:]) if inputs.is_floating_point() else (WORDS,)
        schedule = Schedule({"short": short, "long": long}[fit], seed, rate)
        return trained(lambda: build(shape, classes), train, schedule)

    return fitted


def _linear(shape: tuple[int, ...], classes: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(prod(shape), classes))


def _wide(shape: tuple[int, ...], classes: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(prod(shape), 64), nn.ReLU(), nn.Linear(64, classes))


def _resnet(_: tuple[int, ...], classes: int) -> nn.Module:
    return resnet(classes=classes)


def _lstm(shape: tuple[int, ...], classes: int) -> nn.Module:
    return bi_lstm(shape, classes, width=32, hidden=32)


def _texts(seed: int, folder: Path | None) -> tuple[Any, Any, int]:
    """The questions as texts."""
    from precedents.zoo.datasets._files import files
    from precedents.zoo.datasets.trec import CLASSES, FILES

    every = read(next(iter(files("trec", FILES, None if folder is None else folder / "trec"))))
    draw = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(every), generator=draw).tolist()
    labels = torch.tensor([CLASSES.index(every[i][0].partition(":")[0]) for i in order])
    texts, n = [" ".join(every[i][1]) for i in order], len(every) // 2
    return (texts[:n], labels[:n]), (texts[n : n + CASES], labels[n : n + CASES]), len(CLASSES)


def _tfidf(train: Any, classes: int, fit: str, seed: int) -> Any:  # noqa: ARG001
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    strength = {"short": 1.0, "long": 1000.0}[fit]
    made = make_pipeline(
        TfidfVectorizer(tokenizer=str.split, token_pattern=None), LogisticRegression(C=strength, max_iter=2000)
    )
    return made.fit(train[0], train[1].numpy())


WORLDS = {
    world.name: world
    for world in (
        World(
            "digits-linear", "digits, linear", _drawn(digits, 1000, False), _network(_linear, 30, 1000, 0.01)
        ),
        World(
            "digits-mlp",
            "digits, one hidden layer",
            _drawn(digits, 1000, False),
            _network(_wide, 15, 400, 0.01),
        ),
        World("mnist-resnet", "MNIST, ResNet", _drawn(mnist, 2000, False), _network(_resnet, 6, 25, 0.003)),
        World(
            "fashion-resnet",
            "Fashion-MNIST, ResNet",
            _drawn(fashion_mnist, 2000, False),
            _network(_resnet, 6, 25, 0.003),
        ),
        World("trec-tfidf", "TREC, TF-IDF", _texts, _tfidf),
        World("trec-lstm", "TREC, LSTM", _drawn(trec, None, False), _network(_lstm, 12, 30, 0.003)),
        World("segment-mlp", "Segment, perceptron", _drawn(segment, None, True), _network(mlp, 20, 600, 0.01)),
        World("vehicle-mlp", "Vehicle, perceptron", _drawn(vehicle, None, True), _network(mlp, 20, 600, 0.01)),
    )
}


def noisy(world: World, share: float, kind: str, fit: str, seed: int, folder: Path | None = None) -> Noisy:
    """The training set of a world with wrong labels, and the model that was fitted to it."""
    train, cases, classes = world.data(seed, folder)
    right = train[1] if isinstance(train, tuple) else train.labels
    labels = flipped(right, classes, share, kind, seed)
    given = (train[0], labels) if isinstance(train, tuple) else train.relabelled(labels)

    def folds() -> Tensor:
        key = f"{world.name} {share} {kind} {seed}"
        if key not in KNOWN:
            KNOWN[key] = out_of_sample(world, given, classes, seed)
        return KNOWN[key]

    return Noisy(world.fitted(given, classes, fit, seed), given, labels != right, cases, folds)


def out_of_sample(world: World, train: Any, classes: int, seed: int) -> Tensor:
    """The probabilities [n, c] of each instance by a model that was trained, short, on the other folds."""
    texts = isinstance(train, tuple)
    n = len(train[1] if texts else train.labels)
    fold = torch.randperm(n, generator=torch.Generator().manual_seed(seed)) % FOLDS
    found = torch.zeros(n, classes)
    for each in range(FOLDS):
        inside, outside = ((fold == each) == part for part in (False, True))
        kept, held = (part.nonzero().flatten().tolist() for part in (inside, outside))
        if texts:
            some = [train[0][i] for i in kept], train[1][kept]
            model = world.fitted(some, classes, "short", seed)
            found[held] = torch.tensor(model.predict_proba([train[0][i] for i in held])).float()
            continue
        model = world.fitted(train.selected(kept), classes, "short", seed)
        with torch.no_grad():
            found[held] = model(train.take(held).inputs).softmax(dim=1)
    return found

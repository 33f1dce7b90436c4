"""Models that a second thread would disturb, and the answers that threads are compared by."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from time import sleep
from typing import Any

import torch
from torch import Tensor, nn

from precedents import Explainer, Explanation

THREADS = 8
PAUSE = 1e-4  # in which another thread can come between

Answer = tuple[Any, ...]


class Noting(nn.Module):
    """Keeps what it computes in attributes, as many do."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.head = nn.Linear(5, 6), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        self.hidden = self.first(x)
        sleep(PAUSE)
        self.hidden = self.hidden.tanh()
        return self.head(self.hidden)


class Scratch(nn.Module):
    """Writes its inputs into a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.head = nn.Linear(5, 6), nn.Linear(6, 3)
        self.register_buffer("scratch", torch.zeros(600, 5))

    def forward(self, x: Tensor) -> Tensor:
        self.scratch[: len(x)] = x
        sleep(PAUSE)
        return self.head(self.first(self.scratch[: len(x)].clone()).tanh())


class Exponential(nn.Module):
    """Has a parameter that no layer rule covers: vmap over the module."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.head = nn.Parameter(torch.randn(5, 6) / 4), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        weight = self.weight.exp()
        sleep(PAUSE)
        return self.head((x @ weight @ self.weight.T.sin() @ self.weight).tanh())


class Encoding(nn.Module):
    """A layer of torch that computes otherwise while it is watched."""

    def __init__(self) -> None:
        super().__init__()
        self.spread = nn.Linear(5, 24)
        self.layer = nn.TransformerEncoderLayer(6, 2, 8, batch_first=True)
        self.head = nn.Linear(24, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layer(self.spread(x).unflatten(1, (4, 6))).flatten(1))


class Lengthwise(nn.Module):
    """Has the instances along the second axis of four, which only the first batch shows."""

    def __init__(self) -> None:
        super().__init__()
        self.spread, self.step, self.head = nn.Linear(5, 24), nn.Linear(6, 7), nn.Linear(28, 3)

    def forward(self, x: Tensor) -> Tensor:
        steps = self.spread(x).unflatten(1, (4, 6)).transpose(0, 1)
        sleep(PAUSE)
        return self.head(self.step(steps).tanh().transpose(0, 1).flatten(1))


def deep() -> nn.Module:
    layers = [part for _ in range(8) for part in (nn.Linear(6, 6), nn.Tanh())]
    return nn.Sequential(nn.Linear(5, 6), *layers, nn.Linear(6, 3))


def folding() -> nn.Module:
    convolution = nn.Sequential(nn.Conv1d(1, 2, 3), nn.BatchNorm1d(2), nn.ReLU())
    return nn.Sequential(nn.Unflatten(1, (1, 5)), *convolution, nn.Flatten(), nn.Linear(6, 3))


MODELS: dict[str, Callable[[], nn.Module]] = {
    "deep": deep,
    "noting": Noting,
    "scratch": Scratch,
    "exponential": Exponential,
    "encoding": Encoding,
    "lengthwise": Lengthwise,
    "folding": folding,
}


def built(name: str) -> nn.Module:
    """The model with the same weights at each call; torch's random state stays as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return MODELS[name]().double().eval()


def answer(explanation: Explanation) -> Answer:
    """All of an explanation that can differ."""
    parts = explanation.parts
    cosines = None if parts is None else (parts.residual.tolist(), parts.feature.tolist())
    top = explanation.top.indices.tolist(), explanation.top.scores.tolist()
    return *top, explanation.percentiles.tolist(), explanation.predictions.tolist(), explanation.flags, cosines


def asked(explainer: Explainer, case: Any) -> Answer:
    """The answer to one question."""
    return answer(explainer.explain(case, k=3))


def together(work: Callable[[int], Any], count: int, threads: int = THREADS) -> list[Any]:
    """What the work gives for each number, by threads that all begin at the same time."""
    start = Barrier(threads, timeout=60)

    def begun(numbers: Sequence[int]) -> list[Any]:
        start.wait()
        return [work(i) for i in numbers]

    with ThreadPoolExecutor(threads) as pool:
        shares = list(pool.map(begun, [range(t, count, threads) for t in range(threads)]))
    return [shares[i % threads][i // threads] for i in range(count)]

"""One small trained world: 45 training instances, 12 cases, 3 classes, and models in float64."""

import os
from collections.abc import Callable, Iterator

os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")  # some virtual machines only claim to have more
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import chromium
import pytest
import reports
import torch
from hypothesis import HealthCheck, settings
from playwright.sync_api import Browser, sync_playwright
from spaces import workspace_of
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from precedents import Classifier, Examples, Trial
from precedents.metrics.workspace import Workspace
from precedents.views.report import html

settings.register_profile(
    "steady", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("steady")
torch.set_num_threads(1)  # for matrices this small, more threads only wait for each other

Pair = tuple[Tensor, Tensor]


def blobs(n: int, seed: int) -> Pair:
    """Three overlapping clouds of points in five dimensions, the classes in turn."""
    random = torch.Generator().manual_seed(seed)
    labels = torch.arange(n) % 3
    centres = 1.8 * torch.eye(3, 5, dtype=torch.double)
    return centres[labels] + torch.randn(n, 5, generator=random, dtype=torch.double), labels


def trained(make: Callable[[], nn.Module], train: Pair, steps: int = 30, seed: int = 0) -> nn.Module:
    """A float64 model after some steps of Adam; torch's global random state stays as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = make().double()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(steps):
        optimizer.zero_grad()
        cross_entropy(model(train[0]), train[1]).backward()
        optimizer.step()
    model.zero_grad()
    return model.eval()


def mlp(classes: int = 3) -> nn.Module:
    """89 parameters for three classes."""
    return nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, classes))


def retrained(merged: Examples, seed: int) -> nn.Module:
    """A model like the world's, trained on two classes."""
    batch = merged.take(range(len(merged)))
    return trained(lambda: mlp(classes=2), (batch.inputs, batch.labels), seed=seed)


@pytest.fixture(autouse=True)
def seeded() -> Iterator[None]:
    """Every test draws the same numbers, whatever ran before it."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


@pytest.fixture(scope="session")
def train() -> Pair:
    return blobs(45, seed=1)


@pytest.fixture(scope="session")
def test() -> Pair:
    return blobs(12, seed=2)


@pytest.fixture(scope="session")
def cases(test: Pair) -> Tensor:
    return test[0]


@pytest.fixture(scope="session")
def model(train: Pair) -> nn.Module:
    return trained(mlp, train)


@pytest.fixture(scope="session")
def linear(train: Pair) -> nn.Module:
    return trained(lambda: nn.Linear(5, 3), train)


@pytest.fixture(scope="session")
def biasless(train: Pair) -> nn.Module:
    return trained(lambda: nn.Linear(5, 3, bias=False), train)


@pytest.fixture(scope="session")
def examples(train: Pair) -> Examples:
    return Examples.of(train)


@pytest.fixture(scope="session")
def classifier(model: nn.Module, examples: Examples) -> Classifier:
    return Classifier.of(model, examples)


@pytest.fixture(scope="session")
def workspace(classifier: Classifier, examples: Examples) -> Workspace:
    return workspace_of(classifier, examples)


@pytest.fixture(scope="session")
def trial(model: nn.Module, train: Pair, test: Pair) -> Trial:
    return Trial.of(model, train, test, retrain=retrained)


@pytest.fixture(scope="session")
def linear_trial(linear: nn.Module, train: Pair, test: Pair) -> Trial:
    return Trial.of(linear, train, test)


@pytest.fixture(scope="session")
def large() -> str:
    """A report page as large as they come."""
    return html(reports.large())


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A real one; no longer than needed, as its event loop would be in the way of others."""
    path = chromium.found()
    if path is None:
        pytest.fail(chromium.ADVICE)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=list(chromium.FLAGS))
        yield started
        started.close()

"""How often control passes from one module to another: a call that hops about is hard to follow."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset

from precedents import Explainer

# Changes of module in making an explainer, and in its first `explain` of one case: calls of named functions
# from another module, and calls of another module than the one before. For the model of the README half of
# what it was before the rooms: 228 and 254, 410 and 469.
LIMITS = {
    "readme": ((114, 127), (202, 234)),
    "dataset": ((114, 129), (202, 234)),
    "two hidden layers": ((125, 140), (212, 240)),
    "images": ((114, 146), (205, 245)),
}


def changes(work: Callable[[], Any]) -> tuple[int, int]:
    """How many named functions of the package are called from another of its modules, and how many calls are of
    another module than the one before; a generator that goes on is called again."""
    last, named, every = "", 0, 0

    def seen(frame: FrameType, event: str, _: Any) -> None:
        nonlocal last, named, every
        name = frame.f_globals.get("__name__", "")
        if event != "call" or not name.startswith("precedents"):
            return
        caller = frame.f_back.f_globals.get("__name__", "") if frame.f_back else ""
        within = caller.startswith("precedents") and caller != name
        named += within and not frame.f_code.co_name.startswith("<")
        every += name != last
        last = name

    sys.setprofile(seen)
    try:
        work()
    finally:
        sys.setprofile(None)
    return named, every


def network(what: str) -> nn.Module:
    if what == "images":
        convolved = nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()
        return nn.Sequential(*convolved, nn.Linear(36, 3)).double()
    between = [nn.Linear(16, 16), nn.Tanh()] if what == "two hidden layers" else []
    return nn.Sequential(nn.Linear(64, 16), nn.Tanh(), *between, nn.Linear(16, 10)).double()


@pytest.fixture(params=LIMITS)
def world(request) -> tuple[str, nn.Module, Any, torch.Tensor]:
    """What it is, a model, its training set and a case."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model, n = network(request.param), 60 if request.param == "images" else 1000
        x = torch.rand(n, *((1, 8, 8) if request.param == "images" else (64,)), dtype=torch.double)
        train = x, torch.arange(n) % (3 if request.param == "images" else 10)
    data = TensorDataset(*train) if request.param == "dataset" else train
    Explainer(model, data).explain(x[0])  # everything is imported
    return request.param, model, data, x[0]


def test_making_an_explainer_changes_modules_seldom(world) -> None:
    what, model, train, _ = world
    named, every = changes(lambda: Explainer(model, train))
    limits, _ = LIMITS[what]
    assert named <= limits[0]
    assert every <= limits[1]


def test_explaining_a_case_changes_modules_seldom(world) -> None:
    what, model, train, case = world
    explainer = Explainer(model, train)
    named, every = changes(lambda: explainer.explain(case))
    _, limits = LIMITS[what]
    assert named <= limits[0]
    assert every <= limits[1]

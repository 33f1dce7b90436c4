"""How often control passes from one module to another: a call that hops about is hard to follow."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
import torch
from torch import nn

from precedents import Explainer

GENERATOR = 0x20  # the flag of a generator's code, whose frames are entered again and again
CONSTRUCTOR, EXPLAIN = 114, 202  # half of what it was before the rooms: 228 and 405


def changes(work: Callable[[], Any]) -> int:
    """How many calls within the package are of another module than the call before."""
    last, count = "", 0

    def seen(frame: FrameType, event: str, _: Any) -> None:
        nonlocal last, count
        name = frame.f_globals.get("__name__", "")
        again = bool(frame.f_code.co_flags & GENERATOR) and frame.f_lasti > 2
        if event == "call" and name.startswith("precedents") and not again and name != last:
            last, count = name, count + 1

    sys.setprofile(seen)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


@pytest.fixture(scope="module")
def world() -> tuple[nn.Module, tuple[torch.Tensor, torch.Tensor]]:
    """A model as in the README."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(64, 16), nn.Tanh(), nn.Linear(16, 10)).double()
        train = torch.rand(1000, 64, dtype=torch.double), torch.arange(1000) % 10
    Explainer(model, train)  # everything is imported
    return model, train


def test_making_an_explainer_changes_modules_seldom(world) -> None:
    assert changes(lambda: Explainer(*world)) <= CONSTRUCTOR


def test_explaining_a_case_changes_modules_seldom(world) -> None:
    explainer = Explainer(*world)
    assert changes(lambda: explainer.explain(world[1][0][0])) <= EXPLAIN

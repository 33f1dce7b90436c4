"""What the tests of the index share."""

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from precedents import Index

from .worlds import N, Set, network


@pytest.fixture(scope="package")
def world() -> tuple[nn.Module, Set, Tensor]:
    """A model that has learned something."""
    with torch.random.fork_rng(devices=[]):
        model = network()
        torch.manual_seed(1)
        y = torch.arange(N) % 4
        x = torch.randn(N, 1, 8, 8, dtype=torch.double) * 0.5
        for quarter in range(4):
            i, j = divmod(quarter, 2)
            x[y == quarter, :, 4 * i : 4 * i + 4, 4 * j : 4 * j + 4] += 1
        optimizer = torch.optim.Adam(model.parameters(), 1e-2)
        for _ in range(60):
            few = torch.randint(N, (128,))
            loss = nn.functional.cross_entropy(model(x[few]), y[few])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model.eval(), (x[:-20], y[:-20]), x[-20:]


@pytest.fixture(scope="package")
def built(world, tmp_path_factory) -> Path:
    """An index, to be read."""
    model, train, _ = world
    folder = tmp_path_factory.mktemp("built") / "index"
    Index.build(model, train, folder, memory="100 MB", rows=500)
    return folder

"""Training as in the paper: Adam with a learning rate of 0.001, cross entropy, batches of 128."""

from collections.abc import Callable

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from precedents.data import Examples
from precedents.inputs import fed
from precedents.runtime.progress import tracked


def trained(
    build: Callable[[], nn.Module],
    train: Examples,
    *,
    epochs: int,
    seed: int,
    rate: float = 1e-3,
    size: int = 128,
) -> nn.Module:
    """A model built and trained from this seed; the global random state is left as it was."""
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(seed)
        model = build().train()
        optimizer = torch.optim.Adam(model.parameters(), lr=rate)
        for _ in tracked(range(epochs), "training"):
            for places in torch.randperm(len(train)).split(size):
                batch = train.take(places.tolist())
                optimizer.zero_grad()
                cross_entropy(fed(model, batch.inputs), batch.labels).backward()
                optimizer.step()
    return model.eval()

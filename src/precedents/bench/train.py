"""Training as in the paper: Adam with a learning rate of 0.001, cross entropy, batches of 128."""

from collections.abc import Callable

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from precedents.data import Examples
from precedents.inputs import fed
from precedents.runtime.progress import tracked

SIZE = 128  # instances of a batch


def trained(
    build: Callable[[], nn.Module],
    train: Examples,
    *,
    epochs: int,
    seed: int,
    rate: float = 1e-3,
    size: int = SIZE,
    watch: Callable[[float], None] | None = None,
) -> nn.Module:
    """A model built and trained from this seed; the global random state is left as it was.

    `watch` is told the mean loss after each epoch.
    """
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(seed)
        model = build().train()
        optimizer = torch.optim.Adam(model.parameters(), lr=rate)
        for _ in tracked(range(epochs), "training"):
            total = 0.0
            for places in torch.randperm(len(train)).split(size):
                batch = train.take(places.tolist())
                optimizer.zero_grad()
                loss = cross_entropy(fed(model, batch.inputs), batch.labels)
                loss.backward()
                optimizer.step()
                total += float(loss.detach()) * len(places)
            if watch is not None:
                watch(total / len(train))
    return model.eval()

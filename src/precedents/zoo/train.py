"""Training as in the paper: Adam with a learning rate of 0.001, cross entropy, batches of 128."""

from collections.abc import Callable
from copy import deepcopy

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, pad

from precedents.classifier.memory_format import store
from precedents.data.examples import Examples
from precedents.data.inputs import Inputs, fed
from precedents.runtime.progress import tracked
from precedents.zoo.checkpoint import Checkpoint

SIZE = 128  # instances of a batch
EVALUATED = 1024  # instances whose class is predicted at once
BORDER = 4  # pixels by which an image is moved at most

Change = Callable[[Inputs], Inputs]  # of a batch to train on, drawn from the global random state


def trained(
    build: Callable[[], nn.Module],
    train: Examples,
    *,
    epochs: int,
    seed: int,
    rate: float = 1e-3,
    decay: float = 0.0,
    cooled: bool = False,
    size: int = SIZE,
    dev: Examples | None = None,
    change: Change | None = None,
    watch: Callable[[float], None] | None = None,
    checkpoint: Checkpoint | None = None,
) -> nn.Module:
    """A model built and trained from this seed; the global random state is left as it was.

    With a development set, the weights of the epoch that predicts it best are kept, the first of several.
    `decay` is AdamW's; if `cooled`, the rate falls to zero over the second half of the training. `watch` is
    told the mean loss after each epoch. What a checkpoint has is not done again.
    """
    checkpoint = checkpoint or Checkpoint(None)
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(seed)
        model = build().train()
        store(model, torch.channels_last)  # convolutions are faster so
        optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=decay)
        state = checkpoint.found(model, optimizer)
        for epoch in tracked(range(state.epochs, epochs), "training"):
            total = 0.0
            order = torch.randperm(len(train)).split(size)
            for step, places in enumerate(order):
                if cooled:
                    _cool(optimizer, rate, done=(epoch + step / len(order)) / epochs)
                batch = train.take(places.tolist())
                inputs = batch.inputs if change is None else change(batch.inputs)
                optimizer.zero_grad()
                loss = cross_entropy(fed(model, inputs), batch.labels)
                loss.backward()
                optimizer.step()
                total += float(loss.detach()) * len(places)
            if watch is not None:
                watch(total / len(train))
            if dev is not None and (now := correct(model, dev)) > state.best:
                state.best, state.weights = now, deepcopy(model.state_dict())
            state.epochs = epoch + 1
            checkpoint.keep(model, optimizer, state, over=state.epochs == epochs)
    if state.weights:
        model.load_state_dict(state.weights)
    store(model, torch.contiguous_format)
    return model.eval()


def _cool(optimizer: torch.optim.Optimizer, rate: float, done: float) -> None:
    """The rate when this part of the training is done."""
    for group in optimizer.param_groups:
        group["lr"] = rate * min(1.0, 2 * (1 - done))


@torch.no_grad()
def correct(model: nn.Module, examples: Examples) -> int:
    """How many instances the model predicts correctly in eval mode; it goes on training afterwards."""
    model.eval()
    total = 0
    for batch in examples.batches(EVALUATED):
        total += int((fed(model, batch.inputs).argmax(dim=1) == batch.labels).sum())
    model.train()
    return total


def moved(images: Inputs) -> Inputs:
    """Each image moved by a few pixels, black where nothing was, and every other one mirrored."""
    assert isinstance(images, Tensor)
    b, _, height, width = images.shape
    wide = pad(images, (BORDER, BORDER, BORDER, BORDER))
    down, right = torch.randint(0, 2 * BORDER + 1, (2, b))
    rows = down[:, None] + torch.arange(height)  # [b, h]
    columns = right[:, None] + torch.arange(width)  # [b, w]
    mirrored = torch.rand(b) < 0.5
    columns[mirrored] = columns[mirrored].flip(1)
    return wide[torch.arange(b)[:, None, None], :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)

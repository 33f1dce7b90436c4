"""Training as in the paper: Adam with a learning rate of 0.001, cross entropy, batches of 128."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, pad

from precedents.classifier.memory_format import store
from precedents.classifier.outputs import fed
from precedents.data.examples import Examples
from precedents.data.inputs import Inputs
from precedents.runtime.progress import tracked
from precedents.zoo.checkpoint import Checkpoint

SIZE = 128  # instances of a batch
EVALUATED = 1024  # instances whose class is predicted at once
BORDER = 4  # pixels by which an image is moved at most

Change = Callable[[Inputs], Inputs]  # of a batch to train on, drawn from the global random state


@dataclass(frozen=True)
class Schedule:
    """How a model is trained: for how long, from which seed, how fast, in which batches."""

    epochs: int
    seed: int = 0  # of the initial weights, the order of the batches and their changes
    rate: float = 1e-3
    decay: float = 0.0  # AdamW's
    cooled: bool = False  # whether the rate falls to zero over the second half
    size: int = SIZE
    change: Change | None = None

    def rate_at(self, done: float) -> float:
        """The learning rate when this share of the training is done."""
        return self.rate * min(1.0, 2 * (1 - done)) if self.cooled else self.rate


def trained(
    build: Callable[[], nn.Module],
    train: Examples,
    schedule: Schedule,
    *,
    dev: Examples | None = None,
    watch: Callable[[float], None] | None = None,
    checkpoint: Checkpoint | None = None,
) -> nn.Module:
    """A model built and trained by a schedule; the global random state is left as it was.

    With a development set, the weights of the epoch that predicts it best are kept, the first of several.
    `watch` is told the mean loss after each epoch. What a checkpoint has is not done again.
    """
    checkpoint = checkpoint or Checkpoint(None)
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(schedule.seed)
        model = build().train()
        store(model, torch.channels_last)  # convolutions are faster so
        optimizer = torch.optim.AdamW(model.parameters(), lr=schedule.rate, weight_decay=schedule.decay)
        state = checkpoint.found(model, optimizer)
        for epoch in tracked(range(state.epochs, schedule.epochs), "training"):
            loss = _epoch(model, optimizer, train, schedule, epoch)
            if watch is not None:
                watch(loss)
            if dev is not None and (now := correct(model, dev)) > state.best:
                state.best, state.weights = now, deepcopy(model.state_dict())
            state.epochs = epoch + 1
            checkpoint.keep(model, optimizer, state, over=state.epochs == schedule.epochs)
    if state.weights:
        model.load_state_dict(state.weights)
    store(model, torch.contiguous_format)
    return model.eval()


def _epoch(
    model: nn.Module, optimizer: torch.optim.Optimizer, train: Examples, schedule: Schedule, epoch: int
) -> float:
    """Every instance once, in an order drawn from the global random state; the mean loss."""
    total = 0.0
    order = torch.randperm(len(train)).split(schedule.size)
    for step, places in enumerate(order):
        for group in optimizer.param_groups:
            group["lr"] = schedule.rate_at((epoch + step / len(order)) / schedule.epochs)
        batch = train.take(places.tolist())
        inputs = batch.inputs if schedule.change is None else schedule.change(batch.inputs)
        optimizer.zero_grad()
        loss = cross_entropy(fed(model, inputs), batch.labels)
        loss.backward()
        optimizer.step()
        total += float(loss.detach()) * len(places)
    return total / len(train)


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

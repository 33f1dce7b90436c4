"""Training that goes on after a kill: what the next epoch rests on is kept in a file from time to time."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

import torch
from torch import Tensor, nn

from precedents.runtime.atomic import write
from precedents.runtime.tensor_files import sealed_tensors, unsealed_tensors

EVERY = 60.0  # seconds between two that are kept

Weights = dict[str, Tensor]


@dataclass
class TrainingState:
    """How far a training is."""

    epochs: int = 0  # that are done
    best: int = -1  # instances of the development set that the best epoch predicted correctly
    weights: Weights = field(default_factory=dict)  # of that epoch


@dataclass
class Checkpoint:
    """A file in which a training is kept. Without a path nothing is."""

    path: Path | None
    every: float = EVERY
    last: float = field(default_factory=monotonic, init=False)  # when it was kept

    def found(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> TrainingState:
        """What was kept, if anything; model, optimizer and the global random state are as they were then."""
        if self.path is None or not self.path.exists():
            return TrainingState()
        values = unsealed_tensors(self.path, "Delete it, and the training begins anew.")
        model.load_state_dict(_under("model", values))
        moments: dict[int, dict[str, Tensor]] = {}
        for name, value in _under("optimizer", values).items():
            place, _, key = name.partition(".")
            moments.setdefault(int(place), {})[key] = value
        optimizer.load_state_dict({**optimizer.state_dict(), "state": moments})
        torch.set_rng_state(values["random"])
        epochs, best = values["counts"].tolist()
        return TrainingState(epochs, best, _under("best", values))

    def keep(
        self, model: nn.Module, optimizer: torch.optim.Optimizer, state: TrainingState, over: bool
    ) -> None:
        """Writes everything, if it is time to, or if the training is over."""
        if self.path is None or (monotonic() - self.last < self.every and not over):
            return
        moments: dict[int, Any] = optimizer.state_dict()["state"]
        values = {
            "random": torch.get_rng_state(),
            "counts": torch.tensor([state.epochs, state.best]),
            **dict(_named("model", model.state_dict())),
            **dict(_named("best", state.weights)),
            **{k: v for i, each in moments.items() for k, v in _named(f"optimizer.{i}", each)},
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write(self.path, sealed_tensors(values))
        self.last = monotonic()

    def remove(self) -> None:
        """When what came of the training is kept elsewhere."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def _named(kind: str, values: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    for name, value in values.items():
        yield f"{kind}.{name}", value


def _under(kind: str, values: Mapping[str, Tensor]) -> Weights:
    return {name.removeprefix(f"{kind}."): v for name, v in values.items() if name.startswith(f"{kind}.")}

"""A training that was killed goes on with what it kept, and ends with the same weights."""

from dataclasses import replace
from functools import partial

import pytest
import torch

from precedents.data.examples import Examples
from precedents.reproduction.protocol import Repeat, header
from precedents.reproduction.records import Records
from precedents.reproduction.settings import SETTINGS
from precedents.zoo.architectures.mobilenet_v2 import convolution
from precedents.zoo.checkpoint import Checkpoint
from precedents.zoo.train import Schedule, moved, trained

DRAW = torch.Generator().manual_seed(3)
TRAIN = Examples.of((torch.randn(30, 3, 8, 8, generator=DRAW), torch.arange(30) % 3))
DEV = Examples.of((torch.randn(12, 3, 8, 8, generator=DRAW), torch.arange(12) % 3))


def build() -> torch.nn.Module:
    """With batch normalization, whose statistics are part of the state."""
    return torch.nn.Sequential(
        convolution(3, 4, size=3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(256, 3)
    )


class KilledError(Exception):
    pass


def killed(after: int):
    """Something to watch a training with, that ends it in its epoch after so many."""
    losses: list[float] = []

    def watch(loss: float) -> None:
        losses.append(loss)
        if len(losses) > after:
            raise KilledError

    return watch


@pytest.mark.parametrize("cooled", [False, True])
@pytest.mark.parametrize("every", [0.0, 3600.0])
def test_a_training_that_was_killed_ends_with_the_same_weights(tmp_path, every, cooled) -> None:
    schedule = Schedule(7, seed=5, size=8, decay=0.01, change=moved, cooled=cooled)
    run = partial(trained, build, TRAIN, schedule, dev=DEV)
    whole = run()
    state = torch.get_rng_state()
    for after in (2, 3):
        with pytest.raises(KilledError):
            run(watch=killed(after), checkpoint=Checkpoint(tmp_path / "kept", every))
    done: list[float] = []
    again = run(watch=done.append, checkpoint=Checkpoint(tmp_path / "kept", every))
    assert len(done) == (2 if every == 0 else 7)
    for name, value in whole.state_dict().items():
        assert torch.equal(value, again.state_dict()[name]), name
    assert torch.equal(state, torch.get_rng_state())
    assert not run(watch=killed(0), checkpoint=Checkpoint(tmp_path / "kept", every)).training  # nothing is left


def test_a_repeat_keeps_its_training_only_until_it_is_done(tmp_path, monkeypatch) -> None:
    setting = replace(SETTINGS["wine/mlp"], epochs=3, pretraining=2)
    records = Records.of(tmp_path, setting.name, header(setting, None))
    seen: list[str] = []
    keep = Checkpoint.keep

    def kept(self, *rest, **more):
        keep(self, *rest, **more)
        seen.extend(file.name for file in tmp_path.rglob("*training"))

    monkeypatch.setattr(Checkpoint, "keep", kept)
    repeat = Repeat(setting, 0, records)
    repeat.model("trained", repeat.split)
    assert set(seen) == {"0-trained.pretraining", "0-trained.training"}
    assert [file.name for file in tmp_path.rglob("0-*")] == ["0-trained.safetensors"]

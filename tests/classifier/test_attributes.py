"""Plain values that a forward reads are known by name; notes, counters and what a pass changes are not."""

from functools import wraps

import pytest
import torch
from torch import Tensor, nn

from precedents import Classifier, Examples
from precedents.classifier.attributes import CHANGING

TRAIN = Examples.of((torch.randn(8, 3, generator=torch.Generator().manual_seed(0)), torch.arange(8) % 2))


def scaled(module: "Reading", x: Tensor) -> Tensor:
    """A function beside the class."""
    return x * module.outside


def wrapped(function):
    """Hides it behind another one."""

    @wraps(function)
    def within(*args):
        return function(*args)

    return within


class Reading(nn.Module):
    """With attributes of all kinds."""

    of_the_class, unread = 2, 3

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(3, 2)
        self.outside, self.within, self.several, self.of = 1.5, 2, (1, [2.0]), {"a": 1.0}
        self.path, self.losses, self.lr = "/somewhere", [0.3, 0.2], 1e-3
        self.calls = self.steps = 0
        self.log: list[float] = []
        self.device, self.gradient_checkpointing = "cpu", False

    @property
    def factor(self) -> int:
        """Read within a property."""
        return self.within

    @wrapped
    def forward(self, x: Tensor) -> Tensor:
        """Counts, too."""
        self.calls += 1
        self.log.append(1.0)
        if self.training or self.gradient_checkpointing:
            self.steps += 1
        x = scaled(self, x.to(self.device)) * self.factor * self.of_the_class * self.of["a"]
        return self.linear(x * self.several[0] * (2 if getattr(self, "doubles", False) else 1))

    def training_step(self, x: Tensor) -> Tensor:
        """Of no interest."""
        return self(x) * self.lr * self.unread


def told(model: nn.Module) -> dict[str, str]:
    return Classifier.of(model, TRAIN).attributes


def test_what_forward_and_all_that_it_calls_reads_is_known() -> None:
    expected = {
        "outside": "1.5",
        "within": "2",
        "several": "(1, [2.0])",
        "of": "{'a': 1.0}",
        "of_the_class": "2",
    }
    assert told(Reading()) == expected | {"log": CHANGING}


def test_a_flag_that_is_there_later_is_known() -> None:
    model = Reading()
    model.doubles = True
    assert told(model)["doubles"] == "True"


def test_notes_and_counters_are_left_out() -> None:
    model, before = Reading(), told(Reading())
    model.path, model.losses, model.lr, model.calls, model.steps = "/elsewhere", [], 1.0, 57, 9
    model.device, model.gradient_checkpointing = torch.device("cpu"), True
    model.eval()(TRAIN.take([0]).inputs)
    assert told(model) == before


@pytest.mark.parametrize(
    ("layer", "name"), [(nn.Flatten(1), "1.start_dim"), (nn.LeakyReLU(0.3), "1.negative_slope")]
)
def test_layers_of_torch_are_read_as_well(layer, name) -> None:
    assert name in told(nn.Sequential(nn.Linear(3, 2), layer))


def test_a_forward_that_was_put_in_place_is_read() -> None:
    model = nn.Linear(3, 2)
    model.slope, plain = 2.0, model.forward
    model.forward = lambda x: plain(x) * model.slope
    assert told(model)["slope"] == "2.0"

"""Modules and parameters that take part more than once, or not at all."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from gradients.single import B, normal, ruled, slow, stirred


class Twice(nn.Module):
    """One layer at two depths."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer, self.head = layer, nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.layer(self.layer(x.tanh()).tanh())
        return self.head(x.flatten(2).mean(dim=2) if x.ndim > 2 else x)


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (nn.Linear(6, 6), (6,)),
        (nn.Conv1d(6, 6, 3, padding=1), (6, 4)),
        (nn.ConvTranspose2d(6, 6, 3, padding=1), (6, 2, 3)),
        (nn.BatchNorm1d(6), (6, 4)),
        (nn.GroupNorm(2, 6), (6, 4)),
        (nn.InstanceNorm2d(6, affine=True), (6, 2, 3)),
        (nn.LayerNorm(6), (6,)),
        (nn.RMSNorm(6), (6,)),
        (nn.PReLU(6), (6, 4)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_layer_called_twice(layer, shape) -> None:
    ruled(stirred(Twice(layer)), normal(B, *shape))


class AttendsTwice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention, self.head = nn.MultiheadAttention(6, 2, batch_first=True), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        y, _ = self.attention(x, x, x)
        z, _ = self.attention(y, x, x, need_weights=False)
        return self.head(z.mean(dim=1))


def test_attention_called_twice() -> None:
    ruled(stirred(AttendsTwice()), normal(B, 3, 6))


class Bilinears(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.pair, self.head = nn.Bilinear(6, 6, 6), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.pair(self.pair(x, x.tanh()), x))


def test_a_bilinear_layer_called_twice() -> None:
    ruled(stirred(Bilinears()), normal(B, 6))


class LanguageModel(nn.Module):
    """The matrix of the output is the table of the input."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.out = nn.Embedding(3, 5), nn.Linear(5, 3)
        self.out.weight = self.words.weight

    def forward(self, tokens: Tensor) -> Tensor:
        return self.out(self.words(tokens).tanh().mean(dim=1))


def test_an_embedding_tied_to_the_output() -> None:
    ruled(stirred(LanguageModel()), torch.randint(3, (B, 4)))


class Tied(nn.Module):
    """Two modules with one matrix, which is wide enough to be kept as factors if it were used once."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.one, self.other = nn.Linear(width, width), nn.Linear(width, width, bias=False)
        self.other.weight = self.one.weight
        self.head = nn.Linear(width, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.other(self.one(x).tanh()))


@pytest.mark.parametrize("width", [4, 40])
def test_two_modules_with_one_parameter(width) -> None:
    ruled(stirred(Tied(width)), normal(B, width))


def test_one_module_under_two_names() -> None:
    inner = nn.Linear(4, 4)
    ruled(stirred(nn.Sequential(inner, nn.Tanh(), inner, nn.Linear(4, 3))), normal(B, 4))


def test_one_attention_under_two_names() -> None:
    layer = nn.TransformerEncoderLayer(6, 2, 5, batch_first=True)
    ruled(stirred(nn.Sequential(layer, layer, nn.Flatten(), nn.Linear(18, 3))), normal(B, 3, 6))


def test_a_frozen_layer_between_others() -> None:
    model = stirred(nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 5), nn.Tanh(), nn.Linear(5, 3)))
    model[2].requires_grad_(False)
    ruled(model, normal(B, 4))


def test_a_frozen_first_layer() -> None:
    model = stirred(nn.Sequential(nn.Conv1d(2, 3, 2), nn.BatchNorm1d(3), nn.Flatten(), nn.Linear(9, 3)))
    model[0].requires_grad_(False)
    ruled(model, normal(B, 2, 4))


def test_all_but_the_head_frozen() -> None:
    model = stirred(nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)))
    model[0].requires_grad_(False)
    ruled(model, normal(B, 4))


class Idle(nn.Module):
    """Layers that do not run, or run for nothing; the second is wide enough to be kept as factors."""

    def __init__(self) -> None:
        super().__init__()
        self.spare, self.ignored, self.head = nn.Linear(4, 5), nn.Linear(40, 40), nn.Linear(40, 3)

    def forward(self, x: Tensor) -> Tensor:
        self.ignored(x)
        return self.head(x)


def test_layers_that_take_no_part() -> None:
    ruled(stirred(Idle()), normal(B, 40))


class Outside(nn.Module):
    """A parameter used outside of the layer that owns it."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.head = nn.Linear(4, 4), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(linear(self.layer(x).tanh(), self.layer.weight))


def test_a_parameter_used_outside_of_its_layer_is_slow_and_right() -> None:
    plan, said = slow(stirred(Outside()), normal(B, 4))
    assert plan.vectorised
    assert "outside" in said


class TwoPlaces(nn.Module):
    """One recurrent layer and one attention under two names of the same parent."""

    def __init__(self) -> None:
        super().__init__()
        self.first = self.second = nn.MultiheadAttention(4, 2, batch_first=True)
        self.read = self.again = nn.GRU(4, 4, batch_first=True)
        self.head = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.first(x, x, x, need_weights=False)[0]
        x = x + self.second(x, x, x, need_weights=False)[0]
        return self.head(self.again(self.read(x)[0])[0].mean(dim=1))


def test_a_rewritten_layer_in_two_places_of_one_parent() -> None:
    ruled(stirred(TwoPlaces()), normal(B, 3, 4))

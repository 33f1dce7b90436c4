"""A convolution and the normalization after it, as one where nothing else sees what is between them."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from gradients.single import CLASSES, Alone, B, everywhere, frozen, normal, one_at_a_time, ruled, slow, stirred
from gradients.test_conv import convolutions
from precedents.gradients.folding import Folded, Pairs, foldable
from precedents.gradients.plan import Plan

NORMS = {3: nn.BatchNorm1d, 4: nn.BatchNorm2d, 5: nn.BatchNorm3d}


def folds(plan: Plan) -> int:
    assert plan.recording is not None
    return sum(isinstance(module, Folded) for module in plan.recording.first.clone.modules())


def pairs(model: nn.Module, x: Tensor) -> Pairs:
    return foldable(model, lambda: model(x))[1]


def block(stride: int = 1) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(2, 3, 3, stride, padding=1), nn.BatchNorm2d(3), nn.ReLU(inplace=True))


def headed(body: nn.Module, width: int) -> nn.Module:
    return stirred(nn.Sequential(body, nn.Flatten(), nn.Linear(width, CLASSES)))


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")
@settings(max_examples=40)
@given(convolutions(), st.booleans(), st.sampled_from(["", "weight", "bias"]))
def test_any_convolution(drawn, affine, freeze) -> None:
    conv, shape = drawn
    norm = NORMS[conv.weight.ndim](conv.out_channels, affine=affine)
    everywhere(nn.Sequential(conv, norm), normal(B, *shape), freeze=freeze)


def test_both_become_one() -> None:
    assert (
        folds(
            ruled(headed(nn.Sequential(block(), nn.Conv2d(3, 2, 1), nn.BatchNorm2d(2)), 72), normal(B, 2, 6, 6))
        )
        == 2
    )


def test_a_part_of_the_parameters_is_frozen() -> None:
    for name in ("0.0.weight", "0.0.bias", "0.1.weight", "0.1.bias"):
        model = headed(block(), 108)
        model.get_parameter(name).requires_grad_(False)
        assert folds(ruled(model, normal(B, 2, 6, 6))) == 1
    assert folds(ruled(frozen(headed(block(), 108), "bias"), normal(B, 2, 6, 6))) == 1


def test_a_channel_that_is_multiplied_by_zero() -> None:
    model = headed(block(), 108)
    with torch.no_grad():
        model.get_parameter("0.1.weight")[1] = 0
    assert folds(ruled(model, normal(B, 2, 6, 6))) == 1


def test_few_positions_do_not_pay() -> None:
    assert folds(ruled(headed(block(stride=3), 12), normal(B, 2, 6, 6))) == 0


class Between(nn.Module):
    """A convolution and a normalization with something between them."""

    def __init__(self, between) -> None:
        super().__init__()
        self.conv, self.norm, self.between = nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), between

    def forward(self, x: Tensor) -> Tensor:
        return self.between(self.norm, self.conv, x)


def around(norm: nn.Module, conv: nn.Module, x: Tensor) -> Tensor:
    y = conv(x)
    return norm(y).tanh() + y


def inside(norm: nn.Module, conv: nn.Module, x: Tensor) -> Tensor:
    return norm(conv(x).mul_(2)).tanh()


def later(norm: nn.Module, conv: nn.Module, x: Tensor) -> Tensor:
    y = conv(x)
    z = norm(y)
    return z.tanh() + y.mul(3).tanh()


def again(norm: nn.Module, conv: nn.Module, x: Tensor) -> Tensor:
    return norm(norm(conv(x)).tanh())


def twice(norm: nn.Module, conv: nn.Module, x: Tensor) -> Tensor:
    return norm(conv(x)).tanh() + conv(x)


def test_a_normalization_alone_sees_what_the_convolution_returns() -> None:
    x = normal(B, 2, 8, 8)
    model = Alone(stirred(Between(lambda norm, conv, x: norm(conv(x)).tanh() + conv.weight.sum())), x)
    assert pairs(model, x) == {"layer.conv": "layer.norm"}


def test_what_is_seen_between_the_two_is_kept() -> None:
    x = normal(B, 2, 8, 8)
    for between in (around, inside, later, again, twice):
        model = Alone(stirred(Between(between)), x)
        assert not pairs(model, x)
        assert folds(ruled(model, x)) == 0


def test_hooks_between_the_two_are_kept() -> None:
    model = headed(block(), 108)
    model.get_submodule("0.0").register_forward_hook(lambda _, __, output: output * 2)
    assert not pairs(model, normal(B, 2, 6, 6))
    assert folds(ruled(model, normal(B, 2, 6, 6))) == 0


class Own(nn.BatchNorm2d):
    """A type of the user's own."""

    def forward(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return super().forward(x) * 2


def test_other_types_are_not_folded() -> None:
    model = headed(nn.Sequential(nn.Conv2d(2, 3, 3), Own(3)), 48)
    _, message = slow(model, normal(B, 2, 6, 6))
    assert "Own has no rule" in message


def test_the_scale_of_weights_before_a_normalization_changes_gradients_and_no_output() -> None:
    x = normal(B, 2, 4, 4)
    model = headed(block(), 3 * 16)
    conv, norm = model[0][0], model[0][1]
    labels = torch.arange(B) % CLASSES
    outputs, before = model(x), one_at_a_time(model, x, labels)
    with torch.no_grad():
        for each in (conv.weight, conv.bias, norm.running_mean):
            each *= 8
        norm.running_var *= 64
        norm.eps *= 64
    torch.testing.assert_close(model(x), outputs)
    ruled(model, x)
    after, own = one_at_a_time(model, x, labels), conv.weight.numel() + conv.bias.numel()
    torch.testing.assert_close(after[:, :own], before[:, :own] / 8)
    torch.testing.assert_close(after[:, own:], before[:, own:])

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from gradients.single import Alone, B, everywhere, factored, normal, ruled, stirred

KINDS = {1: nn.ConvTranspose1d, 2: nn.ConvTranspose2d, 3: nn.ConvTranspose3d}


@st.composite
def convolutions(draw) -> tuple[nn.Module, tuple[int, ...]]:
    """A transposed convolution of any settings and the shape of an instance that gives an output."""
    n = draw(st.integers(1, 3))
    several = st.tuples(*[st.integers(1, 3)] * n)
    groups, inner, outer = (draw(st.integers(1, top)) for top in (3, 2, 2))
    kernel, stride, dilation, padding = draw(several), draw(several), draw(several), draw(several)
    extra = [draw(st.integers(0, max(s, d) - 1)) for s, d in zip(stride, dilation, strict=True)]
    padding = [min(p, d * (k - 1) // 2) for p, d, k in zip(padding, dilation, kernel, strict=True)]
    layer = KINDS[n](
        groups * inner, groups * outer, kernel, stride, padding, extra, groups, draw(st.booleans()), dilation
    )
    lengths = draw(st.tuples(*[st.integers(1, 4 if n < 3 else 2)] * n))
    return layer, (groups * inner, *lengths)


@settings(max_examples=60)
@given(convolutions(), st.sampled_from(["", "weight", "bias"]))
def test_conv_transpose(drawn, freeze) -> None:
    layer, shape = drawn
    everywhere(layer, normal(B, *shape), freeze=freeze)


@pytest.mark.parametrize("n", KINDS)
def test_a_wide_pointwise_conv_transpose_is_kept_as_factors(n) -> None:
    x = normal(B, 40, *[1] * n)
    assert "layer.weight" in factored(ruled(Alone(KINDS[n](40, 50, 1).double(), x), x))


class Sized(nn.Module):
    """The call says how large the output is."""

    def __init__(self, by_name: bool) -> None:
        super().__init__()
        self.up = nn.ConvTranspose2d(2, 3, 3, stride=2)
        self.by_name = by_name

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.up(x, output_size=[10, 9]) if self.by_name else self.up(x, [10, 9])


@pytest.mark.parametrize("by_name", [False, True])
def test_a_call_with_an_output_size(by_name) -> None:
    x = normal(B, 2, 4, 4)
    ruled(Alone(stirred(Sized(by_name)), x), x)

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from gradients.single import Alone, B, everywhere, factored, normal, ruled

KINDS = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}


@st.composite
def convolutions(draw) -> tuple[nn.Module, tuple[int, ...]]:
    """A convolution of any settings and the shape of an instance that is large enough for it."""
    n = draw(st.integers(1, 3))
    several = st.tuples(*[st.integers(1, 3)] * n)
    groups, inner, outer = (draw(st.integers(1, top)) for top in (3, 2, 2))
    kernel, stride, dilation = draw(several), draw(several), draw(several)
    padding = draw(st.tuples(*[st.integers(0, 2)] * n) | st.sampled_from(["valid", "same"]))
    if padding == "same":
        stride = 1
    mode = draw(st.sampled_from(["zeros", "reflect", "replicate", "circular"]))
    layer = KINDS[n](
        groups * inner, groups * outer, kernel, stride, padding, dilation, groups, draw(st.booleans()), mode
    )
    spans = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    longer = draw(st.tuples(*[st.integers(0, 3 if n < 3 else 1)] * n))
    lengths = [max(span, 3) + more for span, more in zip(spans, longer, strict=True)]
    return layer, (groups * inner, *lengths)


@settings(max_examples=60)
@given(convolutions(), st.sampled_from(["", "weight", "bias"]))
def test_conv(drawn, freeze) -> None:
    layer, shape = drawn
    everywhere(layer, normal(B, *shape), freeze=freeze)


@pytest.mark.parametrize("n", KINDS)
def test_depthwise_conv(n) -> None:
    everywhere(KINDS[n](6, 6, 3, padding=1, groups=6), normal(B, 6, *[4] * n))


@pytest.mark.parametrize(
    "settings",
    [
        {"padding": 3},
        {"stride": 2},
        {"dilation": 2, "padding": 4},
        {"padding": "same", "padding_mode": "reflect"},
    ],
    ids=str,
)
@pytest.mark.parametrize("kernel", [5, (7, 4)])
@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")
def test_a_large_depthwise_kernel(kernel, settings) -> None:
    everywhere(nn.Conv2d(3, 3, kernel, groups=3, **settings), normal(B, 3, 15, 13))


@pytest.mark.parametrize("n", KINDS)
def test_large_depthwise_kernels_in_any_dimension(n) -> None:
    everywhere(KINDS[n](2, 2, (17, 5, 3)[n - 1], padding=1, groups=2), normal(B, 2, *[(20, 7, 4)[n - 1]] * n))


@pytest.mark.parametrize("n", KINDS)
def test_a_wide_pointwise_conv_is_kept_as_factors(n) -> None:
    x = normal(B, 40, *[1] * n)
    assert "layer.weight" in factored(ruled(Alone(KINDS[n](40, 50, 1).double(), x), x))


@pytest.mark.parametrize("settings", [{"stride": 2}, {"padding": 1}, {"groups": 2}, {"padding": "same"}])
def test_pointwise_conv(settings) -> None:
    everywhere(nn.Conv2d(4, 6, 1, **settings), normal(B, 4, 3, 5))

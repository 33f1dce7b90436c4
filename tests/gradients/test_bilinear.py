from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from gradients.single import B, everywhere, normal

sizes = st.integers(1, 5)


@settings(max_examples=20)
@given(st.lists(sizes, max_size=2), sizes, sizes, sizes, st.booleans(), st.sampled_from(["", "weight", "bias"]))
def test_bilinear(positions, one, other, out, bias, freeze) -> None:
    layer = nn.Bilinear(one, other, out, bias=bias)
    everywhere(layer, normal(B, *positions, one), normal(B, *positions, other), freeze=freeze)

from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from gradients.single import B, everywhere, normal

sizes = st.integers(1, 4)


@settings(max_examples=20)
@given(sizes, st.lists(sizes, max_size=3), st.booleans())
def test_prelu(channels, lengths, each) -> None:
    everywhere(nn.PReLU(channels if each else 1), normal(B, channels, *lengths))

from hypothesis import given, settings
from hypothesis import strategies as st
from single import B, everywhere, normal
from torch import nn

sizes = st.integers(1, 4)


@settings(max_examples=20)
@given(sizes, st.lists(sizes, max_size=3), st.booleans())
def test_prelu(channels, lengths, each) -> None:
    everywhere(nn.PReLU(channels if each else 1), normal(B, channels, *lengths))

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from precedents.gradients.factors import Outer
from precedents.gradients.rows import Rows, joined


def rows(n: int) -> Rows:
    factor = Outer(nn.Parameter(torch.empty(3, 4)), torch.randn(n, 2, 3), torch.randn(n, 2, 4))
    return Rows(torch.randn(n, 5), torch.rand(n).double(), ((slice(2, 14), factor),))


def part(whole: Rows, places: range) -> Rows:
    own = slice(places.start, places.stop)
    factors = tuple((place, factor.changed(lambda values: values[own])) for place, factor in whole.factors)
    return Rows(whole.matrix[own].clone(), whole.scale[own], factors)


@given(st.integers(1, 7), st.integers(1, 8))
def test_joined_blocks_are_the_rows(n, size) -> None:
    whole = rows(n)
    places = [range(start, min(start + size, n)) for start in range(0, n, size)]
    again = joined(((place, part(whole, place)) for place in places), n)
    assert torch.equal(again.dense(), whole.dense())
    assert again.width == whole.width == 17

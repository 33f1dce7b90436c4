import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from precedents.gradients.factors import Outer
from precedents.gradients.rows import Collected, Rows, joined


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


def test_rows_are_put_together_in_any_order_with_any_positions() -> None:
    parameter, collected = nn.Parameter(torch.empty(3, 4)), Collected(5)
    wanted = torch.empty(5, 17, dtype=torch.double)
    for places, t in ((torch.tensor([3, 1]), 2), (torch.tensor([4]), 6), (torch.tensor([0, 2]), 1)):
        b = len(places)
        factor = Outer(parameter, torch.randn(b, t, 3), torch.randn(b, t, 4))
        block = Rows(torch.randn(b, 5), torch.rand(b).double(), ((slice(2, 14), factor),))
        wanted[places] = block.dense()
        collected.put(places, block)
    torch.testing.assert_close(collected.rows().dense(), wanted, rtol=0, atol=1e-6)


@pytest.mark.parametrize(("m", "b"), [(1, 1), (2, 28), (40, 30)])
def test_products_of_long_rows_keep_the_digits_of_single_precision(m, b) -> None:
    """One plain product is off by 4e-6 to 5e-5, the more the fewer rows it has."""
    mine, theirs = torch.rand(m, 2**21), torch.rand(b, 2**21)
    wanted = mine.double() @ theirs.double().T
    torch.testing.assert_close(Rows.of(mine).products(Rows.of(theirs)), wanted, rtol=2e-6, atol=0)


def test_large_outer_products_that_are_formed_in_pieces_keep_them_too() -> None:
    def factor(n: int) -> Outer:
        return Outer(nn.Parameter(torch.empty(1024, 2048)), torch.rand(n, 400, 1024), torch.rand(n, 400, 2048))

    mine, theirs = factor(2), factor(3)
    wanted = mine.formed().flatten(1).double() @ theirs.formed().flatten(1).double().T
    torch.testing.assert_close(mine._in_pieces(theirs), wanted, rtol=2e-6, atol=0)

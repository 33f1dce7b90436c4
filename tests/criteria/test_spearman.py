import pytest
import scipy.stats
import torch
from hypothesis import given
from hypothesis import strategies as st

from precedents.criteria._spearman import doubled_ranks, spearman

few = st.lists(st.integers(-2, 2), min_size=2, max_size=30)  # few distinct values: many ties
pairs = st.integers(2, 30).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(-2, 2), min_size=n, max_size=n)] * 2)
)


def row(values) -> torch.Tensor:
    return torch.tensor([list(values)], dtype=torch.double)


@given(pairs)
def test_it_is_scipys_with_ties(pair) -> None:
    first, second = pair
    if len(set(first)) > 1 and len(set(second)) > 1:
        expected = scipy.stats.spearmanr(first, second).statistic
        assert float(spearman(row(first), row(second))) == pytest.approx(expected, abs=1e-12)


@given(few)
def test_doubled_ranks_are_scipys(values) -> None:
    expected = 2 * scipy.stats.rankdata(values) - 1 - len(values)
    assert doubled_ranks(row(values))[0].tolist() == expected.tolist()


@given(few)
def test_equal_orders_correlate_at_exactly_one(values) -> None:
    assert float(spearman(row(values), row(2.0**v for v in values))) == 1.0


@given(few)
def test_opposite_orders_correlate_at_exactly_minus_one(values) -> None:
    if len(set(values)) > 1:
        assert float(spearman(row(values), -row(values))) == -1.0


@pytest.mark.parametrize("n", [2, 1000, 60_000])
def test_long_equal_orders_correlate_at_exactly_one(n) -> None:
    values = torch.randn(1, n, generator=torch.Generator().manual_seed(0), dtype=torch.double)
    assert float(spearman(values, 3 * values + 1)) == 1.0


def test_two_constant_rows_agree() -> None:
    assert float(spearman(row([1, 1, 1]), row([2, 2, 2]))) == 1.0


def test_a_constant_row_shares_nothing_with_an_ordered_one() -> None:
    assert float(spearman(row([1, 1, 1]), row([1, 2, 3]))) == 0.0


def test_rows_are_correlated_one_by_one() -> None:
    first = torch.tensor([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [5.0, 5.0, 5.0]])
    second = torch.tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0], [1.0, 2.0, 3.0]])
    assert spearman(first, second).tolist() == [1.0, -1.0, 0.0]


def test_nan_is_lowest() -> None:
    assert doubled_ranks(row([1.0, torch.nan, 2.0])).tolist() == [[0.0, -2.0, 2.0]]


@given(pairs)
def test_it_is_symmetric(pair) -> None:
    first, second = map(row, pair)
    assert torch.equal(spearman(first, second), spearman(second, first))

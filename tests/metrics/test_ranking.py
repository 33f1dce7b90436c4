import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from precedents import InputError, NumericalError
from precedents.metrics import ranking
from precedents.metrics.ranking import TopK, checked_k, descending, ranked, top_k

rows = st.lists(st.integers(-2, 2), min_size=8, max_size=20)  # few distinct values: many ties
matrices = st.integers(8, 20).flatmap(
    lambda n: st.lists(st.lists(st.integers(-2, 2), min_size=n, max_size=n), min_size=1, max_size=4)
)
NAN = float("nan")


def tensor(values) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.double)


def same(a: TopK, b: TopK) -> bool:
    return torch.equal(a.indices, b.indices) and torch.equal(a.scores, b.scores)


@given(matrices, st.integers(1, 8), st.integers(1, 10))
def test_any_blocks_give_the_stable_sort(values, k, size) -> None:
    scores = tensor(values)
    expected = scores.argsort(dim=1, descending=True, stable=True)[:, :k]
    found = top_k(scores.split(size, dim=1), k)
    assert torch.equal(found.indices, expected)
    assert torch.equal(found.scores, scores.gather(1, expected))


@given(matrices, st.integers(1, 8), st.integers(1, 30))
def test_rows_are_ordered_some_at_a_time(values, k, at_once) -> None:
    whole = ranked([tensor(values)], k)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ranking, "AT_ONCE", at_once)
        some = ranked([tensor(values)], k)
    assert same(some[0], whole[0])
    assert torch.equal(some[1], whole[1])


def test_ties_go_to_the_smaller_index() -> None:
    assert top_k([tensor([[1, 2, 2, 1, 2]])], 5).indices.tolist() == [[1, 2, 4, 0, 3]]


def test_ties_between_blocks_go_to_the_smaller_index() -> None:
    assert top_k([tensor([[1, 2]]), tensor([[2, 2]])], 2).indices.tolist() == [[1, 2]]


@given(
    st.lists(st.sampled_from([NAN, -1.0, 0.0, 1.0, float("-inf"), float("inf")]), min_size=3, max_size=15),
    st.integers(1, 5),
)
def test_nan_never_ranks(row, size) -> None:
    scores = tensor([row])
    count = int((~scores.isnan()).sum())
    if count:
        found = top_k(scores.split(size, dim=1), count)
        assert not found.scores.isnan().any()
        expected = sorted((i for i in range(len(row)) if row[i] == row[i]), key=lambda i: -row[i])
        assert found.indices.tolist() == [expected]


def test_nan_comes_last_even_after_minus_infinity() -> None:
    assert descending(tensor([[NAN, float("-inf"), 0, NAN]])).tolist() == [[2, 1, 0, 3]]


def test_too_few_numbers_are_an_error_that_names_the_case() -> None:
    scores = tensor([[1, 2, 3], [NAN, 2, NAN]])
    with pytest.raises(NumericalError, match=r"(?i)only 1 training instances .* case 1"):
        top_k([scores], 2)


@pytest.mark.parametrize("k", [0, -1, 4, 1.0, True, "2", None])
def test_k_must_be_a_number_of_instances(k) -> None:
    with pytest.raises(InputError, match=r"but there are 3 training instances. Ask for k from 1 to 3"):
        checked_k(k, 3)


@pytest.mark.parametrize("k", [1, 3])
def test_k_may_be_all_of_them(k) -> None:
    assert checked_k(k, 3) == k


def test_more_than_the_blocks_hold_is_an_error() -> None:
    with pytest.raises(InputError, match=r"there are 4 training instances"):
        top_k([tensor([[1, 2]]), tensor([[3, 4]])], 5)


def test_no_blocks_hold_nothing() -> None:
    with pytest.raises(InputError, match=r"there are 0 training instances"):
        top_k([], 1)


@given(rows, st.integers(1, 6), st.integers(1, 3), st.integers(4, 7))
def test_joining_is_associative_and_the_same_in_any_order(row, k, first, second) -> None:
    def part(start, stop):
        scores = tensor([row[start:stop]])
        order = descending(scores)[:, :k]
        return TopK(order + start, scores.gather(1, order))

    a, b, c = part(0, first), part(first, second), part(second, len(row))
    assert same(a.joined(b).joined(c), a.joined(b.joined(c)))
    assert same(a.joined(b), b.joined(a))
    assert same(a.joined(b).best(k).joined(c).best(k), a.joined(b).joined(c).best(k))


@given(rows, st.integers(1, 8))
def test_the_best_of_the_best_are_the_best(row, k) -> None:
    scores = tensor([row])
    assert same(top_k([scores], len(row)).best(k), top_k([scores], k))


@given(matrices, st.integers(1, 8))
def test_rows_do_not_see_each_other(values, k) -> None:
    scores = tensor(values)
    together = top_k([scores], k).indices
    assert torch.equal(together, torch.cat([top_k([row[None]], k).indices for row in scores]))


@given(matrices, st.integers(1, 8), st.integers(1, 10))
def test_what_is_below_is_counted_in_any_blocks(values, k, size) -> None:
    scores = tensor(values)
    top, below = ranked(scores.split(size, dim=1), k)
    assert torch.equal(below, (scores[:, None, :] < top.scores[:, :, None]).sum(dim=2))


def test_nan_is_below_every_number() -> None:
    assert ranked([tensor([[NAN, 2, 1]]), tensor([[NAN, 2, 3]])], 3)[1].tolist() == [[5, 3, 3]]

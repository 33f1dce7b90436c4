import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from precedents.explain.cautions import counted, hubs, outlying


def test_counts_are_ordered_by_count_then_index() -> None:
    assert list(counted([5, 2, 5, 9, 2, 5, 1]).items()) == [(5, 3), (2, 2), (1, 1), (9, 1)]


@pytest.mark.parametrize(
    ("counts", "cases", "classes", "expected"),
    [
        ({4: 3, 1: 2}, 20, 10, {4: 0.15}),  # at least three cases
        ({4: 3, 1: 2}, 19, 10, {}),  # too few cases to tell
        ({4: 10, 1: 9}, 200, 10, {4: 0.05}),  # half of a class's twenty
        ({4: 49, 1: 50}, 200, 2, {1: 0.25}),
    ],
)
def test_a_hub_answers_three_cases_and_half_a_class(counts, cases, classes, expected) -> None:
    assert hubs(counts, cases, classes) == expected


def test_an_outlying_length_is_beyond_almost_all_and_thrice_the_median() -> None:
    lengths = torch.ones(1000, dtype=torch.double)
    lengths[[3, 500]] = torch.tensor([2.9, 3.1], dtype=torch.double)
    assert outlying(lengths).nonzero().flatten().tolist() == [500]


def test_at_most_one_in_a_hundred_is_outlying() -> None:
    lengths = torch.ones(1000, dtype=torch.double)
    lengths[:100] = torch.linspace(10, 20, 100, dtype=torch.double)
    assert int(outlying(lengths).sum()) == 10


@given(st.lists(st.floats(1, 2.9), min_size=1, max_size=50))
def test_lengths_within_three_times_each_other_are_not_outlying(lengths) -> None:
    assert not outlying(torch.tensor(lengths, dtype=torch.double)).any()


def test_lengths_that_are_no_numbers_change_nothing() -> None:
    lengths = torch.ones(100, dtype=torch.double)
    lengths[9] = 50
    broken = torch.cat([lengths, torch.tensor([torch.nan, torch.nan], dtype=torch.double)])
    assert outlying(broken).nonzero().flatten().tolist() == [9]
    assert not outlying(torch.full((3,), torch.nan)).any()

import itertools
import math

import pytest
import scipy.stats
import torch
from hypothesis import given
from hypothesis import strategies as st

from precedents.criteria._result import Result, bootstrap, chance_of_all, rate, wilson


@pytest.mark.parametrize("count", [1, 6, 10, 21, 44, 500])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 1.0])
def test_wilsons_interval_is_scipys(count, share) -> None:
    successes = round(share * count)
    theirs = scipy.stats.binomtest(successes, count).proportion_ci(0.95, method="wilson")
    assert wilson(successes, count) == pytest.approx((theirs.low, theirs.high), abs=2e-5)


@given(st.integers(1, 3000), st.floats(0, 1))
def test_wilsons_interval_holds_the_rate(count, share) -> None:
    successes = round(share * count)
    low, high = wilson(successes, count)
    assert 0 <= low <= successes / count <= high <= 1


@pytest.mark.parametrize("count", [6, 11, 21, 22, 44])
def test_wilsons_interval_reaches_the_ends(count) -> None:
    assert wilson(0, count)[0] == 0
    assert wilson(count, count)[1] == 1


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=30))
def test_the_bootstrap_interval_lies_within_the_values(values) -> None:
    low, high = bootstrap(torch.tensor(values, dtype=torch.double), draws=200)
    assert min(values) - 1e-12 <= low <= high <= max(values) + 1e-12


def test_the_bootstrap_interval_is_near_that_of_a_normal_mean() -> None:
    values = torch.randn(400, generator=torch.Generator().manual_seed(0), dtype=torch.double)
    low, high = bootstrap(values)
    half = 1.96 * float(values.std()) / 20
    assert low == pytest.approx(float(values.mean()) - half, abs=0.02)
    assert high == pytest.approx(float(values.mean()) + half, abs=0.02)


def test_the_bootstrap_is_the_same_at_every_call_and_leaves_the_random_state_alone() -> None:
    values = torch.arange(10, dtype=torch.double)
    before = torch.get_rng_state()
    assert bootstrap(values) == bootstrap(values)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("members", "n", "k"), [(3, 7, 1), (3, 7, 2), (3, 7, 3), (3, 7, 4), (7, 7, 7), (0, 5, 1)]
)
def test_chance_is_the_share_of_all_choices(members, n, k) -> None:
    choices = list(itertools.combinations(range(n), k))
    share = sum(all(i < members for i in choice) for choice in choices) / len(choices)
    assert chance_of_all(torch.tensor([members]), n, k) == pytest.approx(share)


def test_chance_is_the_mean_over_cases() -> None:
    expected = (math.comb(4, 2) + math.comb(6, 2)) / 2 / math.comb(10, 2)
    assert chance_of_all(torch.tensor([4, 6]), 10, 2) == pytest.approx(expected)


def test_chance_is_what_random_rankings_get() -> None:
    random = torch.Generator().manual_seed(0)
    labels = torch.tensor([0] * 5 + [1] * 3)
    hits = [bool((labels[torch.randperm(8, generator=random)[:2]] == 0).all()) for _ in range(20_000)]
    assert chance_of_all(torch.tensor([5]), 8, 2) == pytest.approx(sum(hits) / len(hits), abs=0.015)


@pytest.mark.parametrize(
    ("successes", "chance", "verdict"),
    [
        ([1] * 100, 0.1, "passed"),
        ([1] * 95 + [0] * 5, 0.1, "passed"),
        ([1] * 94 + [0] * 6, 0.1, "weak"),
        ([1] * 50 + [0] * 50, 0.1, "weak"),
        ([1] * 49 + [0] * 51, 0.1, "failed"),
        ([1] * 60 + [0] * 40, 0.5, "weak"),
        ([1] * 59 + [0] * 41, 0.5, "failed"),
        ([1] * 2, 0.5, "weak"),  # too few to decide
    ],
)
def test_the_verdict_on_a_rate(successes, chance, verdict) -> None:
    assert rate("name", torch.tensor(successes), chance, demand=0.95).verdict == verdict


def test_a_result_sums_up_its_values() -> None:
    result = rate("name", torch.tensor([1, 1, 0, 1]), 0.25, demand=0.95)
    assert result.mean == 0.75
    assert result.std == pytest.approx(0.4330127)
    assert (result.low, result.high) == wilson(3, 4)


def test_a_result_prints_as_a_line() -> None:
    result = Result("name", torch.tensor([1.0, 0.0]), 0.1, 0.9, 0.25, "weak")
    assert str(result) == "name: 0.500 ± 0.500 over 2 cases, 95% interval [0.100, 0.900], chance 0.250: weak"

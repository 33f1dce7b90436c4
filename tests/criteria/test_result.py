import itertools
import math

import pytest
import scipy.stats
import torch
from hypothesis import given
from hypothesis import strategies as st

from precedents.criteria._interval import exact, student, student_quantile, wilson
from precedents.criteria._result import Result, chance_of_all, correlation, rate
from precedents.errors import InputError


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


@pytest.mark.parametrize("count", [1, 2, 6, 21, 500, 10_000])
@pytest.mark.parametrize("share", [0.0, 0.03, 0.5, 0.97, 1.0])
def test_the_exact_interval_is_scipys(count, share) -> None:
    successes = round(share * count)
    theirs = scipy.stats.binomtest(successes, count).proportion_ci(0.95, method="exact")
    assert exact(successes, count) == pytest.approx((theirs.low, theirs.high), abs=1e-9)


@given(st.integers(1, 10**6), st.floats(1e-3, 1 - 1e-3))
def test_the_exact_interval_of_shares_is_that_of_betas(count, share) -> None:
    total = share * count
    low, high = exact(total, count)
    assert 0 <= low <= share <= high <= 1
    assert low == pytest.approx(scipy.stats.beta.ppf(0.025, total, count - total + 1), abs=1e-8)
    assert high == pytest.approx(scipy.stats.beta.ppf(0.975, total + 1, count - total), abs=1e-8)


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 10, 100, 10_000])
def test_students_quantile_is_scipys(freedom) -> None:
    assert student_quantile(freedom) == pytest.approx(scipy.stats.t.ppf(0.975, freedom), rel=1.25e-3)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=30))
def test_students_interval_holds_the_mean_and_has_a_width(values) -> None:
    given = torch.tensor(values, dtype=torch.double)
    mean, std = float(given.mean()), float(given.std(correction=0))
    low, high = student(mean, std, len(values))
    assert -1 <= low <= mean + 1e-12
    assert mean - 1e-12 <= high <= 1
    assert high - low > 0.1


def test_students_interval_is_scipys_and_wider_by_what_was_not_met() -> None:
    values = torch.randn(400, generator=torch.Generator().manual_seed(0), dtype=torch.double) / 5
    low, high = scipy.stats.t.interval(0.95, 399, float(values.mean()), scipy.stats.sem(values.numpy()))
    unmet = 1 - 0.025 ** (1 / 400)
    ours = student(float(values.mean()), float(values.std(correction=0)), 400)
    assert ours == pytest.approx((low - unmet * (low + 1), high + unmet * (1 - high)), abs=1e-6)


@pytest.mark.parametrize("count", [2, 5, 20, 100])
def test_values_that_are_all_alike_leave_open_what_none_of_them_showed(count) -> None:
    low, high = student(0.5, 0.0, count)
    unmet = 1 - 0.025 ** (1 / count)  # with which a kind of cases is missed by all with a chance of 2.5%
    assert (1 - unmet) ** count == pytest.approx(0.025)
    assert (low, high) == pytest.approx((0.5 - 1.5 * unmet, 0.5 + 0.5 * unmet))


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
    ("successes", "chance", "verdict", "paper"),
    [
        ([1] * 100, 0.1, "passed", "passed"),
        ([1] * 95 + [0] * 5, 0.1, "undecided", "passed"),
        ([1] * 94 + [0] * 6, 0.1, "undecided", "weak"),
        ([1] * 85 + [0] * 15, 0.1, "weak", "weak"),
        ([1] * 50 + [0] * 50, 0.1, "undecided", "weak"),
        ([1] * 49 + [0] * 51, 0.1, "undecided", "failed"),
        ([1] * 30 + [0] * 70, 0.1, "failed", "failed"),
        ([1] * 62 + [0] * 38, 0.5, "weak", "weak"),
        ([1] * 59 + [0] * 41, 0.5, "undecided", "failed"),
        ([1] * 2, 0.5, "undecided", "weak"),
        ([1] * 20, 0.1, "undecided", "passed"),
        ([1] * 71, 0.1, "undecided", "passed"),
        ([1] * 72, 0.1, "passed", "passed"),
    ],
)
def test_the_verdict_on_a_rate(successes, chance, verdict, paper) -> None:
    found = rate("name", torch.tensor(successes), chance, demand=0.95)
    assert (found.verdict, found.by("paper").verdict, found.by("interval").verdict) == (verdict, paper, verdict)
    assert (found.by("paper").between, found.by("paper").reason) == ((), "")


def test_a_result_sums_up_its_values() -> None:
    result = rate("name", torch.tensor([1, 1, 0, 1]), 0.25, demand=0.95)
    assert result.mean == 0.75
    assert result.std == pytest.approx(0.4330127)
    assert (result.low, result.high) == exact(3, 4)


def test_a_result_prints_as_a_line() -> None:
    result = Result("name", torch.tensor([1.0, 0.0]), 0.1, 0.9, 0.25, "weak")
    assert str(result) == "name: 0.500 ± 0.500 over 2 cases, 95% interval [0.100, 0.900], chance 0.250: weak"


def test_what_is_undecided_says_how_many_cases_would_do() -> None:
    told = str(rate("name", torch.ones(20), 0.1, demand=0.95))
    assert told.endswith("chance 0.100: undecided: too few cases (about 72 would do)")


def test_a_result_of_ones_own_has_its_own_verdict_by_either_rule() -> None:
    result = Result("name", torch.tensor([1.0, 0.0]), 0.1, 0.9, 0.25, "weak")
    assert result.by("paper").verdict == result.by("interval").verdict == "weak"


@pytest.mark.parametrize("values", [[1.0, 1.5], [-0.1, 0.0]])
def test_success_rates_lie_between_zero_and_one(values) -> None:
    with pytest.raises(InputError, match=r"The values of name lie between .* Give them between 0 and 1"):
        rate("name", torch.tensor(values), 0.1, demand=0.95)


@pytest.mark.parametrize("values", [[1.0, 1.5], [-1.1, 0.0]])
def test_correlations_lie_between_minus_one_and_one(values) -> None:
    with pytest.raises(InputError, match="Give them between -1 and 1"):
        correlation("name", torch.tensor(values), near=0.1, fail=0.7)

"""Where a verdict is decided: what a known value deserves, what an interval earns, and the paper's rule."""

from functools import partial

import pytest

from precedents.criteria._interval import exact, student
from precedents.criteria._verdict import (
    RANKS,
    Decision,
    checked_rule,
    correlation_by_paper,
    correlation_deserves,
    rate_by_paper,
    rate_deserves,
)
from precedents.errors import UnknownNameError


@pytest.mark.parametrize(
    ("mean", "low", "verdict"),
    [
        (0.95, 0.2, "passed"),
        (0.95, 0.1, "weak"),  # so few cases that chance is not excluded
        (0.9499, 0.2, "weak"),
        (0.5, 0.2, "weak"),
        (0.4999, 0.2, "failed"),
        (0.8, 0.1, "failed"),  # not told from chance
    ],
)
def test_by_the_papers_rule_a_rate_is_held_to_its_demand_and_to_chance(mean, low, verdict) -> None:
    assert rate_by_paper(mean, low, chance=0.1, demand=0.95) == verdict


@pytest.mark.parametrize(
    ("mean", "verdict"),
    [(0.0, "passed"), (-0.1, "passed"), (0.1, "passed"), (0.1001, "weak"), (-0.9, "weak"), (0.7, "weak")],
)
@pytest.mark.parametrize("rule", ["paper", "known"])
def test_a_correlation_passes_near_zero_on_either_side(mean, verdict, rule) -> None:
    if rule == "paper":
        assert correlation_by_paper(mean, null=0.1, fail=0.7) == verdict
    else:
        assert correlation_deserves(mean, near=0.1, fail=0.7) == verdict


def test_by_the_papers_rule_a_correlation_above_the_limit_fails_however_few_ranks_there_are() -> None:
    assert correlation_by_paper(0.7001, null=1.0, fail=0.7) == "failed"


@pytest.mark.parametrize(
    ("rate", "chance", "demand", "verdict"),
    [
        (0.95, 0.1, 0.95, "passed"),
        (0.9499, 0.1, 0.95, "weak"),
        (0.5, 0.1, 0.95, "weak"),
        (0.4999, 0.1, 0.95, "failed"),
        (0.8, 0.8, 0.95, "failed"),  # as good as drawing at random
        (0.8, 0.79, 0.95, "weak"),
        (0.96, 0.97, 0.95, "failed"),
        (0.3, 0.1, 0.3, "passed"),  # a demand below one half
        (0.29, 0.1, 0.3, "failed"),
        (1.0, 1.0, 0.95, "passed"),  # no metric can be better
        (0.9999, 1.0, 0.95, "failed"),
    ],
)
def test_what_a_known_rate_deserves(rate, chance, demand, verdict) -> None:
    assert rate_deserves(rate, chance, demand) == verdict


def deciding(low: float, high: float, null: float = 0.0, count: int = 50) -> Decision:
    return Decision.of(lambda _: (low, high), count, partial(correlation_deserves, near=0.1, fail=0.7), null)


@pytest.mark.parametrize(
    ("low", "high", "verdict", "between"),
    [
        (-0.1, 0.1, "passed", ()),  # the threshold itself passes
        (-0.1, 0.1001, "undecided", ("weak", "passed")),
        (-0.2, 0.2, "undecided", ("weak", "passed")),  # both ends are weak, zero is not
        (0.2, 0.7, "weak", ()),
        (-0.9, -0.2, "weak", ()),
        (0.2, 0.7001, "undecided", ("failed", "weak")),
        (0.0, 0.9, "undecided", RANKS),
        (0.71, 1.0, "failed", ()),
    ],
)
def test_a_verdict_is_earned_by_the_whole_interval(low, high, verdict, between) -> None:
    decision = deciding(low, high)
    assert (decision.verdict, decision.between) == (verdict, between)
    assert decision.enough is None  # of an interval that no number of cases makes narrower


@pytest.mark.parametrize(
    ("low", "high", "null", "verdict"),
    [
        (0.15, 0.2, 0.14, "weak"),
        (0.15, 0.2, 0.16, "undecided"),  # independent ranks of so few instances correlate as much
        (-0.2, -0.15, 0.16, "undecided"),
        (-0.05, 0.05, 0.9, "passed"),
        (0.75, 1.0, 0.8, "undecided"),
    ],
)
def test_what_is_within_chance_is_not_told_from_zero(low, high, null, verdict) -> None:
    assert deciding(low, high, null).verdict == verdict


def test_one_case_decides_nothing() -> None:
    assert deciding(-0.01, 0.01, count=2).verdict == "passed"
    one = deciding(-0.01, 0.01, count=1)
    assert (one.verdict, one.between, one.enough) == ("undecided", RANKS, 2)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.52, 0.8, 0.97, 1.0])
def test_enough_cases_are_the_fewest_that_decide_a_rate(share) -> None:
    def decision(count: int) -> Decision:
        return Decision.of(
            lambda n: exact(share * n, n), count, partial(rate_deserves, chance=0.1, demand=0.95)
        )

    enough = decision(2).enough
    assert decision(enough).verdict != "undecided"
    assert [decision(count).verdict for count in range(2, min(enough, 300))] == ["undecided"] * (
        min(enough, 300) - 2
    )
    assert decision(enough - 1).enough == enough


@pytest.mark.parametrize(("mean", "std"), [(0.0, 0.1), (0.05, 0.3), (0.4, 0.5), (0.9, 0.0), (1.0, 0.0)])
def test_enough_cases_are_the_fewest_that_decide_a_correlation(mean, std) -> None:
    def decision(count: int) -> Decision:
        return Decision.of(
            partial(student, mean, std), count, partial(correlation_deserves, near=0.1, fail=0.7)
        )

    enough = decision(2).enough
    assert decision(enough).verdict != "undecided"
    assert decision(enough - 1) == Decision("undecided", decision(enough - 1).between, enough)


@pytest.mark.parametrize("mean", [0.1, 0.7, -0.1])
def test_no_number_of_cases_decides_what_lies_at_a_threshold(mean) -> None:
    decision = Decision.of(partial(student, mean, 0.2), 100, partial(correlation_deserves, near=0.1, fail=0.7))
    assert (decision.verdict, decision.enough) == ("undecided", None)


def test_an_unknown_rule_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match=r"No rule of verdicts is named 'papr'. Did you mean 'paper'"):
        checked_rule("papr")

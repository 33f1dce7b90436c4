"""Where a verdict is decided: rates by demand, one half and chance; correlations by null and limit."""

import pytest

from precedents.criteria._verdict import of_correlation, of_rate


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
def test_a_rate_is_held_to_its_demand_and_to_chance(mean, low, verdict) -> None:
    assert of_rate(mean, low, chance=0.1, demand=0.95) == verdict


@pytest.mark.parametrize(
    ("mean", "verdict"),
    [(0.0, "passed"), (-0.1, "passed"), (0.1, "passed"), (0.1001, "weak"), (-0.9, "weak"), (0.7, "weak")],
)
def test_a_correlation_passes_near_zero_on_either_side(mean, verdict) -> None:
    assert of_correlation(mean, null=0.1, fail=0.7) == verdict


def test_a_correlation_above_the_limit_fails_however_few_ranks_there_are() -> None:
    assert of_correlation(0.7001, null=1.0, fail=0.7) == "failed"

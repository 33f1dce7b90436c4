import pytest

from precedents import PRECONDITIONERS, Explainer, Metric
from precedents.runtime.cost import Cost, Estimate, parted, rate, trials


@pytest.mark.parametrize("name", PRECONDITIONERS.names())
def test_every_preconditioner_says_what_it_costs(name, model, train) -> None:
    explainer = Explainer(model, train, Metric.read(f"dot:gradient/{name}"))
    cost = explainer.relevance.metric.preconditioner.cost(explainer.relevance.vectors, 10)
    assert isinstance(cost, Cost)
    assert cost.flops >= 0
    assert cost.passes >= 0
    assert cost.bytes >= 0


def test_an_estimate_grows_with_the_cases(model, train) -> None:
    explainer = Explainer(model, train)
    few, many = explainer.estimate(1), explainer.estimate(1_000_000)
    assert 0 < few.seconds < many.seconds
    assert 0 < few.memory <= many.memory
    assert 8 * 45 * 89 < few.disk == many.disk  # what `save` writes: the gradients, for any number of cases


def test_curvature_costs_more_than_none(model, train) -> None:
    plain = Explainer(model, train, "dot_grad").estimate(10)
    assert Explainer(model, train, "dot_if").estimate(10).seconds > plain.seconds
    assert Explainer(model, train, "dot_fisher").estimate(10).memory > plain.memory


def test_an_estimate_reads_as_a_sentence() -> None:
    assert str(Estimate(90.0, 3 * 2**30)) == "about 1 min 30 s, 3 GiB of memory, 0 B on disk"
    assert str(Estimate(1.5, 2**20)) == "about 1.5 s, 1 MiB of memory, 0 B on disk"


@pytest.mark.parametrize(("most", "told"), [(1, [1]), (3, [1, 3]), (100, [1, 4, 16, 64, 100])])
def test_trials_grow_to_the_most(most, told) -> None:
    asked = []
    assert [size for size, _ in trials(asked.append, most, lambda _: 60.0)] == told
    assert asked == [1, *(size for size in told for _ in range(2))]  # what comes first is not told


@pytest.mark.parametrize(("least", "told"), [(1, [1]), (2, [1, 4]), (3, [1, 4, 16])])
def test_trials_end_when_the_clock_allows_no_more(least, told) -> None:
    asked = []
    assert [size for size, _ in trials(asked.append, 100, lambda _: 0.0, least)] == told
    assert asked == [1, *told]  # none of them twice


def test_what_is_slow_by_chance_is_no_rate() -> None:
    seconds = [(1, 0.001), (64, 0.014), (1024, 0.4)]  # the last took memory that nobody had touched
    assert rate(seconds, 1024) == pytest.approx(0.0002, rel=0.1)


def test_what_is_spent_once_is_shared_by_a_block() -> None:
    found = [(1, 1.01), (4, 1.04), (100, 2.0)]  # one second, and a hundredth for each
    assert parted(found) == pytest.approx((1.0, 0.01))
    assert rate(found, 1000) == pytest.approx(0.011)


def test_a_slow_first_trial_makes_nothing_free() -> None:
    once, each = parted([(1, 9.0), (4, 0.4)])
    assert each == pytest.approx(0.05)
    assert once == pytest.approx(0.2)

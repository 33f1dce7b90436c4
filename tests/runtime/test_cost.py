import pytest

from precedents import PRECONDITIONERS, Explainer, Metric
from precedents.runtime.cost import Cost, Estimate


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

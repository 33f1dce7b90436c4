from conftest import retrained

from precedents import METRICS, Trial
from precedents.audit.agenda import Agenda
from precedents.audit.estimate import compared, estimate
from precedents.criteria import CRITERIA


def rounds(trial: Trial, *texts: str) -> dict[tuple[str, str], int]:
    return compared(trial, [CRITERIA.read(text) for text in texts])


def test_every_model_and_set_of_cases_is_counted_once(trial) -> None:
    m, n = len(trial.cases), len(trial.workspace.train)
    assert rounds(trial, "identical_class", "identical_class(k=3)") == {("trained", "cases"): m}
    assert len(rounds(trial, "model_randomization(draws=4)")) == 5
    both = rounds(trial, "model_randomization", "model_randomization(label=shared)")
    assert len(both) == 7
    assert len({model for model, _ in both}) == 4
    assert rounds(trial, "identical_instance")["trained", "training instances"] == n
    assert rounds(trial, "identical_subclass", "identical_subclass(k=3)")["merged 0", "cases"] == m


def test_more_metrics_and_criteria_cost_more(model, train, test) -> None:
    trial = Trial.of(model, train, test, retrain=retrained)
    little = estimate(Agenda.of(trial, ["gc"], ["identical_class"]))
    much = estimate(Agenda.of(trial))
    assert 0 < little.seconds < much.seconds
    assert 0 < little.memory <= much.memory
    assert 0 < little.disk < much.disk


def test_a_metric_without_meaning_costs_nothing(linear, train, test) -> None:
    hidden = [name for name in METRICS if name.endswith(("last", "all"))]
    assert estimate(Agenda.of(Trial.of(linear, train, test), hidden)).seconds == 0

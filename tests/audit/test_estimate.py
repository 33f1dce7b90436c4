from conftest import retrained

from precedents import METRICS, Trial
from precedents.audit.estimate import _rounds, estimate
from precedents.criteria._judgement import CRITERIA


def rounds(trial: Trial, *texts: str) -> dict[tuple[str, str], int]:
    return _rounds(trial, {text: CRITERIA.read(text) for text in texts})


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
    little = estimate(model, train, test, metrics=["gc"], criteria=["identical_class"])
    much = estimate(model, train, test, retrain=retrained)
    assert 0 < little.seconds < much.seconds
    assert 0 < little.memory <= much.memory
    assert 0 < little.disk < much.disk


def test_a_metric_without_meaning_costs_nothing(linear, train, test) -> None:
    hidden = [name for name in METRICS if name.endswith(("last", "all"))]
    assert estimate(linear, train, test, metrics=hidden).seconds == 0

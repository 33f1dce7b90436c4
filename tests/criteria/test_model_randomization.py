import pytest
import scipy.stats
import torch

from precedents import METRICS, InputError, Trial
from precedents.criteria.model_randomization import ModelRandomization, model_randomization, null

ON_INPUTS = [name for name in METRICS if name.endswith("_x")]


@pytest.mark.parametrize("name", ON_INPUTS)
@pytest.mark.parametrize("label", ["own", "shared"])
def test_metrics_on_inputs_correlate_at_exactly_one(name, label, trial) -> None:
    result = ModelRandomization(label=label)(trial, METRICS[name])
    assert result.values.tolist() == [1.0] * 12
    assert result.mean == 1.0
    assert (result.verdict, result.enough, result.paper) == ("undecided", 23, "failed")


@pytest.mark.parametrize("name", ON_INPUTS)
def test_metrics_on_inputs_fail_over_as_many_cases_as_are_enough(name, model, train) -> None:
    trial = Trial.of(model, train, (train[0][:23], train[1][:23]))
    assert model_randomization(trial, METRICS[name]).verdict == "failed"


@pytest.mark.parametrize("count", [1, 2, 4])
def test_by_the_papers_rule_metrics_on_inputs_fail_however_few_the_cases(count, model, train, test) -> None:
    trial = Trial.of(model, train, (test[0][:count], test[1][:count]))
    result = model_randomization(trial, METRICS["cos_x"])
    assert result.by("paper").verdict == "failed"
    assert result.verdict == "undecided"


@pytest.mark.parametrize("name", ["cos_grad", "dot_if", "l2_last"])
def test_values_are_the_mean_correlations_over_the_draws(name, trial) -> None:
    trained = trial.scores(METRICS[name]).numpy()
    result = ModelRandomization(draws=2, seed=5)(trial, METRICS[name])
    drawn = [trial.randomized(seed, "own").scores(METRICS[name]).numpy() for seed in (5, 6)]
    expected = [
        sum(scipy.stats.spearmanr(trained[i], random[i]).statistic for random in drawn) / 2 for i in range(12)
    ]
    assert result.values.tolist() == pytest.approx(expected, abs=1e-9)


def test_labels_matter_to_gradients(trial) -> None:
    own, shared = (ModelRandomization(label=label)(trial, METRICS["cos_grad"]) for label in ("own", "shared"))
    assert own.mean != shared.mean


@pytest.mark.parametrize("name", ["cos_last", "dot_all", "l2_last"])
def test_labels_do_not_matter_to_hidden_layers(name, trial) -> None:
    own, shared = (ModelRandomization(label=label)(trial, METRICS[name]) for label in ("own", "shared"))
    assert torch.equal(own.values, shared.values)


def test_both_null_intervals_are_noted(trial) -> None:
    notes = model_randomization(trial, METRICS["cos_grad"]).notes
    assert notes["null over training instances"] == pytest.approx(1.96 / 44**0.5)
    assert notes["null over cases"] == pytest.approx(1.96 / 11**0.5)


def test_the_papers_null_interval_is_that_of_five_hundred_cases() -> None:
    assert round(null(500), 3) == 0.088


def test_the_spread_over_draws_is_noted(trial) -> None:
    draws = [ModelRandomization(draws=1, seed=seed)(trial, METRICS["cos_grad"]).mean for seed in range(3)]
    spread = float(torch.tensor(draws, dtype=torch.double).std(correction=0))
    assert model_randomization(trial, METRICS["cos_grad"]).notes["std over draws"] == pytest.approx(spread)


def test_a_metric_that_follows_the_model_does_not_fail(trial) -> None:
    assert model_randomization(trial, METRICS["cos_grad"]).verdict != "failed"


def test_zero_is_what_chance_gives(trial) -> None:
    assert model_randomization(trial, METRICS["cos_grad"]).chance == 0


def test_a_factory_of_fresh_models_is_used(model, train, test) -> None:
    trial = Trial.of(model, train, test, fresh=lambda seed: model)
    assert model_randomization(trial, METRICS["cos_grad"]).mean == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"label": "mine"}, "label is 'mine'. Use one of: own, shared"), ({"draws": 0}, "Draw at least one")],
)
def test_bad_settings_are_refused(settings, message) -> None:
    with pytest.raises(InputError, match=message):
        ModelRandomization(**settings)

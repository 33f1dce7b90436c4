import pytest
import torch

from precedents import METRICS, InputError, NotApplicable, Trial
from precedents.criteria._trial import merge
from precedents.criteria.identical_subclass import IdenticalSubclass, identical_subclass


@pytest.fixture
def given(model, train, test) -> Trial:
    """Subclasses that are given: the sign of the fourth number."""
    return Trial.of(model, train, test, subclasses=((train[0][:, 3] > 0).long(), (test[0][:, 3] > 0).long()))


def test_only_correct_predictions_count(given) -> None:
    right = given.cases.labels == given.truth
    assert 0 < int(right.sum()) < 12
    assert len(identical_subclass(given, METRICS["cos_grad"]).values) == int(right.sum())


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("name", ["cos_grad", "l2_x", "dot_fisher"])
def test_the_best_precedents_must_have_the_given_subclass(name, k, given, train, test) -> None:
    right = (given.cases.labels == given.truth).nonzero().flatten().tolist()
    order = given.scores(METRICS[name]).argsort(dim=1, descending=True, stable=True)[:, :k]
    expected = [float(all((train[0][j, 3] > 0) == (test[0][i, 3] > 0) for j in order[i])) for i in right]
    assert IdenticalSubclass(k=k)(given, METRICS[name]).values.tolist() == expected


@pytest.mark.parametrize("seed", [0, 1])
def test_merged_classes_are_found_again_by_the_merged_model(seed, trial, train, test) -> None:
    merged = trial.merged(seed)
    right = (merged.cases.labels == merge(3, seed)[test[1]]).nonzero().flatten()
    best = merged.scores(METRICS["cos_grad"])[right].argmax(dim=1)
    expected = (train[1][best] == test[1][right]).double()
    assert torch.equal(IdenticalSubclass(seed=seed)(trial, METRICS["cos_grad"]).values, expected)


def test_chance_is_the_share_of_the_subclass(given, train, test) -> None:
    right = given.cases.labels == given.truth
    positive = float((train[0][:, 3] > 0).double().mean())
    expected = [positive if x[3] > 0 else 1 - positive for x in test[0][right]]
    chance = identical_subclass(given, METRICS["cos_x"]).chance
    assert chance == pytest.approx(sum(expected) / len(expected))


def test_no_subclasses_and_no_retraining_is_not_applicable(linear_trial) -> None:
    with pytest.raises(NotApplicable, match=r"No subclass labels"):
        identical_subclass(linear_trial, METRICS["cos_grad"])


def test_no_correct_prediction_is_not_applicable(model, train, cases) -> None:
    wrong = (model(cases).argmax(dim=1) + 1) % 3
    trial = Trial.of(model, train, (cases, wrong), subclasses=(train[1], wrong))
    with pytest.raises(NotApplicable, match=r"no case correctly"):
        identical_subclass(trial, METRICS["cos_grad"])


def test_k_beyond_the_training_set_is_refused(given) -> None:
    with pytest.raises(InputError, match=r"Ask for k from 1 to 45"):
        IdenticalSubclass(k=46)(given, METRICS["cos_grad"])

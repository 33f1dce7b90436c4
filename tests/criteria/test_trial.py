import pytest
import torch
from conftest import mlp, retrained, trained
from torch import nn

from precedents import METRICS, Classifier, Explainer, InputError, NotApplicable, Trial
from precedents.criteria._trial import merge
from precedents.metrics.vectors import Vectors


@pytest.mark.parametrize("classes", range(2, 12))
@pytest.mark.parametrize("seed", range(3))
def test_a_merge_is_balanced(classes, seed) -> None:
    groups = merge(classes, seed)
    assert groups.shape == (classes,)
    assert abs(int((groups == 0).sum()) - int((groups == 1).sum())) == classes % 2


def test_a_merge_is_by_seed() -> None:
    assert torch.equal(merge(10, 4), merge(10, 4))
    assert len({tuple(merge(10, seed).tolist()) for seed in range(20)}) > 10


def test_a_merge_leaves_the_global_random_state_alone() -> None:
    before = torch.get_rng_state()
    merge(10, 0)
    assert torch.equal(torch.get_rng_state(), before)


def test_cases_carry_the_models_predictions_and_the_truth_is_kept(trial, model, test) -> None:
    assert torch.equal(trial.cases.labels, model(test[0]).argmax(dim=1))
    assert torch.equal(trial.truth, test[1])
    assert not torch.equal(trial.cases.labels, trial.truth)


@pytest.mark.parametrize("name", METRICS)
def test_scores_are_those_of_the_explainer(name, trial, model, train, cases) -> None:
    torch.testing.assert_close(trial.scores(METRICS[name]), Explainer(model, train, name).scores(cases))


def test_a_randomized_trial_has_other_parameters_and_the_same_data(trial) -> None:
    random = trial.randomized(0, "own")
    assert random.workspace.train is trial.workspace.train
    assert not torch.equal(
        random.workspace.classifier.module[0].weight, trial.workspace.classifier.module[0].weight
    )


def test_own_labels_are_the_random_models_predictions(trial, cases) -> None:
    random = trial.randomized(0, "own")
    assert torch.equal(random.cases.labels, random.workspace.classifier.module(cases).argmax(dim=1))


def test_shared_labels_are_the_trained_models_predictions(trial) -> None:
    assert torch.equal(trial.randomized(0, "shared").cases.labels, trial.cases.labels)


def test_own_and_shared_trials_have_one_random_model(trial) -> None:
    assert trial.randomized(0, "own").workspace is trial.randomized(0, "shared").workspace


def test_a_fresh_model_is_made_by_the_users_factory(model, train, test) -> None:
    def fresh(seed: int) -> nn.Module:
        made = mlp().double()
        with torch.no_grad():
            for parameter in made.parameters():
                parameter.fill_(seed)
        return made

    trial = Trial.of(model, train, test, fresh=fresh)
    assert set(trial.randomized(7, "own").workspace.classifier.module[0].weight.flatten().tolist()) == {7.0}


def test_a_fresh_model_keeps_the_named_hidden_layers(model, train, test) -> None:
    trial = Trial.of(model, train, test, hidden=["1"], fresh=lambda seed: mlp().double())
    assert trial.randomized(0, "own").scores(METRICS["cos_last"]).shape == (12, 45)
    assert [tap.module for tap in trial.randomized(0, "own").workspace.classifier.taps] == ["1"]


def test_a_merged_trial_has_the_old_classes_as_subclasses(trial, train, test) -> None:
    merged = trial.merged(0)
    groups = merge(3, 0)
    assert torch.equal(merged.workspace.train.labels, groups[train[1]])
    assert torch.equal(merged.truth, groups[test[1]])
    assert torch.equal(merged.subclasses[0], train[1])
    assert torch.equal(merged.subclasses[1], test[1])
    assert merged.workspace.classifier.classes == 2


def test_a_model_is_retrained_once_for_a_seed(model, train, test) -> None:
    calls = []
    trial = Trial.of(
        model, train, test, retrain=lambda merged, seed: calls.append(seed) or retrained(merged, seed)
    )
    for seed in (0, 0, 1):
        trial.merged(seed)
    assert calls == [0, 1]


def test_without_a_way_to_retrain_there_are_no_subclasses(linear_trial) -> None:
    with pytest.raises(NotApplicable, match=r"No subclass labels .* no way to retrain"):
        linear_trial.merged(0)


def test_two_classes_cannot_be_merged(train, test) -> None:
    two = (train[0], train[1] % 2)
    model = trained(lambda: mlp(classes=2), two)
    trial = Trial.of(model, two, (test[0], test[1] % 2), retrain=retrained)
    with pytest.raises(NotApplicable, match=r"leaves no subclasses"):
        trial.merged(0)


def test_retraining_must_return_a_module(model, train, test) -> None:
    trial = Trial.of(model, train, test, retrain=lambda merged, seed: None)
    with pytest.raises(InputError, match=r"retrain returned a NoneType"):
        trial.merged(0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"subclasses": (torch.zeros(44, dtype=torch.long), torch.zeros(12, dtype=torch.long))},
            "training set's subclasses",
        ),
        ({"subclasses": (torch.zeros(45, dtype=torch.long), torch.full((12,), 0.5))}, "test set's subclasses"),
    ],
)
def test_subclasses_that_are_no_class_numbers_are_refused(options, message, model, train, test) -> None:
    with pytest.raises(InputError, match=message):
        Trial.of(model, train, test, **options)


@pytest.mark.parametrize(
    ("cut", "message"),
    [
        (lambda x, y: (x[:0], y[:0]), "The test set is empty"),
        (lambda x, y: (x, y + 3), "of the test set are out of range"),
        (lambda x, y: (x, None), "The test set has no labels"),
        (lambda x, y: (x[:, :4], y), r"cannot take inputs of the shape \(12, 4\)"),
    ],
)
def test_a_bad_test_set_is_refused(cut, message, model, train, test) -> None:
    with pytest.raises(InputError, match=message):
        Trial.of(model, train, cut(*test))


def test_a_classifier_may_be_passed_for_the_model(classifier, train, test) -> None:
    assert isinstance(classifier, Classifier)
    assert Trial.of(classifier, train, test).workspace.classifier is classifier


def test_the_matrices_of_one_model_are_put_away_for_another_that_needs_the_memory(linear, train, test) -> None:
    metric = METRICS["dot_if"]
    tight, ample = (Trial.of(linear, train, test, memory=memory) for memory in (12_000, 12_000_000))
    for trial in (tight, ample):
        trial.scores(metric)
        trial.randomized(0, "own").scores(metric)
    slot = tight.relevance(metric).slot
    assert slot not in tight.workspace.cache
    assert slot in tight.randomized(0, "own").workspace.cache
    assert slot in ample.workspace.cache
    few = tight.workspace.train.selected(range(3))  # for which the matrices are needed once more
    for ask in (
        lambda trial: trial,
        lambda trial: Trial(trial.workspace, few, few.labels),
        lambda trial: trial.randomized(0, "shared"),
    ):
        found, wanted = ask(tight).scores(metric), ask(ample).scores(metric)
        torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-12)  # the blocks are of other sizes


def test_metrics_share_the_kernel_where_no_eigenvalue_is_negative(trial, linear_trial) -> None:
    kept, dropped = METRICS["dot_if"], METRICS["cos_if"]
    assert kept.preconditioner != dropped.preconditioner
    assert linear_trial.kernel(kept) is linear_trial.kernel(dropped)
    assert trial.kernel(kept) is not trial.kernel(dropped)


@pytest.mark.parametrize("name", ["cos_grad", "dot_fisher"])
def test_a_kernel_is_the_same_whether_the_cases_come_in_groups_or_at_once(name, linear, train, test) -> None:
    metric = METRICS[name]
    trials = [Trial.of(linear, train, test, memory=memory) for memory in (2_000, 12_000_000)]
    few, whole = (list(Vectors.of(each.workspace, metric.features).groups(each.cases)) for each in trials)
    assert len(few) > len(whole) == 1
    ours, theirs = (vars(each.kernel(metric)) for each in trials)
    torch.testing.assert_close(ours, theirs)

import numpy as np
import oracle
import pytest
import torch

from precedents import METRICS, InputError, NotApplicable, Trial
from precedents.criteria.identical_instance import IdenticalInstance, identical_instance


@pytest.mark.parametrize("name", [name for name in METRICS if not name.startswith("dot")])
def test_lengths_and_angles_find_the_instance_itself(name, trial) -> None:
    result = identical_instance(trial, METRICS[name])
    assert result.mean == 1.0
    assert result.paper == "passed"
    assert (result.verdict, result.enough) == ("undecided", 72)  # there are 45 training instances


@pytest.mark.parametrize("name", ["dot_x", "dot_grad"])
def test_dots_are_attracted_by_large_vectors(name, trial) -> None:
    assert identical_instance(trial, METRICS[name]).mean < 0.5


def test_only_correctly_predicted_training_instances_are_asked_about(trial, model, train) -> None:
    right = int((model(train[0]).argmax(dim=1) == train[1]).sum())
    assert right < 45
    assert len(identical_instance(trial, METRICS["cos_x"]).values) == right


def test_at_most_so_many_are_asked_about(trial) -> None:
    assert len(IdenticalInstance(most=7)(trial, METRICS["cos_x"]).values) == 7


@pytest.mark.parametrize("most", [0, -1])
def test_at_least_one_is_asked_about(most) -> None:
    with pytest.raises(InputError, match=r"most is"):
        IdenticalInstance(most=most)


def test_values_say_whether_no_other_instance_is_better(trial, model, train) -> None:
    right = (model(train[0]).argmax(dim=1) == train[1]).nonzero().flatten()
    gradients = torch.tensor(np.array([oracle.gradient(model, x, int(y)) for x, y in zip(*train, strict=True)]))
    gram = gradients @ gradients.T
    expected = [float(gram[i].max() <= gram[i, i] * (1 + 1e-9)) for i in right]
    assert identical_instance(trial, METRICS["dot_grad"]).values.tolist() == expected


def test_an_equal_of_the_instance_is_not_better(model, train, test) -> None:
    twice = (torch.cat([train[0], train[0]]), torch.cat([train[1], train[1]]))
    result = identical_instance(Trial.of(model, twice, test), METRICS["cos_grad"])
    assert result.mean == 1.0


def test_chance_is_one_in_all(trial) -> None:
    assert identical_instance(trial, METRICS["cos_x"]).chance == pytest.approx(1 / 45)


def test_no_correct_prediction_is_not_applicable(model, train, test) -> None:
    wrong = (model(train[0]).argmax(dim=1) + 1) % 3
    with pytest.raises(NotApplicable, match=r"no training instance correctly"):
        identical_instance(Trial.of(model, (train[0], wrong), test), METRICS["cos_x"])

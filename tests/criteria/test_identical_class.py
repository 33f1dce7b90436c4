import pytest
import torch
from torch import nn

from precedents import METRICS, InputError, Trial
from precedents.criteria.identical_class import IdenticalClass, identical_class


@pytest.fixture
def line() -> Trial:
    """A model that says whether a number is positive; a training instance near zero is labelled wrongly."""
    model = nn.Linear(1, 2, bias=False).double()
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[-1.0], [1.0]]))
    x = torch.tensor([[-3.0], [-2.0], [0.5], [1.0], [2.0]], dtype=torch.double)
    cases = torch.tensor([[-2.9], [0.4], [0.9], [2.1]], dtype=torch.double)
    return Trial.of(model, (x, torch.tensor([0, 0, 0, 1, 1])), (cases, torch.tensor([0, 1, 1, 0])))


def test_a_case_succeeds_when_its_best_precedent_has_the_predicted_class(line) -> None:
    assert identical_class(line, METRICS["l2_x"]).values.tolist() == [1, 0, 1, 1]


def test_all_of_the_best_k_must_have_the_predicted_class(line) -> None:
    assert IdenticalClass(k=2)(line, METRICS["l2_x"]).values.tolist() == [1, 0, 0, 1]


def test_k_beyond_the_members_of_a_class_fails(line) -> None:
    assert IdenticalClass(k=4)(line, METRICS["l2_x"]).values.tolist() == [0, 0, 0, 0]


def test_the_class_is_the_predicted_one_and_not_the_true_one(line) -> None:
    assert line.truth.tolist() == [0, 1, 1, 0]
    assert line.cases.labels.tolist() == [0, 1, 1, 1]
    assert identical_class(line, METRICS["l2_x"]).values[3] == 1


@pytest.mark.parametrize(("k", "chance"), [(1, (3 / 5 + 3 * 2 / 5) / 4), (2, (3 / 10 + 3 * 1 / 10) / 4)])
def test_chance_is_that_of_a_random_ranking(k, chance, line) -> None:
    assert IdenticalClass(k=k)(line, METRICS["l2_x"]).chance == pytest.approx(chance)


@pytest.mark.parametrize("k", [1, 3, 10])
@pytest.mark.parametrize("name", METRICS)
def test_values_are_those_of_the_sorted_scores(name, k, trial, train) -> None:
    order = trial.scores(METRICS[name]).argsort(dim=1, descending=True, stable=True)[:, :k]
    expected = [
        float(all(int(train[1][i]) == int(label) for i in row))
        for row, label in zip(order, trial.cases.labels, strict=True)
    ]
    assert IdenticalClass(k=k)(trial, METRICS[name]).values.tolist() == expected


@pytest.mark.parametrize("k", [0, 46])
def test_k_is_between_one_and_the_number_of_training_instances(k, trial) -> None:
    with pytest.raises(InputError, match=r"Ask for k from 1 to 45"):
        IdenticalClass(k=k)(trial, METRICS["cos_x"])


def test_the_criterion_is_named_with_its_settings(line) -> None:
    assert IdenticalClass(k=2)(line, METRICS["l2_x"]).criterion == "identical_class(k=2)"


def test_the_demand_is_what_a_rate_must_reach_to_pass(line) -> None:
    result = IdenticalClass(demand=0.7)(line, METRICS["l2_x"])
    assert result.mean == 0.75
    assert result.paper == "weak"  # at the demand, but not told from chance
    assert (result.verdict, result.between) == ("undecided", ("failed", "weak", "passed"))

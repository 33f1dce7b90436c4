import pytest
import torch

import precedents as pr
from tests.explain.jobs.conftest import fitted


def test_an_explainer_agrees_with_itself(digits) -> None:
    explainer = digits.explainer()
    found = pr.compare(explainer, explainer, digits.test[0][:10])
    assert found.overlap.tolist() == [1.0] * 10
    assert not found.changed.any()
    assert found.order == list(range(10))


def test_overlap_and_predictions_are_those_of_the_two_explanations(digits) -> None:
    other_model = fitted(*digits.train, 20)
    one, other = digits.explainer(), pr.Explainer(other_model, digits.train, "cos_last")
    x = digits.test[0][:40]
    found = pr.compare(one, other, x, k=7)
    a, b = one.explain(x, k=7), other.explain(x, k=7)
    for case in range(40):
        both = set(a.top.indices[case].tolist()) & set(b.top.indices[case].tolist())
        assert float(found.overlap[case]) == pytest.approx(len(both) / 7)
        assert bool(found.changed[case]) == bool(a.predictions[case] != b.predictions[case])
    order = found.order
    keys = [(not found.changed[case], float(found.overlap[case]), case) for case in order]
    assert keys == sorted(keys)
    assert found.changed.any()
    assert len(found.to_frame()) == 40


def test_training_sets_that_differ_are_refused(digits) -> None:
    x, y = digits.train
    shorter = pr.Explainer(digits.model, (x[:500], y[:500]))
    with pytest.raises(pr.InputError, match="One explainer has 600 training instances, the other 500"):
        pr.compare(digits.explainer(), shorter, digits.test[0][:2])
    named, others = (digits.explainer(ids=[f"{a}{i}" for i in range(600)]) for a in "ab")
    with pytest.raises(pr.InputError, match="The ids of the two training sets differ, the first at 0"):
        pr.compare(named, others, digits.test[0][:2])


def test_what_is_no_explainer_is_refused(digits) -> None:
    with pytest.raises(pr.InputError, match="Pass two explainers"):
        pr.compare(digits.model, digits.explainer(), digits.test[0][:2])


def test_a_small_training_set_is_compared_whole() -> None:
    x, y = torch.eye(3), torch.tensor([0, 1, 0])
    explainer = pr.Explainer(torch.nn.Linear(3, 2), (x, y))
    assert pr.compare(explainer, explainer, x).k == 3


def test_the_same_set_in_another_order_is_refused(digits) -> None:
    x, y = digits.train
    turned = pr.Explainer(digits.model, (x.flip(0), y.flip(0)))
    with pytest.raises(pr.InputError, match="the same instances in another order, the first at 0"):
        pr.compare(digits.explainer(), turned, digits.test[0][:2])

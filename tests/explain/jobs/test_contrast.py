import re

import pytest
import torch

import precedents as pr


@pytest.mark.parametrize("metric", ["cos_grad", "dot_grad", "cos_last", "cos_x"])
def test_each_side_has_the_best_of_its_class(metric, digits) -> None:
    explainer = digits.explainer(metric)
    case, labels = digits.test[0][:1], digits.train[1]
    found = explainer.contrast(case, 1, 7, k=4)
    for side, label in enumerate((1, 7)):
        scores = explainer.scores(case, labels=[label])[0].masked_fill(labels != label, -torch.inf)
        order = scores.argsort(descending=True, stable=True)[:4]
        assert torch.equal(found.tops[side].indices[0], order)
        assert torch.allclose(found.tops[side].scores[0], scores[order])
        other = explainer.scores(case, labels=[(7, 1)[side]])[0]
        assert torch.allclose(found.others[side], other[order])


def test_it_passes_the_training_set_once(digits, monkeypatch) -> None:
    explainer, asked = digits.explainer(), []
    kernels = type(explainer.relevance).kernels
    monkeypatch.setattr(
        type(explainer.relevance), "kernels", lambda *a, **b: asked.append(a) or kernels(*a, **b)
    )
    explainer.contrast(digits.test[0][0], 1, 7)
    assert len(asked) == 1


def test_classes_go_by_their_names(digits) -> None:
    names = [f"digit {i}" for i in range(10)]
    found = digits.explainer(classes=names).contrast(digits.test[0][0], "digit 1", "digit 7", k=2)
    assert found.sides == (1, 7)
    assert "digit 1" in str(found)
    assert found.to_frame()["side"].tolist() == ["digit 1"] * 2 + ["digit 7"] * 2


def test_it_says_in_which_columns_the_sides_differ() -> None:
    x = torch.tensor([[1.0, 0.0], [1.1, 0.3], [5.0, 0.1], [5.2, 0.2]])
    model = torch.nn.Linear(2, 2)
    explainer = pr.Explainer(
        model, (x, torch.tensor([0, 0, 1, 1])), "cos_x", render=pr.tables(["age", "height"])
    )
    found = explainer.contrast(torch.tensor([2.0, 0.1]), 0, 1)
    assert next(trait.name for trait in found.separating.traits) == "age"
    assert "The case is nearer to those for 0 in age" in str(found)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((1, 1), "Both classes are 1"),
        ((1, 12), "labels run from 0 to 9"),
        ((1, "cat"), "cat"),
    ],
)
def test_classes_that_cannot_be_are_refused(arguments, said, digits) -> None:
    with pytest.raises(pr.InputError, match=said):
        digits.explainer().contrast(digits.test[0][0], *arguments)


def test_several_cases_are_refused(digits) -> None:
    with pytest.raises(pr.InputError, match="There are 2 cases"):
        digits.explainer().contrast(digits.test[0][:2], 1, 7)


def test_a_class_without_instances_is_named() -> None:
    x, y = torch.eye(3), torch.tensor([0, 1, 0])
    explainer = pr.Explainer(torch.nn.Linear(3, 3), (x, y), classes=["cat", "dog", "cow"])
    with pytest.raises(pr.InputError, match=r"The class cow has no training instance.*cat, dog"):
        explainer.contrast(x[0], "cat", "cow")


def test_one_picture_of_each_class_has_a_deviation_of_a_plain_size(digits) -> None:
    found = digits.explainer().contrast(digits.test[0][0], 0, 1, k=1)
    sizes = re.findall(r"\(([\d.]+) standard deviations", str(found))
    assert all(float(size) < 1000 for size in sizes)

import re

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LogisticRegression

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
    x = torch.tensor(
        [[1.0, 0.0], [1.1, 0.3], [1.3, 0.1], [1.2, 0.2], [5.0, 0.1], [5.2, 0.2], [5.1, 0.0], [5.4, 0.3]]
    )
    model = torch.nn.Linear(2, 2)
    explainer = pr.Explainer(
        model, (x, torch.tensor([0] * 4 + [1] * 4)), "cos_x", render=pr.tables(["age", "height"])
    )
    found = explainer.contrast(torch.tensor([2.0, 0.1]), 0, 1)
    assert next(trait.name for trait in found.separating.traits) == "age"
    assert "The case is nearer to those for 0 in age" in str(found)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((1, 1), "Both classes are 1"),
        ((1, 12), "There is no class 12. Pass a number from 0 to 9"),
        ((1, "cat"), "There is no class 'cat'. Pass a number from 0 to 9"),
        ((1, 2.5), "There is no class 2.5"),
    ],
)
def test_classes_that_cannot_be_are_refused(arguments, said, digits) -> None:
    with pytest.raises(pr.InputError, match=said):
        digits.explainer().contrast(digits.test[0][0], *arguments)


def animals() -> tuple[pr.Explainer, pd.DataFrame]:
    """A model of scikit-learn whose classes have names, and its rows."""
    frame = pd.DataFrame({"size": [1.0, 2, 8, 9] * 3, "age": [3.0, 1, 2, 4] * 3})
    labels = ["cat", "cat", "cow", "cow"] * 3
    return pr.Explainer(LogisticRegression().fit(frame, labels), (frame, labels)), frame


def test_classes_of_scikit_learn_go_by_name_and_by_number() -> None:
    explainer, frame = animals()
    found = [explainer.contrast(frame.iloc[[0]], *sides) for sides in (("cat", "cow"), (0, 1), ("cat", 1))]
    assert [each.sides for each in found] == [(0, 1)] * 3
    for wrong in ("dog", 2, -1, True):
        with pytest.raises(pr.InputError, match=rf"No class is named '{wrong}'.* Known: cat, cow"):
            explainer.contrast(frame.iloc[[0]], "cat", wrong)


def test_labels_that_are_numbers_of_their_own_are_meant() -> None:
    x, y = np.eye(4), [3, 7, 3, 7]
    explainer = pr.Explainer(LogisticRegression().fit(x, y), (x, y))
    assert explainer.contrast(x[0], 3, np.int64(7)).sides == (0, 1)
    with pytest.raises(pr.InputError, match="Known: 3, 7"):
        explainer.contrast(x[0], 0, 1)


def test_several_rows_of_a_frame_are_refused_with_what_frames_take() -> None:
    explainer, frame = animals()
    for asked in (lambda: explainer.contrast(frame[:2], 0, 1), lambda: explainer.shares(frame[:2], 0)):
        with pytest.raises(pr.InputError, match=r"There are 2 cases\. Pass one: \w+\(X\.iloc\[\[0\]\],"):
            asked()
    assert explainer.contrast(frame.iloc[[0]], 0, 1)


def test_several_cases_are_refused(digits) -> None:
    with pytest.raises(pr.InputError, match="There are 2 cases"):
        digits.explainer().contrast(digits.test[0][:2], 1, 7)


def test_a_class_without_instances_is_named() -> None:
    x, y = torch.eye(3), torch.tensor([0, 1, 0])
    explainer = pr.Explainer(torch.nn.Linear(3, 3), (x, y), classes=["cat", "dog", "cow"])
    with pytest.raises(pr.InputError, match=r"The class cow has no training instance.*cat, dog"):
        explainer.contrast(x[0], "cat", "cow")


def test_pictures_that_do_not_vary_have_a_deviation_of_a_plain_size(digits) -> None:
    x, y = digits.train
    few = torch.cat([x[y == 0][:1].repeat(3, 1, 1, 1), x[y == 1][:1].repeat(3, 1, 1, 1)])  # do not vary
    found = pr.Explainer(digits.model, (few, torch.tensor([0] * 3 + [1] * 3))).contrast(digits.test[0][0], 0, 1)
    (size,) = re.findall(r"\(([\d.]+) standard deviations", str(found))
    assert float(size) < 1000
    alone = digits.explainer().contrast(digits.test[0][0], 0, 1, k=1)
    assert alone.notes == ["No region of the pictures separates them."]  # nothing is told of one of each

from collections import Counter

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

import precedents as pr
from precedents.explain.jobs.groups import beside


def test_errors_are_grouped_and_their_precedents_counted(digits) -> None:
    explainer = digits.explainer()
    x, y = digits.test
    found = explainer.groups((x, y), "error", k=3)
    predicted = digits.model(x).argmax(dim=1)
    wrong = (predicted != y).nonzero().flatten().tolist()
    assert sum(len(group.cases) for group in found.groups) == len(wrong)
    for group in found.groups:
        names = {f"{int(y[case])} taken for {int(predicted[case])}" for case in group.cases}
        assert names == {group.name}
        top = explainer.explain(x[list(group.cases)], k=3).top.indices
        assert Counter(top.flatten().tolist()) == Counter(group.counts)
        assert list(group.counts.values()) == sorted(group.counts.values(), reverse=True)
    assert [len(group.cases) for group in found.groups] == sorted(
        (len(group.cases) for group in found.groups), reverse=True
    )


def test_truth_may_be_given_apart(digits) -> None:
    x, y = digits.test
    explainer = digits.explainer()
    names = [group.name for group in explainer.groups((x, y), "error").groups]
    assert names == [group.name for group in explainer.groups(x, "error", truth=y).groups]


def test_any_names_make_groups_and_none_is_left_out(digits) -> None:
    x = digits.test[0][:6]
    found = digits.explainer().groups(x, ["a", None, "b", "a", "a", None], k=2)
    assert [(group.name, list(group.cases)) for group in found.groups] == [("a", [0, 3, 4]), ("b", [2])]
    assert found["b"].precedents
    with pytest.raises(pr.InputError, match=r"There is no group 'c'. There are: a, b"):
        found["c"]


def test_a_labelled_set_may_be_grouped_by_predictions_and_by_names(digits) -> None:
    explainer, (x, y) = digits.explainer(), digits.test
    names = [str(i % 3) for i in range(len(x))]
    for by in ("prediction", names):
        assert explainer.groups((x, y), by).rows() == explainer.groups(x, by).rows()


def test_what_is_neither_cases_nor_a_labelled_set_is_refused_as_cases(digits) -> None:
    with pytest.raises(pr.InputError, match="The cases have the shape"):
        digits.explainer().groups(digits.test[0][:, :, :3])


def test_how_to_group_is_looked_at_before_anything_else(digits) -> None:
    with pytest.raises(pr.InputError, match="by is 'clas'"):
        digits.explainer().groups(None, "clas", k=0)


def test_no_errors_are_no_groups(digits) -> None:
    x = digits.test[0][:5]
    right = digits.model(x).argmax(dim=1)
    found = digits.explainer().groups((x, right), "error")
    assert len(found) == 0
    assert str(found) == found.heading == "No prediction is wrong: 0 of 5 cases"
    assert list(found.to_frame().columns)[:4] == ["group", "cases", "rank", "index"]
    assert found.plot() is not None


def test_errors_that_cannot_be_ranked_are_not_told_as_none() -> None:
    model = torch.nn.Linear(2, 2)
    _ = model.weight.data.copy_(2 * torch.eye(2)), model.bias.data.zero_()
    explainer = pr.Explainer(model, (torch.eye(2), torch.tensor([0, 1])), "cos_x")
    found = explainer.groups((torch.zeros(1, 2), torch.tensor([1])), "error", k=1)
    assert str(found).startswith("0 cases in 0 groups by their error")
    assert found.notes


@pytest.mark.parametrize(
    ("by", "said"),
    [
        ("class", "Use one of: prediction, truth, error"),
        (["a"], "by has 1 names, but there are 4 cases"),
        (3, "by is an int"),
    ],
)
def test_groups_that_cannot_be_are_refused(by, said, digits) -> None:
    with pytest.raises(pr.InputError, match=said):
        digits.explainer().groups(digits.test[0][:4], by)


def test_what_the_precedents_share_stands_out() -> None:
    draw = torch.Generator().manual_seed(0)
    x = torch.rand(40, 1, 12, 12, generator=draw) / 4
    x[:8, :, 9:, 9:] = 1  # a patch
    y = torch.arange(40) % 2
    y[:8] = 0
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(144, 2))
    cases = torch.rand(4, 1, 12, 12, generator=draw) / 4
    cases[:, :, 9:, 9:] = 1
    found = pr.Explainer(model, (x, y), "cos_x").groups(cases, ["patched"] * 4, k=5)
    picture = found["patched"].shared.picture
    place = divmod(int(picture.argmax()), 12)
    assert min(place) >= 9
    assert set(found["patched"].precedents) <= set(range(8))


SHELF = "Home & Garden > Kitchen & Dining > Cookware & Bakeware > Cookware > "  # more letters than are printed


@pytest.mark.parametrize(
    "names",
    [[f"{SHELF}pan {i}" for i in range(10)], [f"{i} of{' the' * 40} end" for i in range(10)], ["same"] * 10],
)
@pytest.mark.parametrize("by", ["prediction", "truth", "error"])
def test_names_of_classes_do_not_change_the_groups(by, names, digits) -> None:
    plain = digits.explainer().groups(digits.test, by)
    named = digits.explainer(classes=names).groups(digits.test, by)
    assert sorted(group.cases for group in plain.groups) == sorted(group.cases for group in named.groups)
    assert len({group.name for group in named.groups}) == len(plain)
    assert len({row[0] for row in named.printed()}) == len(plain)  # a person tells them apart, too
    assert max(len(row[0]) for row in named.printed()) <= 2 * 60 + len(" taken for ")
    for group in named.groups:
        assert named[group.name] is group


@pytest.mark.parametrize("metric", ["cos_x", "l2_x"])
def test_the_difference_of_two_classes_is_not_what_precedents_share(metric) -> None:
    data = load_iris(as_frame=True)
    x, y = data.data, data.target_names[data.target]
    found = pr.Explainer(LogisticRegression(max_iter=1000).fit(x, y), (x, y), metric).groups(x, k=5)
    assert len(found["versicolor"].classes) == 2  # nearly all of the one, some of the other
    assert not [note for note in found.notes if note.startswith("versicolor")]


@pytest.mark.parametrize("seed", range(5))
def test_precedents_are_compared_with_the_same_shares_of_classes(seed) -> None:
    draw = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 4, (900,), generator=draw).clamp(max=3)
    precedents = torch.randperm(900, generator=draw)[:300]
    precedents = precedents[(labels[precedents] > 0) | (torch.arange(300) % 3 == 0)].tolist()
    one, other = beside(precedents, labels)
    assert set(one) <= set(precedents)
    assert not set(other) & set(precedents)
    shares = [torch.bincount(labels[side], minlength=4) / len(side) for side in (one, other)]
    assert (shares[0] - shares[1]).abs().max() < 0.02
    assert max(len(one), len(other)) <= 204


def test_a_class_without_others_is_left_out_of_both_sides() -> None:
    labels = torch.tensor([0] * 10 + [1] * 50 + [2] * 50)
    one, other = beside([*range(10), *range(10, 30)], labels)  # all of class 0, some of class 1
    assert set(labels[one].tolist()) == set(labels[other].tolist()) == {1}
    assert beside([*range(10), *range(10, 15)], labels) == ([], [])  # most have no others


MISSING = {
    "pandas, texts": lambda: pd.Series(["a"] * 10 + [None] * 10),
    "pandas, string": lambda: pd.Series(["a"] * 10 + [None] * 10, dtype="string"),
    "pandas, numbers": lambda: pd.Series([1.0] * 10 + [None] * 10),
    "pandas, whole numbers": lambda: pd.Series([1] * 10 + [None] * 10, dtype="Int64"),
    "pandas, dates": lambda: pd.Series([pd.Timestamp("2026-01-01")] * 10 + [None] * 10),
    "numpy": lambda: np.array([1.0] * 10 + [np.nan] * 10),
    "masked": lambda: np.ma.array([1] * 20, mask=[False] * 10 + [True] * 10),
    "list": lambda: ["a"] * 10 + [float("nan"), np.float32("nan"), pd.NA, pd.NaT, None] * 2,
}


@pytest.mark.parametrize("kind", MISSING)
def test_what_is_missing_is_in_no_group(kind, digits) -> None:
    (group,) = digits.explainer().groups(digits.test[0][:20], MISSING[kind]()).groups
    assert list(group.cases) == list(range(10))


def test_only_groups_that_are_listed_have_sentences(digits) -> None:
    found = digits.explainer().groups(digits.test[0], [str(i % 30) for i in range(150)])
    names = {group.name for group in found.groups[20:]}
    for text in (str(found), found.to_html(), found._repr_html_()):
        assert not [name for name in names if f"\n{name}: " in text or f">{name}: " in text]
    said = {note.split(": ")[0] for note in found.to_dict()["notes"]}
    assert said == {group.name for group in found.groups}

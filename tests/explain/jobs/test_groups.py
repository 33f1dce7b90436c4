from collections import Counter

import pytest
import torch

import precedents as pr


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
    assert str(found).startswith("0 cases in 0 groups")
    assert list(found.to_frame().columns)[:4] == ["group", "cases", "rank", "index"]
    assert found.plot() is not None


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

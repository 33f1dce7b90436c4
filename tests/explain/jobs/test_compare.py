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
    with pytest.raises(pr.InputError, match="Ask for k from 1 to 3"):
        pr.compare(explainer, explainer, x, k=4)


def test_the_same_set_in_another_order_is_refused(digits) -> None:
    x, y = digits.train
    turned = pr.Explainer(digits.model, (x.flip(0), y.flip(0)))
    with pytest.raises(pr.InputError, match="in both training sets, but in another order, the first at 0"):
        pr.compare(digits.explainer(), turned, digits.test[0][:2])


def folds(kind: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Of 600 instances those of two training sets of one size."""
    every = torch.arange(600)
    return {
        "one apart": (every[1:501], every[:500]),
        "cross validation": (every[200:], torch.cat([every[:200], every[400:]])),
        "two halves": (every[:300], every[300:]),
        "drawn": (torch.randperm(600)[:400].sort().values, torch.randperm(600)[:400].sort().values),
    }[kind]


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("kind", ["one apart", "cross validation", "two halves", "drawn"])
def test_other_training_sets_of_the_same_size_are_refused(kind, named, digits) -> None:
    x, y = digits.train
    names = [f"digit {i}" for i in range(10)] if named else None
    pair = [pr.Explainer(digits.model, (x[some], y[some]), classes=names) for some in folds(kind)]
    for one, other in (pair, pair[::-1]):
        with pytest.raises(pr.InputError, match=r"training sets.*by their places: make both.*ids="):
            pr.compare(one, other, digits.test[0][:2])


@pytest.mark.parametrize("change", [lambda x: x / 2, lambda x: torch.cat([x[:300], x[300:] / 2])])
def test_other_preprocessing_and_corrected_labels_are_the_same_set(change, digits) -> None:
    x, y = digits.train
    corrected = y.clone()
    corrected[digits.flipped] = (y[digits.flipped] - 1) % 10
    other = pr.Explainer(digits.model, (change(x), corrected))
    assert len(pr.compare(digits.explainer(), other, digits.test[0][:4])) == 4


def test_instances_of_the_same_ids_may_differ_in_all_else(digits) -> None:
    (x, y), ids = digits.train, [f"scan {i}" for i in range(600)]
    other = pr.Explainer(digits.model, (x.flip(3), (y + 1) % 10), ids=ids)
    assert len(pr.compare(digits.explainer(ids=ids), other, digits.test[0][:4])) == 4


def test_many_precedents_need_no_table_of_all_pairs(digits) -> None:
    one, other = digits.explainer("cos_x"), digits.explainer("dot_x")
    found = pr.compare(one, other, digits.test[0][:100], k=600)
    with torch.profiler.profile(profile_memory=True) as profile:
        assert found.overlap.tolist() == [1.0] * 100
    largest = max(event.cpu_memory_usage for event in profile.events())
    assert largest < 600 * 600


def fruit() -> tuple[pr.Explainer, torch.Tensor]:
    """An explainer of two classes without names, and three cases of which the first two are of class 0."""
    x, y = torch.eye(3), torch.tensor([0, 0, 1])
    model = torch.nn.Linear(3, 2, bias=False)
    model.weight.data.copy_(torch.tensor([[2.0, 2.0, -2.0], [-2.0, -2.0, 2.0]]))
    return pr.Explainer(model, (x, y)), x


def test_where_one_has_no_names_classes_go_by_their_numbers() -> None:
    plain, x = fruit()
    named = pr.Explainer(plain.subject.classifier, plain.subject.train, classes=["apple", "pear"])
    for pair in ((plain, named), (named, plain)):
        found = pr.compare(*pair, x)
        assert not found.changed.any()
        assert found.to_frame()["one_prediction"].tolist() == ["apple", "apple", "pear"]
        assert "apple by both" in str(found)


def test_the_same_names_in_another_order_are_the_same_classes() -> None:
    plain, x = fruit()
    train = plain.subject.train
    named = pr.Explainer(plain.subject.classifier, train, classes=["apple", "pear"])
    turned = torch.nn.Linear(3, 2, bias=False)
    turned.weight.data.copy_(plain.subject.classifier.module.weight.flip(0))
    other = pr.Explainer(turned, (x, torch.tensor([1, 1, 0])), classes=["pear", "apple"])
    assert not pr.compare(named, other, x).changed.any()


def test_names_that_differ_are_refused_with_what_to_type() -> None:
    plain, x = fruit()
    one, other = (
        pr.Explainer(plain.subject.classifier, plain.subject.train, classes=names)
        for names in (["apple", "pear"], ["Apple", "pear"])
    )
    with pytest.raises(
        pr.InputError, match=r"alone has apple, the second alone Apple\. Name them alike.*classes="
    ):
        pr.compare(one, other, x)


def test_the_frame_has_the_ids_of_the_first_precedents_where_they_are_known(digits) -> None:
    named, x = digits.explainer("cos_x", ids=[f"scan {i}" for i in range(600)]), digits.test[0][:5]
    frame = pr.compare(digits.explainer(), named, x).to_frame()
    for side in ("one", "other"):
        assert frame[f"{side}_first_id"].tolist() == [f"scan {i}" for i in frame[f"{side}_first"]]
    unnamed = pr.compare(digits.explainer(), digits.explainer("cos_x"), x).to_frame()
    assert unnamed["one_first_id"].tolist() == [None] * 5

import pytest
import torch
from conftest import mlp, trained

import precedents as pr


@pytest.mark.parametrize(
    "metric", ["dot_grad", "dot_x", "dot_last", "l2_grad", "cos_grad", "dot_fisher", "dot_if", "cos_if"]
)
def test_it_is_the_diagonal_of_the_whole_matrix(metric, model, train) -> None:
    explainer = pr.Explainer(model, train, metric)
    whole = explainer.scores(train[0], labels=train[1]).diagonal()
    own = explainer.self_relevance().scores
    assert torch.allclose(own, whole, rtol=1e-8, atol=1e-10)


def test_the_largest_come_first_and_ties_in_their_order(model, train) -> None:
    found = pr.Explainer(model, train, "dot_grad").self_relevance()
    frame = found.to_frame()
    assert frame["score"].is_monotonic_decreasing
    assert frame["index"].tolist() == found.order
    assert set(frame["index"]) == set(range(45))
    same = pr.Explainer(model, (torch.ones(4, 5).double(), train[1][:4]), "dot_x").self_relevance()
    assert same.order == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("metric", "instead"), [("cos_grad", "dot_grad"), ("l2_x", "dot_x"), ("cos_fisher", "dot_fisher")]
)
def test_what_is_the_same_for_all_says_what_to_use(metric, instead, model, train) -> None:
    found = pr.Explainer(model, train, metric).self_relevance()
    assert f'"{instead}"' in str(found)
    assert found.to_dict()["notes"]
    assert not pr.Explainer(model, train, instead).self_relevance().notes
    assert found.order == [int(i) for i in found.lengths.argsort(descending=True, stable=True)]
    first = found.order[0]
    assert f"longest first\n  #{first}" in str(found)
    assert float(str(found).splitlines()[1].split("length ")[1]) == pytest.approx(
        float(found.lengths[first]), rel=1e-2
    )
    assert "length" in found.plot().axes[0].get_title()


def test_no_matrix_of_all_pairs_is_formed(train) -> None:
    n = 3000
    x, y = train[0].repeat(67, 1)[:n], train[1].repeat(67)[:n]
    explainer = pr.Explainer(trained(mlp, (x, y), steps=2), (x, y), "dot_grad", memory="20 MB")
    with pytest.raises(pr.BudgetError):
        explainer.scores(x)  # 72 MB
    assert len(explainer.self_relevance()) == n


@pytest.mark.parametrize("metric", ["cos_grad", "dot_grad", "dot_x", "cos_x", "l2_x"])
def test_what_a_page_says_is_of_the_vectors(metric, model, train) -> None:
    page = pr.Explainer(model, train, metric).self_relevance().to_html()
    assert ("labels take no part" in page) == metric.endswith("_x")
    assert ("may be wrong labels" in page) == metric.endswith("grad")

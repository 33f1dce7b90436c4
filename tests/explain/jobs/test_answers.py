import numpy as np
import pytest
import torch

import precedents as pr


def test_they_are_the_cases_whose_precedents_have_the_instance(digits) -> None:
    explainer, x = digits.explainer(), digits.test[0]
    top = explainer.explain(x, k=3).top
    j = int(top.indices[4, 1])
    found = explainer.answers(j, x, k=3)
    expected = {(case, rank + 1) for case, rank in (top.indices == j).nonzero().tolist()}
    assert {(row["case"], row["rank"]) for row in found.rows()} == expected
    assert set(found.to_frame()["index"]) == {j}
    assert f"#{j} is among the first 3 precedents of {len(expected)} of 150 cases" in str(found)


def test_without_an_instance_all_first_precedents_are_listed_and_hubs_are_told(digits) -> None:
    explainer, x = digits.explainer("dot_x"), digits.test[0]
    found = explainer.answers(None, x, k=1)
    counts = torch.bincount(explainer.explain(x, k=1).top.indices[:, 0], minlength=600)
    assert found.counts == {i: int(counts[i]) for i in found.indices}
    assert sum(found.counts.values()) == 150
    assert found.hubs
    assert all(share >= 3 / 150 for share in found.hubs.values())
    assert "is a hub" in str(found)


def test_an_instance_that_answers_nothing_has_no_rows(digits) -> None:
    found = digits.explainer().answers([int(digits.flipped[0])], digits.test[0][:3], k=1)
    assert len(found) in (0, 1, 2, 3)
    assert list(found.to_frame().columns[:3]) == ["index", "id", "label"]
    assert found.plot().axes


@pytest.mark.parametrize("j", [-1, 600, 1.5, "#3", [1, 900]])
def test_places_that_are_not_there_are_refused(j, digits) -> None:
    with pytest.raises(pr.InputError, match="from 0 to 599"):
        digits.explainer().answers(j, digits.test[0][:2])


@pytest.mark.parametrize("scalar", [np.int64(4), torch.tensor(4)])
def test_a_place_may_be_a_scalar_of_an_array(scalar, digits) -> None:
    explainer = digits.explainer()
    assert explainer.answers(scalar, digits.test[0][:5]).indices == [4]


def test_an_id_of_text_names_the_instance_and_a_number_is_always_a_place(digits) -> None:
    explainer, x = digits.explainer(ids=[f"scan {i}" for i in range(600)]), digits.test[0][:20]
    assert explainer.answers(["scan 7", 3], x).indices == [7, 3]
    assert explainer.answers("scan 7", x).rows() == explainer.answers(7, x).rows()
    numbered = digits.explainer(ids=list(range(600, 1200)))
    assert numbered.answers(7, x).indices == [7]


def test_an_unknown_id_is_one_clear_line(digits) -> None:
    explainer = digits.explainer(ids=[f"scan {i}" for i in range(600)])
    with pytest.raises(pr.InputError) as refused:
        explainer.answers("scan 700", digits.test[0][:2])
    assert str(refused.value) == (
        "No training instance has the id 'scan 700'. Ids are: 'scan 0', 'scan 1', 'scan 2', ... Pass the place "
        "of a training instance, from 0 to 599, or an id."
    )

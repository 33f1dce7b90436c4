"""The second question: the answers of a full pass, from a few rows that are computed again."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy

import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset

from precedents import Explainer
from precedents.errors import PrecedentsError
from precedents.index import codes as codes_module
from precedents.index import search as search_module

from .worlds import MEMORY, Counting, Items, asked_before


@pytest.fixture(params=["rows as they are", "sketched rows"])
def first(request, monkeypatch) -> str:
    """Whether rows are sketched first, as long ones are."""
    if request.param == "sketched rows":
        monkeypatch.setattr(codes_module, "EXACT", 512)
        monkeypatch.setattr(codes_module, "BUCKETS", 512)
    return request.param


@pytest.mark.parametrize("metric", ["cos_grad", "dot_grad", "l2_grad"])
@pytest.mark.parametrize("k", [1, 10])
def test_answers_are_those_of_a_full_pass(world, first, metric: str, k: int) -> None:
    model, train, cases = world
    explainer = asked_before(model, train, metric)
    full = Explainer(model, train, metric, index=False)
    expected, recalled = full.explain(cases, k), 0
    for i in range(0, 20, 4):
        found = explainer.explain(cases[i : i + 4], k)
        recalled += len(found.completeness)
        assert found.top.indices.tolist() == expected.top.indices[i : i + 4].tolist()
        torch.testing.assert_close(found.top.scores, expected.top.scores[i : i + 4], rtol=1e-12, atol=1e-13)
        assert (found.percentiles <= expected.percentiles[i : i + 4]).all()
        assert (found.percentiles >= expected.percentiles[i : i + 4] - 5).all()
        assert found.flags == full.explain(cases[i : i + 4], k).flags
    assert recalled  # a pass is made where too many are alike


def test_a_further_question_computes_few_rows(world, first) -> None:
    model, train, cases = world
    explainer = asked_before(model, train)
    Counting.passed = 0
    found = explainer.explain(cases[0])
    again = int(re.search(r"([\d,]+) of 2,980 rows computed again", found.completeness[0])[1].replace(",", ""))
    assert 64 <= again <= 400
    assert Counting.passed < 2 * again + 200


def test_the_explanation_says_how_it_knows(world) -> None:
    model, train, cases = world
    explainer = asked_before(model, train)
    text = str(explainer.explain(cases[0]))
    assert "exact; first 5 proved complete; " in text
    assert re.search(r"above 9\d%", text)
    assert explainer.explain(cases[0]).to_dict()["cases"][0]["completeness"].startswith("exact; first 5 proved")


def test_percentiles_of_estimates_are_whole_numbers_wherever_they_are_told(world) -> None:
    model, train, cases = world
    found = asked_before(model, train).explain(cases[0], 3)
    assert found.completeness
    exported = found.to_dict()["cases"][0]["precedents"]
    told = [each.percentile for each in found.precedents()]
    assert [each["percentile"] for each in exported] == told == [int(each) for each in told]
    passed = Explainer(model, train, index=False).explain(cases[0], 3).percentiles[0].tolist()
    assert all(0 <= a - b < 5 for a, b in zip(passed, told, strict=True))


def test_where_rows_are_sketched_nothing_is_proved(world, monkeypatch) -> None:
    model, train, cases = world
    monkeypatch.setattr(codes_module, "EXACT", 512)
    monkeypatch.setattr(codes_module, "BUCKETS", 512)
    found = asked_before(model, train).explain(cases)
    assert all("complete at 4 sigma" in each for each in found.completeness)


def test_what_is_cut_off_is_said(world, monkeypatch) -> None:
    model, train, cases = world
    monkeypatch.setattr(search_module, "PROVING", -1)
    monkeypatch.setattr(search_module, "SIGMAS", 400.0)
    monkeypatch.setattr(search_module, "SHORT", 0)
    monkeypatch.setattr(search_module, "CAP", 512)
    found = asked_before(model, train).explain(cases[0])
    assert "capped" in found.completeness[0]
    assert "others may be as relevant" in str(found)


def test_of_a_set_that_is_not_very_large_a_pass_is_made_instead(world, monkeypatch) -> None:
    model, train, cases = world
    monkeypatch.setattr(search_module, "PROVING", -1)
    monkeypatch.setattr(search_module, "SIGMAS", 4000.0)
    explainer = asked_before(model, train)
    Counting.passed = 0
    assert explainer.explain(cases[0]).completeness == ()
    assert Counting.passed < len(train[0]) + 500  # and little was computed in vain


def test_without_an_index_each_question_is_a_pass(world) -> None:
    model, train, cases = world
    explainer = Explainer(model, train, memory=MEMORY, index=False)
    for _ in range(2):
        Counting.passed = 0
        assert explainer.explain(cases[0]).completeness == ()
        assert Counting.passed >= len(train[0])
    assert "by a full pass" in explainer.explain(cases[0]).to_json()


def test_scores_are_always_of_a_full_pass(world) -> None:
    model, train, cases = world
    found = asked_before(model, train).scores(cases[:2])
    assert torch.equal(found, Explainer(model, train, memory=MEMORY, index=False).scores(cases[:2]))


def test_of_equal_instances_the_first_are_named(world) -> None:
    model, (x, y), cases = world
    copies = x.clone()
    places = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))[:1500].sort().values
    copies[places], labels = cases[3], y.clone()
    labels[places] = int(model(cases[3:4]).argmax())
    found = asked_before(model, (copies, labels)).explain(cases[3])
    assert sorted(found.top.indices[0].tolist()) == places[:5].tolist()
    assert "capped" not in found.completeness[0]
    again = int(re.search(r"([\d,]+) of", found.completeness[0])[1].replace(",", ""))
    assert again < 700


def test_zero_gradients_rank_as_in_a_full_pass(world) -> None:
    model, (x, y), cases = world
    sure = deepcopy(model)
    sure[-1].weight.data *= 400  # most predictions are saturated: their gradients are zero
    expected = Explainer(sure, (x, y), index=False).explain(cases, 20)
    explainer = asked_before(sure, (x, y))
    for i in range(0, 20, 4):
        found = explainer.explain(cases[i : i + 4], 20)
        assert found.top.indices.tolist() == expected.top.indices[i : i + 4].tolist()
        assert found.remarks == expected.remarks[i : i + 4]


def test_a_case_that_is_no_number_is_refused_as_by_a_full_pass(world) -> None:
    model, train, cases = world
    wrong = cases[:1] * torch.nan
    said = []
    for explainer in (asked_before(model, train), Explainer(model, train, index=False)):
        with pytest.raises(PrecedentsError) as caught:
            explainer.explain(wrong)
        said.append(str(caught.value))
    assert said[0] == said[1]


def test_a_case_unlike_all_others_is_answered_rightly(world) -> None:
    model, train, _ = world
    strange = torch.full((1, 1, 8, 8), -30.0, dtype=torch.double)
    expected = Explainer(model, train, index=False).explain(strange)
    assert asked_before(model, train).explain(strange).top.indices.tolist() == expected.top.indices.tolist()


def test_training_rows_that_change_are_noticed(world) -> None:
    model, (x, y), cases = world
    mine = x.clone()
    explainer = asked_before(model, (mine, y))
    mine[17] += 1
    with pytest.raises(PrecedentsError, match="Row 17"):
        explainer.explain(cases[0])


def test_very_many_cases_are_a_full_pass(world) -> None:
    model, train, cases = world
    explainer = asked_before(model, train)
    found = explainer.explain(cases.repeat(3, 1, 1, 1))
    assert found.completeness == ()


def test_threads_get_the_same_answers(world) -> None:
    model, train, cases = world
    explainer = asked_before(model, train)
    expected = [explainer.explain(case).top.indices.tolist() for case in cases]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda case: explainer.explain(case).top.indices.tolist(), cases))
    assert found == expected


def test_a_dataset_is_read_at_its_places(world) -> None:
    model, train, cases = world
    explainer = asked_before(model, Items(*train))
    found = explainer.explain(cases[1])
    expected = Explainer(model, train, index=False).explain(cases[1])
    assert found.completeness
    assert found.top.indices.tolist() == expected.top.indices.tolist()


class Stream(IterableDataset):
    """A set without places."""

    def __init__(self, x: Tensor, y: Tensor) -> None:
        self.pairs = [(row, int(label)) for row, label in zip(x, y, strict=True)]

    def __iter__(self) -> Iterator[tuple[Tensor, int]]:
        return iter(self.pairs)


def upside_down(items: list[tuple[Tensor, int]]) -> tuple[Tensor, Tensor]:
    """A collate_fn of a user's own."""
    return torch.stack([x.flip(-1) for x, _ in items]), torch.tensor([y for _, y in items])


@pytest.mark.parametrize("collate_fn", [None, upside_down])
def test_a_loader_of_a_dataset_is_read_at_its_places(world, collate_fn) -> None:
    model, train, cases = world
    loader = DataLoader(Items(*train), batch_size=500, collate_fn=collate_fn)
    explainer = Explainer(model, loader, memory=MEMORY)
    explainer.explain(cases[0])
    Counting.passed = 0
    found = explainer.explain(cases[1])
    assert found.completeness
    assert Counting.passed < len(train[0]) / 2
    expected = Explainer(model, loader, index=False).explain(cases[1])
    assert found.top.indices.tolist() == expected.top.indices.tolist()


@pytest.mark.parametrize("metric", ["cos_grad", "cos_x"])
def test_a_stream_in_its_order_and_inputs_are_gone_through_again(world, metric: str) -> None:
    model, train, cases = world
    data = DataLoader(Stream(*train), batch_size=500) if metric == "cos_grad" else train
    explainer = Explainer(model, data, metric, memory=MEMORY)
    for case in cases[:2]:
        assert explainer.explain(case).completeness == ()


def test_curvature_in_a_kronecker_basis_is_recalled_too(world) -> None:
    model, (x, y), cases = world
    metric, train = "cosine:gradient/ekfac", (x, y)
    explainer = asked_before(model, train, metric)
    expected = Explainer(model, train, metric, index=False).explain(cases[:4])
    Counting.passed = 0
    found = explainer.explain(cases[:4])
    assert Counting.passed < len(x)
    assert all(each.startswith("exact") for each in found.completeness)
    assert found.top.indices.tolist() == expected.top.indices.tolist()
    torch.testing.assert_close(found.top.scores, expected.top.scores, rtol=1e-9, atol=1e-12)


def test_codes_that_are_kept_are_taken_from_the_budget_and_made_once(world) -> None:
    model, train, cases = world
    explainer = asked_before(model, train)
    budget, codes = explainer.subject.classifier.budget, 900 * len(train[0])
    assert budget.held.bytes >= codes
    Counting.passed = 0
    explainer.explain(cases.repeat(3, 1, 1, 1))  # a pass, which makes no codes
    assert Counting.passed < 1.2 * len(train[0])
    held = budget.held.bytes
    del explainer
    assert budget.held.bytes <= held - codes

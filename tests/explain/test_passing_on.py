"""Explanations that are passed on: true labels, frames with inputs, safe tables, pages, digits."""

import re

import pandas as pd
import pytest
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from precedents import Explainer, InputError, NotApplicable

LONG = "a lake near mountains " * 8 + "and waves on the sea " + "with many other words " * 8
TEXTS = ["the blue sea and its waves", LONG, "=goal in the last minute", "the team won the match"]
LABELS = ["water", "water", "sport", "sport"]


@pytest.fixture(scope="module")
def explainer() -> Explainer:
    model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(TEXTS * 3, LABELS * 3)
    return Explainer(model, (TEXTS * 3, LABELS * 3), ids=[f"@{i}" for i in range(12)])


@pytest.fixture(scope="module")
def explanation(explainer):
    return explainer.explain(["waves on the blue sea", "=goal"], k=8, truth=["sport", "sport"])


def test_the_truth_is_told_where_the_prediction_is_wrong(explanation) -> None:
    wrong, right = str(explanation[0]), str(explanation[1])
    assert wrong.startswith("predicted water, in truth sport")
    assert "in truth" not in right
    assert "predicted water, in truth sport" in explanation.to_html()
    assert [case["truth"] for case in explanation.to_dict()["cases"]] == ["sport", "sport"]
    assert "truth" in explanation.to_frame()
    assert "in truth sport" in explanation.plot().axes[0].get_title()


def test_wrong_predictions_are_found_by_names_and_by_numbers(explainer, explanation) -> None:
    assert explanation.wrong == [0]
    assert explanation[1].wrong == []
    cases = ["goal", "waves", "the blue sea", "=goal", "the match"]
    given = pd.Series(["water", "water", "sport", "sport", "water"], index=[7, 8, 9, 3, 4])
    found = explainer.explain(cases, k=1, truth=given)
    frame = found.to_frame()
    assert found.wrong == [0, 2, 4] == frame["case"][frame["prediction"] != frame["truth"]].tolist()
    x, y = torch.eye(3), torch.tensor([0, 1, 2])
    of_numbers = Explainer(torch.nn.Linear(3, 3), (x, y)).explain(x, k=1, truth=y)
    assert of_numbers.wrong == (of_numbers.predictions != y).nonzero().flatten().tolist()


def test_without_the_truth_nothing_is_said_of_it(explainer) -> None:
    found = explainer.explain("waves", k=1)
    assert "truth" not in found.to_frame()
    assert "truth" not in found.to_json()
    with pytest.raises(InputError, match=r"Nothing says which predictions are wrong.*explain\(x, truth=y\)"):
        _ = found.wrong


def test_a_truth_of_the_wrong_length_or_class_is_refused(explainer) -> None:
    with pytest.raises(InputError):
        explainer.explain(["waves", "goal"], k=1, truth=["sport"])
    with pytest.raises(InputError, match="sprot"):
        explainer.explain("waves", k=1, truth="sprot")


def test_a_frame_has_texts_ids_and_parts(explanation) -> None:
    frame = explanation.to_frame(inputs=True)
    assert frame["case: text"].tolist() == ["waves on the blue sea"] * 8 + ["=goal"] * 8
    assert frame["precedent: text"].tolist() == [TEXTS[i % 4] for i in frame["index"]]
    assert frame["id"].tolist() == [f"@{i}" for i in frame["index"]]
    product = frame["residual_cosine"] * frame["feature_cosine"]
    assert product.tolist() == pytest.approx(frame["score"].tolist())
    assert "case: text" not in explanation.to_frame()


def test_a_frame_has_the_columns_of_tables(train, model, cases) -> None:
    found = Explainer(model, train, render=lambda row: {"first": float(row[0])}).explain(cases[:2], k=2)
    frame = found.to_frame(inputs=True)
    assert frame["precedent: first"].tolist() == pytest.approx(train[0][frame["index"].tolist(), 0].tolist())


def test_no_text_of_a_table_runs_as_a_formula(explanation, tmp_path) -> None:
    text = explanation.to_csv(tmp_path / "file.csv")
    assert (tmp_path / "file.csv").read_text() == text
    read = pd.read_csv(tmp_path / "file.csv")
    for name in read.select_dtypes(exclude="number"):
        assert not read[name].astype(str).str.match(r"[=+\-@]").any(), name
    assert "'=goal" in set(read["case: text"])
    assert read["score"].tolist() == pytest.approx(explanation.to_frame()["score"].tolist())


def test_a_page_stands_by_itself(explanation) -> None:
    page = explanation.to_html()
    assert page.startswith("<!doctype html>")
    for part in ("charset='utf-8'", "width=device-width", "prefers-color-scheme:dark", "<h1>"):
        assert part in page
    assert "<html" not in explanation._repr_html_()


def test_words_are_marked_by_their_share_of_the_score(explanation) -> None:
    page = explanation._repr_html_()
    marked = set(re.findall("<mark[^>]*>([^<]*)</mark>", page))
    assert {"waves", "blue", "sea"} <= marked
    assert "minute" not in marked


def test_a_long_text_is_cut_around_what_matters(explanation) -> None:
    [line] = {line.strip() for line in str(explanation[0]).splitlines() if "..." in line}
    assert "waves" in line
    assert "sea" in line
    assert len(line) <= 106


@pytest.mark.parametrize(("count", "said"), [(45, "97"), (100, "97"), (1000, "97.7"), (60000, "97.777")])
def test_percentiles_have_the_digits_that_the_training_set_has(explanation, count, said) -> None:
    from dataclasses import replace

    assert replace(explanation, count=count)._above(97.7777777) == said


def test_an_explanation_divides_the_scores_of_its_precedents(explainer, explanation) -> None:
    for case in (0, 1):
        for rank in (1, 4):
            own = explanation.shares(case, rank)
            assert own.score == pytest.approx(float(explanation.top.scores[case, rank - 1]), abs=1e-9)
            assert own.index == int(explanation.top.indices[case, rank - 1])
    with pytest.raises(InputError, match="rank is 9"):
        explanation.shares(0, 9)


def test_metrics_without_parts_explain_and_draw_all_the_same(model, train, cases) -> None:
    explainer = Explainer(model, train, "cos_last", render=lambda row: f"a text about {row[0]:.1f}")
    found = explainer.explain(cases, k=2)
    assert found.to_html()
    with pytest.raises(NotApplicable):
        found.shares()


def test_shares_of_padded_texts_are_those_of_the_texts_alone() -> None:
    torch.manual_seed(0)
    layers = torch.nn.Embedding(12, 4, padding_idx=0), torch.nn.Flatten(), torch.nn.Linear(20, 2)
    x = torch.randint(1, 12, (6, 5))
    x[:, 3:] = 0
    found = Explainer(torch.nn.Sequential(*layers).double(), (x, torch.arange(6) % 2)).explain(x[:2], k=3)
    share = found.shares(1, 2)
    assert sum(each.share for each in share.layers) == pytest.approx(float(found.top.scores[1, 1]), abs=1e-9)
    assert share["0"].case[3:].abs().max() == 0


def test_a_page_says_what_the_labels_of_its_cases_are() -> None:
    x, y = torch.eye(4), torch.tensor([0, 1, 0, 1])
    explainer = Explainer(torch.nn.Linear(4, 2), (x, y))
    predicted, given = (explainer.explain(x[:1], 2, labels=each).to_html() for each in (None, [1]))
    assert "count most for its prediction" in predicted
    assert "another than the predicted one" in predicted
    assert "count most for the class that it is taken for" in given
    assert "another than that class" in given
    assert "predicted" not in given

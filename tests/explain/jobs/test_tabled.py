"""What every job finds prints, draws and exports itself."""

import csv
import io
import json
from html import escape
from html.parser import HTMLParser

import pytest
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import precedents as pr
from precedents.seen import clipped

JOBS = {
    "self_relevance": lambda e, test: e.self_relevance(),
    "suspects": lambda e, test: e.suspects(4, test),
    "contrast": lambda e, test: e.contrast(test[0][0], 1, 7),
    "answers": lambda e, test: e.answers(None, test[0][:30]),
    "near_duplicates": lambda e, test: e.near_duplicates(test, least=0.9),
    "groups": lambda e, test: e.groups(test, "error"),
    "compare": lambda e, test: pr.compare(e, e, test[0][:5]),
}
NAMES = [f"=cmd|<b>{i}" for i in range(10)]  # that spreadsheets and browsers would act on


@pytest.fixture(scope="module", params=JOBS)
def found(request, digits):
    ids = [f"=id{i}" for i in range(600)]
    return JOBS[request.param](digits.explainer("dot_grad", classes=NAMES, ids=ids), digits.test)


def test_it_prints_a_heading_and_rows(found) -> None:
    first, *lines = str(found).splitlines()
    assert first == found.heading
    assert len(lines) >= min(len(found.printed()), 20)
    assert len(found) > 0


def test_a_frame_has_the_rows_and_names_training_instances(found) -> None:
    frame = found.to_frame()
    assert len(frame) == len(found.rows())
    if not isinstance(found, pr.ExplainerComparison):
        assert frame["index"].between(0, 599).all()
        assert (frame["id"] == "=id" + frame["index"].astype(str)).all()


LONG = "a lake near mountains " * 9
TEXTS = ["the blue sea", LONG, "a goal at last", "the team\nwon"] * 3
TOPICS = ["water", "water", "sport", "sport"] * 3


def of_texts(**options) -> pr.Explainer:
    model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(TEXTS, TOPICS)
    return pr.Explainer(model, (TEXTS, TOPICS), **options)


@pytest.mark.parametrize("job", [lambda e: e.contrast("a goal", "sport", "water"), lambda e: e.suspects()])
def test_texts_are_printed_below_what_they_are_called(job) -> None:
    found = job(of_texts())
    lines, rows = str(found).splitlines(), found.rows()
    assert len(rows) > 5
    for row, named, text in zip(rows, lines[1::2], lines[2::2], strict=False):
        assert f"#{row['index']} " in named
        assert text.startswith("  ")
        assert text.strip() == clipped(TEXTS[row["index"]], 100)
    assert any(line.endswith("...") for line in lines)


def test_no_more_texts_are_printed_than_rows() -> None:
    model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(TEXTS * 3, TOPICS * 3)
    found = pr.Explainer(model, (TEXTS * 3, TOPICS * 3)).suspects(30)
    assert len(str(found).splitlines()) == 1 + 2 * 20 + 1
    assert "... and 10 more" in str(found)


def test_what_is_no_text_has_nothing_below_it(digits) -> None:
    for found in (
        digits.explainer().suspects(5),
        of_texts(render=lambda text: {"length": len(text)}).suspects(5),
    ):
        assert len(str(found).splitlines()) == 6


def test_json_is_json(found) -> None:
    assert json.loads(found.to_json()) == json.loads(json.dumps(found.to_dict()))
    assert len(json.loads(found.to_json())["rows"]) == len(found.rows())


def test_csv_has_no_formulas(found) -> None:
    rows = list(csv.reader(io.StringIO(found.to_csv())))
    assert len(rows) == 1 + len(found.rows())
    texts = [cell for row in rows for cell in row if "cmd" in cell or "id" in cell]
    assert not [cell for cell in texts if cell.startswith("=")]


def test_it_is_drawn_and_shown_in_notebooks(found) -> None:
    assert found.plot().axes
    html = found._repr_html_()
    assert "<img" in html
    assert "<b>0" not in html
    HTMLParser().feed(html)


def test_a_page_and_a_notebook_have_what_is_printed(found) -> None:
    fragment, page = found._repr_html_(), found.to_html()
    assert page.startswith("<!doctype html>")
    assert "charset" in page
    assert "<html" not in fragment
    for row in found.printed()[:20]:
        for text in filter(None, row):
            assert escape(text) in fragment
            assert escape(text) in page
    assert page.count(escape(found.heading)) == 2  # the title and the first line
    left = len(found.printed()) - 20
    assert (f"... and {left} more" in page) == (left > 0)


def test_a_page_says_how_many_are_not_drawn(digits) -> None:
    many, few = digits.explainer().suspects(40), digits.explainer().suspects(12)
    assert "The first 12 of 40 are drawn." in many.to_html()
    assert "The first 12 of 40 are drawn." in many.plot()._suptitle.get_text()
    assert len(many.strips()) == len(few.strips()) == 12
    assert "are drawn" not in few.to_html()
    reasons = few.strips()[0].case.title.replace("\n", " ")
    assert all(text in reasons for text in few.printed()[0] if not text.startswith("given"))


def test_files_are_written_where_they_are_asked_for(found, tmp_path) -> None:
    assert found.to_html(tmp_path / "page.html") == (tmp_path / "page.html").read_text("utf-8")
    assert found.to_csv(str(tmp_path / "rows.csv")) == (tmp_path / "rows.csv").read_text("utf-8")


@pytest.mark.parametrize(
    "start", ["=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20"]
)
def test_no_text_begins_as_a_formula_does(start, digits) -> None:
    names = [f"{start}1+{i}" for i in range(10)]
    found = digits.explainer("dot_grad", classes=names).self_relevance()
    cells = [cell for row in csv.reader(io.StringIO(found.to_csv())) for cell in row if "1+" in cell]
    assert len(cells) == 600
    assert all(cell.startswith("'" + start.replace("\r", "\n")) for cell in cells)


def test_numbers_that_are_none_are_null_in_json(digits) -> None:
    found = digits.explainer("dot_grad").self_relevance()
    broken = type(found)(found.metric, torch.full((600,), torch.nan), found.lengths, None, "", found.portrayal)
    assert json.loads(broken.to_json())["rows"][0]["score"] is None

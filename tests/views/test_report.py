import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest
import reports
from hypothesis import given, settings
from hypothesis import strategies as st

from precedents.views.instance import Cell
from precedents.views.report import Example, Report, ReportRow, html
from precedents.views.svg import inline
from precedents.zoo.text import MARKS, encoded, written


class Page(HTMLParser):
    """Tags with their attributes, ids, and the text outside of styles and scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.text, self._inside = "", ""
        self.feed(text)
        self.ids = [found["id"] for _, found in self.tags if "id" in found]

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag

    def handle_endtag(self, tag) -> None:
        self._inside = ""

    def handle_data(self, data) -> None:
        if self._inside not in ("style", "script"):
            self.text += data


EMPTY = Report("title", [], [], {}, {}, [], {}, [], {}, [], {}, {})


@pytest.fixture(scope="module")
def real(trial) -> Report:
    return reports.real(trial)


@pytest.fixture(scope="module")
def page(real) -> Page:
    return Page(html(real))


def test_a_page_without_anything_is_a_page() -> None:
    page = Page(html(EMPTY))
    assert "No case equals a training instance." in page.text
    assert [found["href"] for tag, found in page.tags if tag == "a"] == ["#verdicts", "#duplicates"]


def test_every_link_leads_somewhere_on_the_page(page) -> None:
    links = {found["href"][1:] for tag, found in page.tags if tag in ("a", "use")}
    assert links
    assert links <= set(page.ids)


def test_no_id_is_given_twice(page) -> None:
    assert len(page.ids) == len(set(page.ids))


def test_headings_do_not_skip_a_level(page) -> None:
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_every_picture_has_a_label_and_every_heading_of_a_table_a_scope(page) -> None:
    assert all(found.get("aria-label") for _, found in page.tags if found.get("role") == "img")
    assert all(found.get("scope") in ("col", "row") for tag, found in page.tags if tag == "th")


def test_the_page_has_every_number_and_verdict(real, page) -> None:
    for row in real.rows:
        if row.value is not None:
            assert f"{row.value:.3f}".replace("-0.000", "0.000").replace("-", "−") in page.text
        assert row.verdict in page.text


def test_what_does_not_apply_has_its_reason() -> None:
    rows = [ReportRow("cos_last", "identical_class", None, None, None, None, "not applicable", "It is linear.")]
    assert "Not applicable: cos_last (It is linear.)" in Page(html(replace(EMPTY, rows=rows))).text


def test_the_same_report_is_the_same_page(real) -> None:
    assert html(real) == html(real)


def test_the_page_keeps_each_picture_once() -> None:
    cell = Cell("one", np.eye(4))
    example = Example(cell, True, {"a": [cell, cell], "b": [cell, Cell("other", 1 - np.eye(4))]})
    text = html(replace(EMPTY, examples=[example, example]))
    assert text.count("data:image/png") == 2
    assert text.count("<use ") == 10


def test_eighteen_metrics_by_eight_criteria_fit_in_five_megabytes(large) -> None:
    assert len(large.encode()) < 5_000_000


def test_a_criterion_that_is_not_yes_or_no_is_drawn_as_boxes() -> None:
    rows = [
        ReportRow("m", "graded", 0.5, 0.4, 0.6, 0.0, "weak", ""),
        ReportRow("m", "rate", 0.5, 0.4, 0.6, 0.0, "weak", ""),
    ]
    values = {("m", "graded"): [0.3, 0.7], ("m", "rate"): [0, 1]}
    text = html(replace(EMPTY, rows=rows, values=values))
    assert "model_randomization" not in text
    assert 'id="randomization"' in text
    assert 'id="rates"' in text


def graded(better: dict[str, str], values: list[float]) -> str:
    """The page of a criterion with these values, and of what is best of them."""
    mean = float(np.mean(values))
    rows = [ReportRow("m", "strange(k=1)", mean, mean - 0.1, mean + 0.1, 0.0, "weak", "")]
    return html(replace(EMPTY, rows=rows, values={("m", "strange(k=1)"): values}, better=better))


def test_a_criterion_for_which_zero_is_best_is_drawn_as_boxes_whatever_its_values() -> None:
    assert 'id="randomization"' not in graded({}, [0, 1])
    assert 'id="randomization"' not in graded({"strange(k=1)": "higher"}, [0, 1])
    text = graded({"strange(k=1)": "zero"}, [0, 1])
    assert '<h2 id="randomization-title">Strange</h2>' in text
    assert 'id="rates"' not in text


def test_a_column_sorts_by_what_is_best() -> None:
    assert 'data-value="-0.25"' in graded({}, [-1.0, 0.5])
    assert 'data-value="-0.25"' in graded({"strange(k=1)": "zero"}, [1.0, -0.5])
    assert 'data-value="0.25"' in graded({"strange(k=1)": "higher"}, [1.0, -0.5])


def test_what_a_criterion_asks_is_said_once_however_often_it_runs() -> None:
    names = ["strange", "strange(k=10)", "silent"]
    rows = [ReportRow("m", name, 0.5, 0.4, 0.6, 0.0, "weak", "") for name in names]
    text = html(replace(EMPTY, rows=rows, meaning=dict.fromkeys(names[:2], "It asks <this>.")))
    assert text.count("<dt>Strange</dt><dd>It asks &lt;this&gt;.</dd>") == 1
    assert "<dt>Silent</dt>" not in text


def test_unknown_words_are_marked() -> None:
    example = Example(Cell("case", "the ‹Quokka› fell"), True, {})
    assert "the <mark>‹Quokka›</mark> fell" in html(replace(EMPTY, examples=[example]))


def test_what_the_text_data_sets_do_not_know_is_marked() -> None:
    text = written(encoded([["a", "quokka"]], (*MARKS, "a"))[0], (*MARKS, "a"))
    example = Example(Cell("case", text), True, {})
    assert "a <mark>‹unknown›</mark>" in html(replace(EMPTY, examples=[example]))


def test_words_that_the_case_has_too_are_bold() -> None:
    example = Example(Cell("case", "Stocks fell"), True, {"m": [Cell("one", "old stocks & <bonds>")]})
    assert "old <b>stocks</b> &amp; &lt;bonds&gt;" in html(replace(EMPTY, examples=[example]))


@settings(max_examples=25)
@given(st.text(max_size=30))
def test_any_text_can_be_the_name_of_a_metric(name) -> None:
    from precedents.views.figures import costs

    text = inline(costs({name: 1.0}), "f", {})
    assert "<svg" not in text[4:]


def test_an_inline_figure_leaves_the_settings_of_matplotlib_alone() -> None:
    import matplotlib as mpl

    from precedents.views.figures import costs
    from precedents.views.panels import INK

    before = dict(mpl.rcParams)
    text = inline(costs({"a": 1.0}), "name", {INK: "var(--ink)"})
    assert dict(mpl.rcParams) == before
    assert "var(--ink)" in text
    assert INK not in text
    assert set(re.findall(r'id="([^"]*)"', text)) >= set(re.findall(r'href="#([^"]*)"', text))


def test_metrics_say_what_they_compare_and_cost_and_examples_come_early(real) -> None:
    made = html(replace(real, compared={"cos_grad": "Grad-Cos: the angle"}, costs={"cos_grad": 0.25}))
    assert "Grad-Cos: the angle" in made
    assert "0.25 s a case" in made
    assert made.index('id="verdicts"') < made.index('id="examples"') < made.index('id="randomization"')


def test_why_a_verdict_is_weak_is_said_once_for_all_metrics_that_share_it() -> None:
    rows = [ReportRow(name, "rate(k=2)", 0.5, 0.4, 0.6, 0.0, "weak", "") for name in ("a", "b")]
    why = {(name, "rate(k=2)"): "It is <so>." for name in ("a", "b")}
    text = Page(html(replace(EMPTY, rows=rows, why=why))).text
    assert text.count("It is <so>.") == 1
    assert "weak: a, b. It is <so>." in " ".join(text.split())
    assert "Why a verdict is weak" not in html(replace(EMPTY, rows=rows))


def test_duplicates_are_shown_with_their_texts_and_pictures() -> None:
    copies = {("0", "#4"): "a text of <two>", ("1", "#5"): np.eye(4)}
    text = html(replace(EMPTY, duplicates=[("0", "#4"), ("1", "#5"), ("2", "#6")], copies=copies))
    assert "a text of &lt;two&gt;" in text
    assert text.count("data:image/png") == 1
    assert "case 2 = #6" in text


def test_agreement_is_of_metrics_that_passed_something() -> None:
    pairs = {(one, other): 0.5 for one in "abc" for other in "abc"}
    rows = [
        ReportRow(name, "rate", 0.5, 0.4, 0.6, 0.0, verdict, "")
        for name, verdict in {"a": "passed", "b": "passed", "c": "failed"}.items()
    ]
    some = html(replace(EMPTY, rows=rows, agreement={"overlap": pairs}))
    assert '<th scope="col">b</th>' in some
    assert '<th scope="col">c</th>' not in some
    assert '<th scope="col">c</th>' in html(replace(EMPTY, rows=rows[1:], agreement={"overlap": pairs}))

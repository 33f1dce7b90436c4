"""What people see: nothing unseen is sent to a terminal or a page, names are cut, and doubt is said."""

import json
from io import StringIO

import hugging
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from torch import nn

import precedents as pr
from precedents import Explainer
from precedents.cli._main import main
from precedents.cli._output import listing, say, show, show_json
from precedents.gradients.search import SlowGradientsWarning
from precedents.seen import NAME, UNSEEN, clipped, escaped, told, visible
from precedents.views.table import Entry, Table

X = torch.randn(12, 4, generator=torch.Generator().manual_seed(0))
Y = torch.arange(12) % 3

ATTACKS = {
    "escape": "a\x1b[31mred",
    "title": "\x1b]0;title\x07",
    "link": "\x1b]8;;https://example.org\x1b\\x",
    "C1": "a\x9b31m",
    "return": "good\rbad",
    "backspace": "ab\b\b",
    "delete": "a\x7f",
    "nul": "a\0b",
    "override": "\u202etxt.exe",
    "isolate": "\u2066a\u2069",
    "mark": "\u200fa",
    "separator": "a\u2028b\u2029",
    "zero width": "a\u200bb\u200d\ufeff",
    "tag": "a\U000e0041",
    "half": "a\ud800b",
    "lines": "a\nb\r\nc",
    "markup": "[red]a[/red] [link=https://example.org]b[/link]",
    "html": "<script>alert(1)</script>",
    "long": "n" * 100_000,
}
TOGETHER = {"all": "".join(text for name, text in ATTACKS.items() if name != "long"), "long": ATTACKS["long"]}
LONGEST = 250  # letters of a line in print


def linear() -> nn.Module:
    model = nn.Linear(4, 3, bias=False)
    model.weight.data = torch.arange(12.0).reshape(3, 4).sin()
    return model


def seen(text: str, longest: int | None = LONGEST) -> str:
    """The text, if it has nothing unseen in it."""
    assert not UNSEEN.search(text)
    text.encode()
    assert longest is None or max(map(len, text.splitlines())) <= longest
    return text


@pytest.mark.parametrize("name", ATTACKS)
def test_an_explanation_sends_nothing_unseen(name) -> None:
    attack = ATTACKS[name]
    classes = [attack, f"b{attack}", f"c{attack}"]
    for render in (None, lambda _: attack, lambda _: {attack: attack, "x": 1.0}):
        found = Explainer(linear(), (X, Y), classes=classes, render=render).explain(X[:2], k=2)
        printed = seen(str(found))
        page = seen(found.to_html(), None)
        assert "<script" not in page
        assert len(printed.splitlines()) <= 2 * (1 + 2 * 4)
        assert json.loads(found.to_json())["cases"][0]["prediction"] in classes


def test_a_picture_of_an_explanation_has_nothing_unseen() -> None:
    drawn = Explainer(linear(), (X, Y), classes=[TOGETHER["all"]] * 3).explain(X[:1], k=1).plot()
    for axes in drawn.axes:
        seen(axes.get_title())


@pytest.mark.parametrize("name", TOGETHER)
def test_an_audit_sends_nothing_unseen(name) -> None:
    attack = TOGETHER[name]
    options = {"metrics": ["cos_x", "cos_grad"], "criteria": ["identical_class"], "classes": [attack] * 3}
    audit = pr.audit(linear(), (X, Y), (X, Y), name=attack, render=lambda _: attack[:999], **options)
    again = pr.Audit.from_json(audit.to_json())
    page = seen(audit.to_html(attack[:999]), None)
    assert "<script>alert" not in page
    assert "n" * 1000 not in page
    for each in (audit, again):
        seen(str(each))
        seen(repr(each))
        seen(each.to_json(), None)


CLOSED = ("verdict", "kind", "between")  # keys whose values are of a list of words


@pytest.mark.parametrize("key", ["outcomes", "scope"])
def test_an_audit_that_was_read_from_json_sends_nothing_unseen(key) -> None:
    audit = pr.audit(linear(), (X, Y), (X, Y), metrics=["cos_x"], criteria=["identical_class"])

    def spoiled(value, name=""):
        if isinstance(value, dict):
            return {own: spoiled(each, own) for own, each in value.items()}
        if isinstance(value, list):
            return [spoiled(each, name) for each in value]
        return f"{value}\x1b[31m\u202e[red]" if isinstance(value, str) and name not in CLOSED else value

    content = audit.to_dict()
    again = pr.Audit.from_json(json.dumps(content | {key: spoiled(content[key])}))
    seen(str(again))
    seen(again.to_html(), None)


@settings(max_examples=60)
@given(st.text(st.characters(), max_size=40))
def test_nothing_unseen_is_left_of_any_text(text) -> None:
    for shown in (
        visible(text),
        clipped(text),
        told(text),
        str(pr.InputError(text)),
        str(pr.UnknownNameError("a", text, [])),
    ):
        seen(shown, None)
        shown.encode()
    assert visible(visible(text)) == visible(text)
    assert len(clipped(text)) <= NAME
    assert "\n" not in clipped(text)


@settings(max_examples=60)
@given(
    st.recursive(
        st.text(st.characters(), max_size=20) | st.integers(), lambda inner: st.lists(inner, max_size=3)
    )
)
def test_json_without_anything_unseen_means_the_same(value) -> None:
    for ascii_only in (True, False):
        text = escaped(json.dumps(value, ensure_ascii=ascii_only))
        seen(text, None)
        assert json.loads(text) == value


@settings(max_examples=30)
@given(st.text(st.characters(), min_size=1, max_size=30))
def test_a_table_of_any_names_sends_nothing_unseen(text) -> None:
    table = Table(text, [text, text], [[text, Entry(text, under=(text,))]], notes=[text])
    for drawn in (table, table.compact(), listing([visible(text)], [[text]])):
        console = Console(file=StringIO(), width=80, no_color=True, force_terminal=False)
        console.print(drawn)
        seen(console.file.getvalue(), None)
    seen(table.markdown(), None)


@pytest.mark.parametrize("name", ATTACKS)
def test_a_command_sends_nothing_unseen(name, capfd) -> None:
    attack = ATTACKS[name].replace("\0", "")
    say(attack)
    show(attack)
    show_json({"a": attack})
    show_json(json.dumps({"a": attack}, ensure_ascii=False))
    out, err = capfd.readouterr()
    seen(out, None)
    assert len(seen(err, None).splitlines()) == 1
    assert len(err) < 3000


@pytest.mark.parametrize("name", [name for name in ATTACKS if name not in ("half", "nul")])
@pytest.mark.parametrize(
    "command", [("explain", "{}", "--case", "1"), ("audit", "none", "--metric", "{}"), ("{}",)]
)
def test_what_a_command_is_given_is_quoted_visibly(command, name, capfd, monkeypatch) -> None:
    monkeypatch.setenv("PRECEDENTS_DATA", ATTACKS[name][:200])
    assert main([part.format(ATTACKS[name][:3000]) for part in command]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert len(seen(err, None).splitlines()) == 1
    assert len(err) < 3000


@pytest.mark.parametrize(
    "ask",
    [
        lambda e, x: e.suspects(),
        lambda e, x: e.answers(None, x),
        lambda e, x: e.groups(x),
        lambda e, x: pr.compare(e, e, x),
    ],
)
def test_jobs_cut_long_names(ask) -> None:
    x, names = torch.randn(30, 4), ["n" * 100_000 + str(i) for i in range(3)]
    explainer = Explainer(nn.Linear(4, 3), (x, torch.arange(30) % 3), classes=names)
    assert max(map(len, str(ask(explainer, x)).splitlines())) < 1000


def test_names_of_layers_and_models_are_shown_and_not_sent() -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(3, 4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x @ self.weight.T * self.weight.sum()

    Odd.__name__ = "m\x1b[31m"
    x, y = torch.randn(30, 4), torch.arange(30) % 3
    model = nn.Sequential()
    model.add_module("l\x1b[31m", nn.Linear(4, 3))
    assert "\x1b" not in str(Explainer(model, (x, y)).shares(x[0], 1))
    with pytest.warns(SlowGradientsWarning) as warned:
        Explainer(Odd(), (x, y))
    assert "\x1b" not in str(warned[0].message)


def test_a_long_message_keeps_its_end_which_says_what_to_do() -> None:
    said = str(pr.InputError(f"The name {'n' * 100_000} is long. Pass a shorter one."))
    assert len(said) < 2100
    assert said.endswith("is long. Pass a shorter one.")


# Doubt is said.


def saturated() -> nn.Module:
    """Its losses vanish, and so do their gradients."""
    model = nn.Linear(4, 3, bias=False)
    model.weight.data = 1e5 * torch.eye(3, 4)
    return model


@pytest.mark.parametrize(
    "metric", ["cos_grad", "dot_grad", "l2_grad", "cos_if", "dot_if", "cos_fisher", "dot_fisher"]
)
def test_a_saturated_prediction_says_that_the_metric_cannot_rank(metric) -> None:
    inputs = torch.eye(3, 4).repeat(4, 1)
    found = Explainer(saturated(), (inputs, Y), metric).explain(inputs[:2], k=2)
    sentence = f"Caution: {metric} cannot rank here: the gradient of its loss is zero, as that of a saturated"
    assert str(found).count(sentence) == 2
    assert "above" not in str(found)
    assert sentence in str(found[1])
    assert sentence in found.to_html()
    for case in found.to_dict()["cases"]:
        assert case["cautions"][0].startswith(sentence)
        assert {"zero vector", "not ranked"} <= set(case["precedents"][0]["cautions"])


def test_one_saturated_training_instance_is_named_alone() -> None:
    inputs = torch.cat([torch.eye(3, 4).repeat(3, 1), 1e-6 * torch.eye(3, 4)])
    (found,) = Explainer(saturated(), (inputs, Y), "l2_grad").explain(inputs[-1], k=12)
    marked = {each.index for each in found.precedents() if "zero vector" in each.cautions}
    assert marked == set(range(9))
    assert "cannot rank" not in str(found)


@pytest.mark.parametrize("metric", ["cos_x", "dot_x"])
def test_a_case_of_zeros_says_that_the_metric_cannot_rank(metric) -> None:
    found = Explainer(linear(), (X, Y), metric).explain(torch.zeros(4), k=2)
    assert f"Caution: {metric} cannot rank here: its vector is zero." in str(found)
    assert "above" not in str(found)


def test_equal_scores_are_no_ranking() -> None:
    found = Explainer(linear(), (torch.ones(3, 4), torch.zeros(3, dtype=torch.long))).explain(X[0], k=1)
    assert "cannot rank here: all training instances have the same score." in str(found)


def test_scores_that_differ_rank() -> None:
    found = Explainer(linear(), (X, Y)).explain(X[:3], k=2)
    assert "cannot rank" not in str(found)
    assert found.to_dict()["cases"][0]["cautions"] == []


TEXTS, LABELS = ["good film", "bad film", "fine day", "awful day"] * 3, ["yes", "no"] * 6
FRAME = pd.DataFrame({"colour": ["red", "green", "blue", "red"] * 3, "size": [1.0, 2.0, 3.0, 4.0] * 3})


@pytest.mark.parametrize(
    "vectorizer",
    [
        TfidfVectorizer(),
        CountVectorizer(),
        HashingVectorizer(n_features=64),
        make_union(TfidfVectorizer(), CountVectorizer()),
        make_pipeline(CountVectorizer(), StandardScaler(with_mean=False)),
    ],
    ids=lambda each: type(each).__name__,
)
def test_a_text_that_the_model_does_not_know_carries_a_caution(vectorizer) -> None:
    pipeline = make_pipeline(vectorizer, LogisticRegression()).fit(TEXTS, LABELS)
    found = Explainer(pipeline, (TEXTS, LABELS)).explain(["", "good film"], k=1)
    empty, known = found.to_dict()["cases"]
    assert empty["cautions"][0].startswith("Caution: the model does not know any word of it")
    assert known["cautions"] == []
    if not isinstance(vectorizer, HashingVectorizer):
        (strange,) = Explainer(pipeline, (TEXTS, LABELS)).explain("zzz qqq", k=1)
        assert "the model does not know any word of it" in str(strange)


@pytest.mark.parametrize(
    "encoder",
    [
        OneHotEncoder(handle_unknown="ignore"),
        OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=4),
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
        make_pipeline(OneHotEncoder(handle_unknown="ignore"), StandardScaler(with_mean=False)),
    ],
    ids=["ignore", "infrequent", "ordinal", "pipeline"],
)
def test_a_category_that_the_model_does_not_know_carries_a_caution(encoder) -> None:
    columns = make_column_transformer((encoder, ["colour"]), (StandardScaler(), ["size"]))
    pipeline = make_pipeline(columns, LogisticRegression()).fit(FRAME, LABELS)
    asked = pd.DataFrame({"colour": ["pink\x1b", "red"], "size": [1.0, 2.0]})
    found = Explainer(pipeline, (FRAME, LABELS)).explain(asked, k=1)
    strange, known = found.to_dict()["cases"]
    assert strange["cautions"] == [
        r"Caution: the model does not know the category 'pink\x1b' of column colour."
    ]
    assert known["cautions"] == []
    seen(str(found))


def test_a_text_of_padding_alone_carries_a_caution() -> None:
    tokens = torch.randint(1, 7, (12, 5), generator=torch.Generator().manual_seed(0))
    model = nn.Sequential(nn.Embedding(7, 3, padding_idx=0), nn.Flatten(), nn.Linear(15, 3))
    found = Explainer(model, (tokens, Y)).explain(torch.stack([tokens[0], 0 * tokens[0]]), k=1)
    known, empty = found.to_dict()["cases"]
    assert known["cautions"] == []
    assert "the model does not know any token of it but padding" in empty["cautions"][0]


def test_a_text_that_a_tokenizer_does_not_know_carries_a_caution() -> None:
    rows = hugging.data("bert", 12, seed=0)
    explainer = Explainer((hugging.trained("bert", steps=1), hugging.tokenizer()), rows)
    found = explainer.explain(["xyzzy plugh", "", "rain today"], k=1).to_dict()["cases"]
    assert found[0]["cautions"][0] == "Caution: the model does not know any word of it."
    assert found[1]["cautions"][0] == "Caution: the model does not know a text without words."
    assert found[2]["cautions"] == []

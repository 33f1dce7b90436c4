import io
import json
import re
from dataclasses import replace
from inspect import signature

import numpy as np
import oracle
import pytest
import torch
from conftest import trained
from torch import nn
from torch.utils.data import TensorDataset

import precedents as pr
from precedents import METRICS, Explainer, Explanation, InputError, Metric, UnknownNameError
from precedents.explain.cautions import Finding
from precedents.metrics.names import DEFAULT

NAMES = ["ant", "bee", "cat"]


class Wrapped(torch.utils.data.Dataset):
    """The same instances one by one."""

    def __init__(self, train) -> None:
        self.train = train

    def __len__(self) -> int:
        return len(self.train[1])

    def __getitem__(self, i):
        return self.train[0][i], int(self.train[1][i])


@pytest.fixture(scope="module")
def explainer(model, train) -> Explainer:
    return Explainer(model, train)


@pytest.fixture(scope="module")
def explanation(explainer, cases) -> Explanation:
    return explainer.explain(cases, k=4)


def same(a: Explanation, b: Explanation) -> bool:
    return all(
        torch.equal(x, y)
        for x, y in [
            (a.predictions, b.predictions),
            (a.top.indices, b.top.indices),
            (a.labels, b.labels),
            (a.cases, b.cases),
            (a.precedents_inputs, b.precedents_inputs),
        ]
    )


# Asking.


def test_the_metric_is_grad_cos_by_default(explainer, model, train, cases) -> None:
    expected = oracle.relevance("cos_grad", model, train, cases)
    np.testing.assert_allclose(explainer.scores(cases).numpy(), expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(
    "metric", ["cos_if", "RIF", "rif", "cosine:gradient/hessian", METRICS["cos_if"]], ids=str
)
def test_a_metric_is_a_name_an_alias_a_text_or_a_value(metric, model, train, cases) -> None:
    expected = Explainer(model, train, "cos_if").scores(cases)
    assert torch.equal(Explainer(model, train, metric).scores(cases), expected)


@pytest.mark.parametrize("name", METRICS)
def test_precedents_are_the_largest_scores_in_order(name, model, train, cases) -> None:
    explainer = Explainer(model, train, name)
    scores, found = explainer.scores(cases), explainer.explain(cases, k=45)
    assert torch.equal(found.top.indices, scores.argsort(dim=1, descending=True, stable=True))
    assert torch.equal(found.top.scores, scores.gather(1, found.top.indices))


def test_precedents_come_with_their_own_labels_and_inputs(explanation, train) -> None:
    assert torch.equal(explanation.labels, train[1][explanation.top.indices])
    assert torch.equal(explanation.precedents_inputs, train[0][explanation.top.indices])


def test_predictions_are_the_models_own(explanation, model, cases) -> None:
    assert torch.equal(explanation.predictions, model(cases).argmax(dim=1))


def test_there_are_five_precedents_unless_told_otherwise(explainer, cases) -> None:
    assert len(explainer.explain(cases[0]).precedents()) == 5


def test_one_case_is_explained_as_in_a_batch(explainer, explanation, cases) -> None:
    for i, x in enumerate(cases):
        assert same(explainer.explain(x, k=4), explanation[i])


def test_numpy_cases_are_explained_as_tensors(explainer, explanation, cases) -> None:
    assert same(explainer.explain(cases.numpy(), k=4), explanation)


def test_cases_with_a_graph_are_explained_without_it(explainer, explanation, cases) -> None:
    assert same(explainer.explain(cases.clone().requires_grad_(), k=4), explanation)


@pytest.mark.parametrize(
    "form", [Wrapped, lambda t: TensorDataset(*t), lambda t: (t[0].numpy(), t[1].numpy()), list], ids=range(4)
)
def test_every_form_of_training_set_explains_the_same(form, explanation, model, train, cases) -> None:
    assert same(Explainer(model, form(train)).explain(cases, k=4), explanation)


def test_given_labels_are_explained_instead_of_predictions(explainer, model, train, cases) -> None:
    labels = (model(cases).argmax(dim=1) + 1) % 3
    found = explainer.explain(cases, k=3, labels=labels)
    assert torch.equal(found.predictions, labels)
    x, y = cases[0], int(labels[0])
    g = oracle.gradient(model, x, y)
    expected = [oracle.cosine(g, oracle.gradient(model, t, int(u))) for t, u in zip(*train, strict=True)]
    np.testing.assert_allclose(explainer.scores(x, labels=y)[0].numpy(), expected, rtol=1e-8, atol=1e-10)


def test_given_labels_are_not_called_predictions(explainer, cases) -> None:
    for labels, verb, origin in ((None, "predicted", "predicted"), ([2], "taken for", "given")):
        found = explainer.explain(cases[:1], k=1, labels=labels)
        assert str(found).startswith(f"{verb} {int(found.predictions[0])}")
        assert f"{verb} {int(found.predictions[0])}" in found.to_html()
        assert found.to_dict()["labels"] == origin


@pytest.mark.parametrize(
    ("x", "labels", "message"),
    [
        (slice(0, 2), [0, 3], "out of range: instance 1 has label 3"),
        (slice(0, 2), [0], r"have the shape \(1,\); 2 inputs need \(2,\)"),
        (slice(0, 2), [0.5, 1.0], "class numbers are integers, but instance 0 has 0.5"),
        (slice(0, 2), ["a", "b"], "are no numbers"),
        (0, -1, "out of range"),
        (0, "cat", "are no numbers"),
        (0, 1.5, "class numbers are integers"),
    ],
)
def test_labels_of_cases_that_are_no_class_numbers_are_refused(x, labels, message, explainer, cases) -> None:
    with pytest.raises(InputError, match=message):
        explainer.explain(cases[x], labels=labels)


@pytest.mark.parametrize("k", [0, -1, 46, 2.0, True, None])
def test_k_is_between_one_and_the_number_of_training_instances(k, explainer, cases) -> None:
    with pytest.raises(InputError, match=r"there are 45 training instances. Ask for k from 1 to 45"):
        explainer.explain(cases, k=k)


def test_k_may_be_a_number_of_numpy(explainer, cases) -> None:
    assert len(explainer.explain(cases[0], k=np.int64(3)).precedents()) == 3


@pytest.mark.parametrize("x", [torch.zeros(4), torch.zeros(2, 4), torch.zeros(1, 1, 5)])
def test_cases_of_another_shape_than_the_training_set_are_refused(x, explainer) -> None:
    with pytest.raises(InputError, match=r"but the training instances have \(5,\)"):
        explainer.explain(x)


@pytest.mark.parametrize("names", [["ant", "bee"], ["ant", "bee", "cat", "dog"]])
def test_class_names_must_be_as_many_as_outputs(names, model, train) -> None:
    with pytest.raises(InputError, match=rf"There are {len(names)} class names, but the model has 3 outputs"):
        Explainer(model, train, classes=names)


def test_an_unknown_metric_suggests_the_nearest(model, train) -> None:
    with pytest.raises(UnknownNameError, match=r"Did you mean 'cos_grad'"):
        Explainer(model, train, "cos_gard")


def test_an_explainer_says_what_it_is(model, train) -> None:
    assert repr(Explainer(model, train, "RIF")) == "Explainer(cos_if, 45 training instances)"


def test_a_classifier_may_be_passed_for_the_model(classifier, train, explanation, cases) -> None:
    assert same(Explainer(classifier, train).explain(cases, k=4), explanation)


def test_nan_in_a_hidden_layer_never_ranks(train, cases) -> None:
    class Holed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.head = nn.Linear(5, 4), nn.Linear(4, 3)

        def forward(self, x):
            h = self.body(x)
            return self.head(torch.where(x[:, :1] > 4.5, torch.nan, h))

    x = train[0].clone()
    x[:40, 0] = 5.0
    explainer = Explainer(Holed().double(), (x, train[1]), "dot_last")
    found = explainer.explain(cases.clamp(max=1), k=5)
    assert found.top.indices.sort().values.tolist() == [[40, 41, 42, 43, 44]] * 12


# Reading.


def test_a_case_prints_as_a_sentence_with_its_precedents() -> None:
    model = nn.Linear(2, 2, bias=False).double()
    with torch.no_grad():
        model.weight.copy_(torch.eye(2))
    x = torch.tensor([[1.0, 0.0], [2.0, 0.1], [1.0, 0.5], [0.0, 1.0]], dtype=torch.double)
    explainer = Explainer(model, (x, torch.tensor([0, 0, 1, 1])), "dot_x", classes=["cat", "horse"])
    assert str(explainer.explain(x[1], k=3)) == (
        "predicted cat, because of\n"
        "  #1  cat    +4.010  above 75%  (duplicate of the case)\n"
        "  #2  horse  +2.050  above 50%  (another class)\n"
        "  #0  cat    +2.000  above 25%"
    )


def test_classes_without_names_print_as_numbers(explanation) -> None:
    first = explanation[0]
    assert str(first).startswith(f"predicted {int(first.predictions[0])}, because of\n  #")


def test_several_cases_print_one_after_the_other(explanation) -> None:
    lines = str(explanation).splitlines()
    assert [line.split(":")[0] for line in lines if "predicted" in line] == [f"case {i}" for i in range(12)]
    assert len(lines) == 12 * 5


@pytest.mark.parametrize(
    ("scale", "form"), [(1e-9, r"[+]\d\.\d{2}e-\d\d"), (1e6, r"[+]\d\.\d{2}e[+]\d\d"), (1.0, r"[+][\d.]{5}")]
)
def test_scores_print_with_the_digits_that_count(scale, form, linear, train) -> None:
    explainer = Explainer(linear, (train[0] * scale, train[1]), "dot_x")
    precedent = str(explainer.explain(train[0][0] * scale, k=1)).splitlines()[1]
    assert re.fullmatch(rf"  #\d+  \d  {form}  above 97%(  \(another class\))?", precedent)


def test_a_frame_has_a_row_per_precedent(explanation) -> None:
    frame = explanation.to_frame()
    assert list(frame.columns) == [
        *("case", "prediction", "rank", "index", "label", "score", "percentile", "cautions")
    ]
    assert frame["percentile"].tolist() == explanation.percentiles.flatten().tolist()
    assert len(frame) == 12 * 4
    assert frame["rank"].tolist() == [1, 2, 3, 4] * 12
    assert frame["index"].tolist() == explanation.top.indices.flatten().tolist()
    assert frame["score"].tolist() == explanation.top.scores.flatten().tolist()


def test_a_frame_shows_class_names(model, train, cases) -> None:
    frame = Explainer(model, train, classes=NAMES).explain(cases).to_frame()
    assert set(frame["label"]) | set(frame["prediction"]) <= set(NAMES)


def test_json_is_the_dict(explanation) -> None:
    assert json.loads(explanation.to_json()) == explanation.to_dict()


def test_a_dict_tells_all_of_an_explanation(explanation) -> None:
    told = explanation.to_dict()
    assert told["metric"] == "cos_grad"
    first = told["cases"][0]["precedents"][0]
    assert first == {
        "rank": 1,
        "index": int(explanation.top.indices[0, 0]),
        "label": int(explanation.labels[0, 0]),
        "score": float(explanation.top.scores[0, 0]),
        "agrees": bool(explanation.labels[0, 0] == explanation.predictions[0]),
        "percentile": 100 * 44 / 45,
        "cautions": [],
        "residual_cosine": float(explanation.parts.residual[0, 0]),
        "feature_cosine": float(explanation.parts.feature[0, 0]),
    }


def test_a_dict_names_a_metric_by_its_text_where_it_has_no_name(model, train, cases) -> None:
    text = "dot:gradient/fisher(kind=true)"
    assert Explainer(model, train, Metric.read(text)).explain(cases).to_dict()["metric"] == text


def test_precedents_agree_when_their_class_is_the_predicted_one(explanation) -> None:
    for case in range(12):
        for precedent in explanation.precedents(case):
            assert precedent.agrees == (precedent.label == int(explanation.predictions[case]))


def test_an_explanation_is_a_sequence_of_cases(explanation) -> None:
    assert len(explanation) == len(list(explanation)) == 12
    assert all(len(one) == 1 for one in explanation)
    assert same(explanation[-1], list(explanation)[11])


@pytest.mark.parametrize("i", [12, -13])
def test_a_case_that_is_not_there_is_an_index_error(i, explanation) -> None:
    with pytest.raises(IndexError, match=rf"no case {i} among 12"):
        explanation[i]


# Caution.


def test_percentiles_count_the_lower_scores(explainer, explanation, cases) -> None:
    scores = explainer.scores(cases)
    below = (scores[:, None, :] < explanation.top.scores[:, :, None]).sum(dim=2)
    assert torch.equal(explanation.percentiles, 100 * below.double() / 45)


def test_another_class_is_a_caution(explanation) -> None:
    for case in range(12):
        for precedent in explanation.precedents(case):
            assert ("another class" in precedent.cautions) != precedent.agrees


def test_a_copy_of_the_case_is_a_caution(explainer, train) -> None:
    found = explainer.explain(train[0][:9], k=45)
    for case in range(9):
        copies = [p.index for p in found.precedents(case) if "duplicate of the case" in p.cautions]
        assert copies == [case]


@pytest.mark.parametrize("form", [lambda x: (x[:, 0], x[:, 1:]), lambda x: {"a": x[:, 0], "b": x[:, 1:]}])
def test_a_copy_is_equal_in_all_its_parts(form, train) -> None:
    class Parted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = nn.Linear(5, 3).double()

        def forward(self, a, b):
            return self.head(torch.cat([a[:, None], b], dim=1))

    x = train[0].clone()
    x[1, 0] = x[0, 0]
    found = Explainer(Parted(), (form(x), train[1])).explain(form(x[:1]), k=45)
    assert [p.index for p in found.precedents() if "duplicate of the case" in p.cautions] == [0]


def test_a_long_instance_is_a_caution_under_its_own_metric(model, train, cases) -> None:
    x = train[0].clone()
    x[7] *= 50
    for metric in ("dot_x", "l2_x", "cos_x"):
        found = Explainer(model, (x, train[1]), metric).explain(cases, k=45)
        for case in range(12):
            assert [p.index for p in found.precedents(case) if "outlying norm" in p.cautions] == [7]


def test_an_indefinite_kernel_has_no_outlying_norms(model, train, cases) -> None:
    found = Explainer(model, train, "dot_if").explain(cases, k=45)
    assert "outlying norm" not in str(found)


def test_a_hub_is_a_caution_where_enough_cases_are_explained(model, train) -> None:
    explainer = Explainer(model, train, "dot_x")
    many, few = explainer.explain(train[0][:20], k=2), explainer.explain(train[0][:19], k=2)
    firsts = many.top.indices[:, 0].tolist()
    assert max(map(firsts.count, firsts)) >= 4
    assert all(("hub" in p.cautions) == (firsts.count(p.index) >= 4) for one in many for p in one.precedents())
    assert "hub" not in str(few)


class Known:
    def about(self, metric, workspace):
        return Finding({3: 0.4}, ["identical_class"] if metric == "dot_grad" else [])


def test_hubs_of_an_audit_are_known_for_a_single_case(model, train, cases) -> None:
    found = Explainer(model, train, audit=Known()).explain(cases[0], k=45)
    assert [p.index for p in found.precedents() if "hub" in p.cautions] == [3]
    assert found.warnings == []


def test_a_metric_that_failed_the_audit_says_so_everywhere(model, train, cases) -> None:
    found = Explainer(model, train, "GD", audit=Known()).explain(cases[:2])
    sentence = "Caution: dot_grad failed the audit of this model: identical_class."
    assert str(found).endswith(sentence)
    assert str(found[1]).endswith(sentence)
    assert found.to_dict()["warnings"] == [sentence]
    assert sentence in found.to_html()
    assert sentence in found.plot().get_suptitle()


def test_cautions_are_shown_on_the_sheet(model, train) -> None:
    found = Explainer(model, train).explain(train[0][0], k=2)
    assert "duplicate of the case" in found.to_html()
    assert "duplicate of the case" in found.plot().axes[1].get_title()
    assert "duplicate of the case" in found.to_frame()["cautions"][0]


# Showing.


def test_texts_print_below_their_precedents(texts, cases) -> None:
    first, *rest = str(texts.explain(cases[0], k=2)).splitlines()
    assert first == f'predicted 0 for "a text about {cases[0, 0]:.2f} $dollars$ & <things>", because of'
    assert [line.startswith("  #") for line in rest] == [True, False, True, False]
    assert re.fullmatch(r"       a text about -?\d\.\d\d \$dollars\$ & <things>", rest[1])


def test_table_rows_print_where_they_are_near_and_far(model, train, cases) -> None:
    explainer = Explainer(model, train, render=pr.tables("abcde"), classes=NAMES)
    found = explainer.explain(cases[0], k=1)
    _, first, said, shares = str(found).splitlines()
    named = (f"{name} {share:+.3f}" for name, share in found.shares().largest_columns(3))
    assert shares.strip() == f"by share: {', '.join(named)}"
    near, far = said.strip().split("; ")
    row = train[0][int(first.split()[0][1:])]
    apart = ((row - cases[0]) / train[0].std(dim=0, correction=0)).tolist()
    order = sorted("abcde", key=lambda name: abs(apart["abcde".index(name)]))
    assert re.findall(r"\b[a-e]\b", near) == order[:2]
    assert re.findall(r"\b[a-e]\b", far) == order[:2:-1]
    assert f"{order[-1]} {row['abcde'.index(order[-1])]:.4g} ({apart['abcde'.index(order[-1])]:+.1f} sd)" in far


@pytest.mark.parametrize("kind", ["pictures", "explainer"])
def test_pictures_and_rows_without_names_print_nothing_more(kind, request) -> None:
    explainer = request.getfixturevalue(kind)
    x = explainer.relevance.workspace.train.take([3]).inputs
    assert len(str(explainer.explain(x, k=3)).splitlines()) == 4


def test_a_drawing_shows_the_columns_that_are_near_and_far(model, train, cases) -> None:
    explanation = Explainer(model, train, render=pr.tables("abcde")).explain(cases[0], k=2)
    shown = [axes.texts[0].get_text().splitlines() for axes in explanation.plot().axes]
    assert len(shown[0]) == 5
    assert [lines[0] for lines in shown[1:]] == ["nearest", "nearest"]
    assert [lines[4] for lines in shown[1:]] == ["farthest", "farthest"]
    assert explanation.to_html().count("farthest") == 2


def test_a_render_that_does_not_fit_is_refused_at_once(model, train) -> None:
    with pytest.raises(InputError, match=r"A row has 5 values, but 3 columns are named"):
        Explainer(model, train, render=pr.tables("abc"))


def png(figure) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()


@pytest.fixture(scope="module")
def pictures(train) -> Explainer:
    x = train[0].sigmoid().repeat(1, 5).reshape(45, 1, 5, 5)
    model = trained(lambda: nn.Sequential(nn.Flatten(), nn.Linear(25, 3)), (x, train[1]))
    return Explainer(model, (x, train[1]), classes=NAMES)


@pytest.fixture(scope="module")
def texts(model, train) -> Explainer:
    return Explainer(model, train, render=lambda x: f"a text about {float(x[0]):.2f} $dollars$ & <things>")


@pytest.fixture(scope="module")
def tables(model, train) -> Explainer:
    return Explainer(model, train, render=lambda x: {"width": float(x[0]), "colour": "red", "count": 3})


@pytest.mark.parametrize("kind", ["pictures", "texts", "tables", "explainer"])
def test_an_explanation_draws_a_row_per_case_and_a_column_per_precedent(kind, request) -> None:
    from matplotlib.figure import Figure

    explainer = request.getfixturevalue(kind)
    x = explainer.relevance.workspace.train.take([3, 4]).inputs
    figure = explainer.explain(x, k=3).plot()
    assert isinstance(figure, Figure)
    assert len(figure.axes) == 2 * 4
    assert png(figure).startswith(b"\x89PNG")


def test_a_drawing_marks_the_class_that_disagrees(pictures) -> None:
    explanation = pictures.explain(pictures.relevance.workspace.train.take([3]).inputs, k=45)
    titles = [axes.get_title() for axes in explanation.plot().axes]
    marked = ["✗" in title for title in titles]
    assert marked == [False] + [not precedent.agrees for precedent in explanation.precedents()]
    assert True in marked


def test_a_notebook_shows_pictures(pictures) -> None:
    html = pictures.explain(pictures.relevance.workspace.train.take([3]).inputs, k=3)._repr_html_()
    assert html.count("data:image/png;base64,") == 4


def test_a_notebook_shows_texts_and_tables(texts, tables, cases) -> None:
    assert re.sub("</?b>", "", texts.explain(cases[0], k=3).to_html()).count("a text about") == 4
    assert len(re.findall("colour +red", tables.explain(cases[0], k=3).to_html())) == 4


@pytest.mark.parametrize("hostile", ["<script>alert(1)</script>", "' onload='alert(1)", '"><img src=x>'])
def test_a_notebook_escapes_what_it_shows(hostile, model, train, cases, pictures) -> None:
    shown = [
        Explainer(model, train, classes=[hostile] * 3).explain(cases[:2]),
        Explainer(model, train, render=lambda x: hostile).explain(cases[:2]),
        Explainer(model, train, render=lambda x: {hostile: hostile}).explain(cases[:2]),
    ]
    workspace = pictures.relevance.workspace
    images = Explainer(workspace.classifier, workspace.train, classes=[hostile] * 3)
    shown.append(images.explain(workspace.train.take([3]).inputs))
    for explanation in shown:
        assert hostile not in explanation._repr_html_()
        assert png(explanation.plot())


def test_tuples_and_dicts_can_be_shown(train, cases) -> None:
    class Pair(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = nn.Linear(5, 3).double()

        def forward(self, a, b):
            return self.head(torch.cat([a, b], dim=1))

    for form in (lambda x: (x[:, :2], x[:, 2:]), lambda x: {"a": x[:, :2], "b": x[:, 2:]}):
        explanation = Explainer(Pair(), (form(train[0]), train[1])).explain(form(cases), k=2)
        assert len(explanation) == 12
        assert len(explanation[3].plot().axes) == 3
        assert "x1" in explanation._repr_html_()


def test_cases_are_called_by_their_numbers(model, train, cases) -> None:
    named = replace(Explainer(model, train).explain(cases[:2]), numbers=(7, 3))
    assert [line for line in str(named).splitlines() if line.startswith("case")] == [
        f"case {number}: predicted {label}, because of"
        for number, label in zip((7, 3), named.predictions.tolist(), strict=True)
    ]
    assert [case["case"] for case in named.to_dict()["cases"]] == [7, 3]
    assert named.to_frame()["case"].unique().tolist() == [7, 3]
    assert str(named[1]).startswith("case 3: ")
    assert "case 7" in named.to_html()
    assert "case 0" not in named.to_html()


@pytest.mark.parametrize("door", [Explainer, pr.Index.build, pr.Index.estimate])
def test_who_names_no_metric_is_given_the_default(door) -> None:
    assert signature(door).parameters["metric"].default == DEFAULT

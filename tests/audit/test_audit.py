import io
import json
from dataclasses import replace
from importlib.resources import files

import pytest
import snapshot
import torch
from conftest import blobs, retrained, trained
from jsonschema import Draft202012Validator
from rich.console import Console
from torch import nn

from precedents import (
    METRICS,
    Audit,
    Batch,
    Classifier,
    Examples,
    Explainer,
    InputError,
    Metric,
    NotApplicable,
    Result,
    Trial,
    audit,
    judge,
    tables,
)
from precedents.audit.profile import MOST, spread
from precedents.criteria._judgement import Inapplicable
from precedents.errors import FormatError, StaleError, UnknownNameError
from precedents.metrics.features.inputs import inputs
from precedents.metrics.similarities.cosine import cosine
from precedents.metrics.similarities.dot import dot
from precedents.metrics.vectors import Features

SOME = ["dot_x", "cos_last", "dot_if", "dot_grad", "cos_grad"]
COLUMNS = ["metric", "criterion", "value", "low", "high", "chance", "verdict", "reason"]


@pytest.fixture(scope="module")
def whole(model, train, test) -> Audit:
    return audit(model, train, test, retrain=retrained, k=5, classes=["ant", "bee", "cat"])


@pytest.fixture(scope="module")
def linear_audit(linear, train, test) -> Audit:
    return audit(linear, train, test, metrics=SOME, k=3)


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    schema = json.loads((files("precedents.audit") / "schema.json").read_text())
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


# What runs.


def test_all_metrics_go_through_all_criteria_that_can_run(whole) -> None:
    assert whole.metrics == list(METRICS)
    assert whole.criteria == [
        "model_randomization",
        "model_randomization(label=shared)",
        "identical_class",
        "identical_class(k=5)",
        "identical_subclass",
        "identical_subclass(k=5)",
        "identical_instance",
    ]


def test_subclasses_are_left_out_where_there_are_none(linear_audit) -> None:
    assert not any("subclass" in criterion for criterion in linear_audit.criteria)


def test_given_subclasses_are_looked_at(model, train, test) -> None:
    finer = (torch.arange(45) % 6, torch.arange(12) % 6)
    found = audit(model, train, test, metrics=["cos_x"], subclasses=finer, k=2)
    trial = Trial.of(model, train, test, subclasses=finer)
    expected = judge(trial, ["cos_x"], ["identical_subclass"])["cos_x", "identical_subclass"]
    assert found["cos_x", "identical_subclass"].values.tolist() == expected.values.tolist()


def test_outcomes_are_those_of_the_judgement(whole, trial) -> None:
    expected = judge(trial, criteria=whole.criteria)
    for key, outcome in expected.outcomes.items():
        assert whole[key].values.tolist() == outcome.values.tolist()
        assert (whole[key].low, whole[key].high) == (outcome.low, outcome.high)
        assert (whole[key].chance, whole[key].verdict) == (outcome.chance, outcome.verdict)


def test_criteria_may_be_named_or_given(model, train, test) -> None:
    found = audit(model, train, test, metrics="GC", criteria=["identical_class(k=2)"], k=2)
    assert list(found.judgement.outcomes) == [("cos_grad", "identical_class(k=2)")]


def test_metrics_that_do_not_apply_say_why(linear_audit) -> None:
    assert linear_audit["cos_last", "identical_class"] == Inapplicable(
        "The model is linear: it has no hidden layer."
    )
    assert isinstance(linear_audit.profiles["cos_last"], Inapplicable)
    assert "cos_last" not in linear_audit.report().label_agreement


@pytest.mark.parametrize(
    ("metric", "memory", "reason"),
    [
        ("cosine:gradient/hessian(negative=keep)", None, "indefinite"),
        ("cosine:gradient/hessian(kind=exact)", "20 KB", "but the budget is"),
    ],
)
def test_what_breaks_down_or_does_not_fit_does_not_end_the_audit(
    metric, memory, reason, model, train, test
) -> None:
    found = audit(model, train, test, metrics=[metric, "cos_x"], criteria=["identical_class"], memory=memory)
    outcome, other = found.judgement.outcomes.values()
    assert reason in outcome.reason
    assert other.verdict


def test_the_users_model_comes_back_as_it_was(model, train, test) -> None:
    before = snapshot.of(model)
    audit(model, train, test, metrics=SOME, retrain=retrained, k=2)
    assert snapshot.of(model) == before


def own(shift: float) -> Features:
    """A feature map of the user's, which is called as another one is."""

    def mine(model: Classifier, batch: Batch) -> torch.Tensor:
        return inputs(model, batch) + shift

    return mine


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metrics": ["cos_gard"]}, "Did you mean 'cos_grad'"),
        ({"criteria": ["identical_clas"]}, "Did you mean 'identical_class'"),
        ({"metrics": []}, "nothing to audit"),
        (
            {"metrics": [Metric(inputs, lambda kernel: kernel.cross), Metric(inputs, lambda _: None)]},
            "Two metrics that differ are both called <lambda>:inputs",
        ),
        (
            {"metrics": [Metric(own(0), dot), Metric(own(1), cosine)]},
            "Two features or preconditioners that differ are both called mine",
        ),
        ({"k": 46}, "Ask for k from 1 to 45"),
        ({"afford": 0}, "afford is 0. Pass the seconds"),
        ({"classes": ["ant"]}, "There are 1 class names"),
    ],
)
def test_what_cannot_be_audited_is_refused(options, message, model, train, test) -> None:
    with pytest.raises(InputError, match=message):
        audit(model, train, test, **options)


# Besides the criteria.


def test_firsts_are_the_top_precedents(whole, model, train, cases) -> None:
    for name in SOME:
        top = Explainer(model, train, name).explain(cases, k=1).top.indices[:, 0].tolist()
        firsts = whole.profiles[name].firsts
        assert {first.index: first.count for first in firsts} == {i: top.count(i) for i in top}
        assert [first.count for first in firsts] == sorted((f.count for f in firsts), reverse=True)
        assert all(first.label == int(train[1][first.index]) for first in firsts)


def test_label_agreement_is_the_share_of_the_predicted_class(whole, model, train, cases) -> None:
    for name in SOME:
        found = Explainer(model, train, name).explain(cases, k=5)
        expected = (found.labels == found.predictions[:, None]).double().mean()
        assert whole.profiles[name].label_agreement == float(expected)


def test_norms_are_lengths_under_the_kernel(whole, train) -> None:
    expected = train[0].norm(dim=1).sort().values
    torch.testing.assert_close(torch.tensor(whole.norms["inputs"], dtype=torch.double), expected)
    firsts = [first.index for first in whole.profiles["dot_x"].firsts for _ in range(first.count)]
    selected = torch.tensor(whole.profiles["dot_x"].selected, dtype=torch.double)
    torch.testing.assert_close(selected, train[0][firsts].norm(dim=1).sort().values)


def test_an_indefinite_kernel_has_no_norms(whole) -> None:
    assert whole.norms["gradient/hessian(negative=keep)"] == whole.profiles["dot_if"].selected == []
    assert len(whole.norms["gradient/hessian"]) == 45


def test_many_norms_are_thinned_evenly() -> None:
    values = torch.arange(5000, dtype=torch.double).flip(0)
    kept = spread(values)
    assert len(kept) == MOST
    assert (kept[0], kept[-1]) == (0.0, 4999.0)
    assert kept == sorted(kept)
    assert spread(torch.tensor([2.0, torch.nan, 1.0, torch.inf])) == [1.0, 2.0]


def test_duplicates_are_found_by_their_inputs_alone(linear, train, test) -> None:
    x = test[0].clone()
    x[3], x[7] = train[0][5], train[0][5]
    twice = train[0].clone()
    twice[20] = twice[5]
    found = audit(linear, (twice, train[1]), (x, test[1]), metrics=["dot_x"], k=1)
    assert found.duplicates == [(3, 5), (3, 20), (7, 5), (7, 20)]
    assert any("2 of 12 cases are copies" in sentence for sentence in found.cautions)


def test_costs_are_measured_for_what_has_a_result(linear_audit) -> None:
    assert set(linear_audit.costs) == {"dot_x", "dot_if", "dot_grad", "cos_grad"}
    assert all(seconds > 0 for seconds in linear_audit.costs.values())


def test_rate_is_the_least_of_the_first_precedents(whole) -> None:
    both = [whole["cos_grad", name].mean for name in ("identical_class", "identical_subclass")]
    assert whole.rate("GC") == min(both) == Audit.from_json(whole.to_json()).rate("GC")


def test_rate_needs_a_result(linear_audit, linear, train, test) -> None:
    assert linear_audit.rate("cos_grad") == linear_audit["cos_grad", "identical_class"].mean
    with pytest.raises(NotApplicable, match="Neither identical_class nor identical_subclass"):
        linear_audit.rate("cos_last")
    with pytest.raises(UnknownNameError, match="metric of this audit"):
        linear_audit.rate("cos_x")


def test_a_rate_is_not_known_where_a_criterion_that_counts_failed(model, train, test) -> None:
    def gone(*_):
        raise RuntimeError("the weights are gone")

    found = audit(model, train, test, metrics=["dot_x"], retrain=gone, k=3)
    assert isinstance(found["dot_x", "identical_class"], Result)
    told = r"not known: identical_subclass has no result \(error\)\. .*gone"
    for asked in (found.rate, found.least, Audit.from_json(found.to_json()).rate):
        with pytest.raises(NotApplicable, match=told):
            asked("dot_x")


# A value.


def test_a_frame_has_a_row_per_metric_and_criterion(whole, linear_audit) -> None:
    for found in (whole, linear_audit):
        frame = found.to_frame()
        assert list(frame.columns) == COLUMNS
        assert len(frame) == len(found.metrics) * len(found.criteria)
    gone = frame[frame["verdict"] == "not applicable"]
    assert set(gone["metric"]) == {"cos_last"}
    assert gone["value"].isna().all()


def test_json_is_valid_and_reads_itself_back(whole, linear_audit, validator) -> None:
    for found in (whole, linear_audit):
        text = found.to_json()
        validator.validate(json.loads(text))
        again = Audit.from_json(text)
        assert again.to_json() == text
        assert str(again) == str(replace(found, costs={}))
        assert again.to_frame().equals(found.to_frame())


def test_the_schema_refuses_what_is_no_audit(whole, validator) -> None:
    for change in ({"format": 2}, {"more": 1}, {"outcomes": [{"metric": "gc"}]}, {"duplicates": [[1]]}):
        assert not validator.is_valid(whole.to_dict() | change)


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"format": 1}', '{"format": 9}'])
def test_what_is_no_audit_is_not_read(text) -> None:
    with pytest.raises(FormatError):
        Audit.from_json(text)


def test_the_same_audit_gives_the_same_bytes(whole, model, train, test) -> None:
    again = audit(model, train, test, retrain=retrained, k=5, classes=["ant", "bee", "cat"])
    assert again.to_json() == whole.to_json()


def test_an_audit_prints_its_table_and_its_recommendation(whole) -> None:
    console = Console(file=io.StringIO(), width=120, no_color=True)
    console.print(whole)
    printed = console.file.getvalue()
    assert all(name in printed for name in METRICS)
    assert whole.recommendation.sentences[0] in printed
    assert "cos_grad" in str(whole)
    assert repr(whole) == f"Audit(18 metrics, 7 criteria, 12 cases, recommended: {whole.recommendation.metric})"


# The report.


def test_a_report_has_all_that_was_found(whole) -> None:
    report = whole.report(command="precedents audit RUN")
    assert len(report.rows) == 18 * 7
    assert report.verdict[: len(whole.recommendation.sentences)] == list(whole.recommendation.sentences)
    assert set(report.norms) == set(METRICS) - {"dot_if"}
    assert set(report.agreement) == {"overlap at 5", "rank correlation"}
    assert report.values["cos_grad", "identical_class"] == whole["cos_grad", "identical_class"].values.tolist()
    assert report.command == "precedents audit RUN"
    assert all(isinstance(text, str) for text in report.facts.values())
    assert all(hub.share > 1 / 12 for hub in report.hubs)


def test_a_report_knows_of_every_criterion_what_it_asks_and_where_zero_is_best(whole) -> None:
    report = whole.report()
    criteria = {row.criterion for row in report.rows}
    zero = {"model_randomization", "model_randomization(label=shared)"}
    assert {each for each in criteria if report.better.get(each) == "zero"} == zero
    assert set(report.meaning) == criteria
    assert all(text.endswith(".") for text in report.meaning.values())


def test_the_gallery_shows_right_and_wrong_predictions_by_every_metric(
    whole, model, train, cases, test
) -> None:
    report = whole.report()
    predicted = model(cases).argmax(dim=1)
    right = (predicted == test[1]).nonzero().flatten().tolist()
    wrong = (predicted != test[1]).nonzero().flatten().tolist()
    assert [case.index for case in whole.examples] == right[:2] + wrong[:2]
    assert [example.right for example in report.examples] == [True, True, *[False] * len(wrong[:2])]
    names = ["ant", "bee", "cat"]
    for case, example in zip(whole.examples, report.examples, strict=True):
        assert set(example.strips) == set(METRICS)
        assert f"predicted {names[int(predicted[case.index])]}" in example.case.title
        top = Explainer(model, train).explain(cases[case.index], k=3).precedents()
        cells = example.strips["cos_grad"]
        assert [cell.title.split()[0] for cell in cells] == [f"#{p.index}" for p in top]
        assert [cell.agrees for cell in cells] == [p.agrees for p in top]
        assert cells[0].shown["x0"] == float(train[0][top[0].index][0])
        assert example.case.shown["x0"] == float(cases[case.index][0])


def test_the_users_render_makes_the_pictures(linear, train, test) -> None:
    found = audit(linear, train, test, metrics=["dot_x"], k=1, render=lambda x: f"point {float(x[0]):.3f}")
    example = found.report().examples[0]
    assert example.case.shown == f"point {float(test[0][found.examples[0].index][0]):.3f}"
    assert all(cell.shown.startswith("point") for cell in example.strips["dot_x"])


def test_a_report_compares_columns_in_standard_deviations_of_the_training_set(linear, train, test) -> None:
    found = audit(
        linear, train, test, metrics=["dot_x"], criteria=["identical_class"], k=1, render=tables("abcde")
    )
    assert list(found.report().spread.values()) == pytest.approx(train[0].std(dim=0, correction=0).tolist())
    assert " sd</small>" in found.to_html()


def test_an_audit_that_was_read_has_a_report_without_pictures(linear_audit) -> None:
    report = Audit.from_json(linear_audit.to_json()).report()
    assert report.examples[0].case.shown == "(not kept with the audit)"
    assert report.rows == linear_audit.report().rows


# For explanations.


@pytest.fixture(scope="module")
def skewed() -> tuple[nn.Module, tuple, Audit]:
    """Sixty cases and a training set with one very long instance."""
    x, y = blobs(45, seed=1)
    x[6] *= 40
    model = trained(lambda: nn.Linear(5, 3), (x, y))
    return model, (x, y), audit(model, (x, y), blobs(60, seed=2), metrics=["dot_x", "cos_grad"], k=3)


def test_an_explainer_knows_the_hubs_and_failures_of_an_audit(skewed) -> None:
    model, train, found = skewed
    assert found.hubs("dot_x")[6] > 1 / 6
    assert "model_randomization" in found.failed("dot_x")
    told = Explainer(model, train, "dot_x", audit=found).explain(train[0][0], k=45)
    assert {p.index for p in told.precedents() if "hub" in p.cautions} == set(found.hubs("dot_x"))
    assert told.warnings == [
        f"Caution: dot_x failed the audit of this model: {', '.join(found.failed('dot_x'))}."
    ]


def test_an_audit_that_was_read_is_as_good(skewed) -> None:
    model, train, found = skewed
    again = Audit.from_json(found.to_json())
    first = Explainer(model, train, "dot_x", audit=found).explain(train[0][:3])
    assert str(Explainer(model, train, "dot_x", audit=again).explain(train[0][:3])) == str(first)


def test_an_explainer_refuses_the_audit_of_something_else(skewed, linear, train) -> None:
    model, own, found = skewed
    with pytest.raises(StaleError, match="another model"):
        Explainer(linear, own, "dot_x", audit=found)
    with pytest.raises(StaleError, match="another training set"):
        Explainer(model, train, "dot_x", audit=found)
    with pytest.raises(UnknownNameError, match="metric of this audit"):
        Explainer(model, own, "cos_x", audit=found)


def test_a_fingerprint_differs_when_something_differs(train) -> None:
    x, y = train
    other = x.clone()
    other[3, 2] += 1e-12
    sets = [(x, y), (other, y), (x, (y + 1) % 3), (x.flip(0), y.flip(0)), (x[:44], y[:44])]
    prints = [Examples.of(each).fingerprint() for each in sets]
    assert len(set(prints)) == len(sets)
    assert Examples.of((x.clone(), y.clone())).fingerprint() == prints[0]

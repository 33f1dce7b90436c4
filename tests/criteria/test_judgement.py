import io
from dataclasses import dataclass

import pytest
import torch
from rich.console import Console

from precedents import (
    CRITERIA,
    METRICS,
    InputError,
    Metric,
    NotApplicable,
    Result,
    Trial,
    UnknownNameError,
    judge,
    rate,
)
from precedents.criteria._criterion import Criterion, Unlisted
from precedents.criteria._judgement import Inapplicable, described
from precedents.criteria.identical_class import IdenticalClass
from precedents.metrics.features.inputs import inputs

SOME = ["cos_x", "cos_last", "cos_grad"]


@pytest.fixture(scope="module")
def judgement(linear_trial):
    return judge(linear_trial, SOME)


@pytest.fixture(scope="module")
def whole(trial):
    return judge(trial)


def test_every_metric_is_judged_by_every_criterion(whole) -> None:
    assert set(whole.outcomes) == {(metric, criterion) for metric in METRICS for criterion in CRITERIA.names()}


def test_nothing_is_inapplicable_to_the_world(whole) -> None:
    assert {type(outcome) for outcome in whole.outcomes.values()} == {Result}


def test_an_outcome_is_that_of_the_criterion(whole, trial) -> None:
    alone = IdenticalClass()(trial, METRICS["cos_grad"])
    assert whole["cos_grad", "identical_class"].values.tolist() == alone.values.tolist()


def test_metrics_and_criteria_are_names_texts_or_values(trial) -> None:
    found = judge(
        trial,
        ["GC", METRICS["cos_x"], "cosine:gradient/fisher(kind=true)"],
        ["identical_class(k=3)", IdenticalClass()],
    )
    assert list(found.outcomes) == [
        (metric, criterion)
        for criterion in ("identical_class(k=3)", "identical_class")
        for metric in ("cos_grad", "cos_x", "cosine:gradient/fisher(kind=true)")
    ]


@pytest.mark.parametrize("criterion", ["identical_class", "identical_instance", "model_randomization"])
def test_hidden_metrics_do_not_apply_to_a_linear_model(criterion, judgement) -> None:
    outcome = judgement["cos_last", criterion]
    assert isinstance(outcome, Inapplicable)
    assert "linear" in outcome.reason


def test_the_subclass_criterion_does_not_apply_without_subclasses(judgement) -> None:
    outcome = judgement["cos_grad", "identical_subclass"]
    assert isinstance(outcome, Inapplicable)
    assert "subclass" in outcome.reason


def test_the_other_metrics_of_a_linear_model_are_judged(judgement) -> None:
    assert isinstance(judgement["cos_grad", "identical_class"], Result)


def test_a_frame_has_a_row_per_metric_and_criterion(judgement) -> None:
    frame = judgement.to_frame()
    assert len(frame) == len(SOME) * len(CRITERIA.names())
    assert {"metric", "criterion", "value", "std", "low", "high", "chance", "verdict", "reason"} <= set(frame)


def test_a_frame_has_a_value_exactly_where_there_is_a_result(judgement) -> None:
    frame = judgement.to_frame()
    assert (frame["value"].isna() == (frame["verdict"] == "not applicable")).all()


def test_a_frame_gives_the_reason_where_there_is_no_result(judgement) -> None:
    frame = judgement.to_frame()
    assert (frame[frame["verdict"] == "not applicable"]["reason"].str.len() > 10).all()


def test_a_frame_of_no_results_has_its_columns_all_the_same(linear_trial) -> None:
    frame = judge(linear_trial, ["cos_last"], ["identical_class"]).to_frame()
    assert "value" in frame
    assert frame["verdict"].tolist() == ["not applicable"]


def test_results_are_within_their_intervals(whole) -> None:
    frame = whole.to_frame()
    assert (frame["low"] <= frame["value"] + 1e-12).all()
    assert (frame["value"] <= frame["high"] + 1e-12).all()


def test_a_judgement_prints_as_a_table_with_dashes(judgement) -> None:
    console = Console(file=io.StringIO(), width=120, no_color=True)
    console.print(judgement)
    (row,) = [line for line in console.file.getvalue().splitlines() if "cos_last" in line]
    assert row.count("–") == 4
    assert "nan" not in console.file.getvalue()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["cos_gard"],), "Did you mean 'cos_grad'"),
        ((["GC"], ["identical_clas"]), "Did you mean 'identical_class'"),
    ],
)
def test_an_unknown_name_suggests_the_nearest(arguments, message, trial) -> None:
    with pytest.raises(UnknownNameError, match=message):
        judge(trial, *arguments)


def test_a_judgement_is_the_same_at_every_call(model, train, test, trial) -> None:
    again = judge(Trial.of(model, train, test), SOME, ["model_randomization"])
    for name in SOME:
        first = judge(trial, [name], ["model_randomization"])[name, "model_randomization"]
        assert first.values.tolist() == again[name, "model_randomization"].values.tolist()


def agreeing(trial: Trial, metric) -> Result:
    """A function that is a criterion."""
    return IdenticalClass()(trial, metric)


class Own(Criterion):
    """A criterion of the user's own, which applies to nothing."""

    better = "zero"
    __name__ = "own"

    def inapplicable(self, trial: Trial) -> str:
        return "There is no moon."

    def __call__(self, trial: Trial, metric) -> Result:
        raise AssertionError("It does not apply, and is not called.")


def test_a_function_or_a_value_of_no_file_is_a_criterion(trial) -> None:
    found = judge(trial, ["cos_x"], [agreeing, Own()])
    assert list(found.outcomes) == [("cos_x", "agreeing"), ("cos_x", "own")]
    expected = IdenticalClass()(trial, METRICS["cos_x"])
    assert found["cos_x", "agreeing"].values.tolist() == expected.values.tolist()
    assert found["cos_x", "own"] == Inapplicable("There is no moon.")
    assert (found.criterion("agreeing").better, found.criterion("own").better) == ("higher", "zero")


def test_of_a_text_in_no_file_the_defaults_are_known(trial) -> None:
    known, unknown = described("model_randomization(draws=1)"), described("a criterion of yesterday")
    assert known == CRITERIA.read("model_randomization(draws=1)")
    assert isinstance(unknown, Unlisted)
    assert (unknown.better, unknown.counts, unknown.inapplicable(trial)) == ("higher", False, None)
    with pytest.raises(NotApplicable, match="No criterion is named a criterion of yesterday"):
        unknown(trial, METRICS["cos_x"])


@dataclass(frozen=True)
class Yes(Criterion):
    """Every case succeeds."""

    of: int

    def __call__(self, trial: Trial, _metric: Metric) -> Result:
        return rate("yes", torch.ones(len(trial.cases)), 0.1, 0.9)


@dataclass(frozen=True)
class No(Criterion):
    """No case succeeds."""

    def __call__(self, trial: Trial, _metric: Metric) -> Result:
        return rate("no", torch.zeros(len(trial.cases)), 0.1, 0.9)


def test_criteria_of_one_file_of_a_user_stand_side_by_side(linear_trial) -> None:
    found = judge(linear_trial, ["cos_x"], [Yes(1), Yes(of=2), No()])
    assert {text: outcome.mean for (_, text), outcome in found.outcomes.items()} == {
        "Yes(of=1)": 1,
        "Yes(of=2)": 1,
        "No": 0,
    }


def test_two_functions_of_one_name_are_no_two_criteria(linear_trial) -> None:
    one, other = (lambda trial, metric, own=own: own(trial, metric) for own in (Yes(1), No()))
    assert list(judge(linear_trial, ["cos_x"], [one, one]).outcomes) == [("cos_x", "<lambda>")]
    with pytest.raises(InputError, match="Two criteria that differ are both called <lambda>"):
        judge(linear_trial, ["cos_x"], [one, other])


def test_two_metrics_of_one_name_are_refused(linear_trial) -> None:
    one, other = (Metric(inputs, lambda kernel, sign=sign: sign * kernel.cross) for sign in (1, -1))
    with pytest.raises(InputError, match="Two metrics that differ are both called <lambda>:inputs"):
        judge(linear_trial, [one, other], ["identical_class"])

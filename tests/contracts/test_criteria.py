"""A criterion gives one number per case, a mean within its interval, a chance level and a verdict.

And it says of itself which way is better, what an audit runs of it, what it needs and how dear it is.
"""

from dataclasses import fields, is_dataclass, replace
from importlib import import_module
from typing import get_args

import pytest
import torch
from conftest import retrained
from torch import nn

from precedents import CRITERIA, METRICS, Classifier, Examples, Result, Trial, judge
from precedents.criteria._criterion import Better, Criterion
from precedents.criteria._judgement import Inapplicable, default_criteria
from precedents.criteria._verdict import Verdict
from precedents.registry import written

each = pytest.mark.parametrize("name", CRITERIA.names())
some = pytest.mark.parametrize("metric", ["cos_x", "dot_last", "l2_grad", "cos_if", "dot_fisher"])


@pytest.fixture
def result(name, metric, trial) -> Result:
    return CRITERIA.get(name)(trial, METRICS[metric])


@each
def test_the_file_defines_its_own_name_and_says_what_it_is(name) -> None:
    criterion = CRITERIA.get(name)
    assert type(criterion).__module__.endswith(f".{name}")
    assert import_module(type(criterion).__module__).__doc__
    assert type(criterion).__doc__


@each
def test_it_is_a_frozen_value_that_is_read_back(name) -> None:
    criterion = CRITERIA.get(name)
    assert is_dataclass(criterion)
    assert hash(criterion) == hash(type(criterion)())
    assert CRITERIA.read(written(criterion)) == criterion == type(criterion)()


@each
@some
def test_it_gives_finite_numbers_between_minus_one_and_one(result) -> None:
    assert isinstance(result, Result)
    assert result.values.ndim == 1
    assert len(result.values) > 0
    assert result.values.dtype == torch.double
    assert result.values.abs().max() <= 1


@each
@some
def test_its_mean_lies_within_its_interval(result) -> None:
    rounding = 1e-12
    assert -1 <= result.low <= result.mean + rounding
    assert result.mean - rounding <= result.high <= 1


@each
@some
def test_its_chance_level_is_a_share(result) -> None:
    assert 0 <= result.chance < 1


@each
@some
def test_its_verdict_is_one_of_four_and_only_what_is_undecided_has_a_reason(result) -> None:
    assert result.verdict in get_args(Verdict)
    assert (result.verdict == "undecided") == bool(result.reason) == (len(result.between) > 1)


@each
@some
def test_its_verdict_by_the_papers_rule_is_always_decided(result) -> None:
    assert result.by("paper").verdict in ("passed", "weak", "failed")


@each
@some
def test_one_case_decides_nothing_by_it(name, metric, trial) -> None:
    one = Trial(trial.workspace, trial.cases.selected([0]), trial.truth[:1], retrain=trial.retrain)
    outcome = judge(one, [metric], [name])[metric, name]
    if isinstance(outcome, Result) and len(outcome.values) == 1:
        assert outcome.verdict == "undecided"


@each
@some
def test_its_result_carries_its_name(name, result) -> None:
    assert result.criterion == name
    assert str(result).startswith(f"{name}: ")


@each
@some
def test_it_is_the_same_at_every_call(name, metric, result, trial) -> None:
    again = CRITERIA.get(name)(trial, METRICS[metric])
    assert torch.equal(again.values, result.values)
    assert (again.low, again.high, again.chance, again.verdict) == (
        result.low,
        result.high,
        result.chance,
        result.verdict,
    )


@each
def test_it_says_which_way_is_better_and_where_it_stands(name) -> None:
    criterion = CRITERIA.get(name)
    assert isinstance(criterion, Criterion)
    assert criterion.better in get_args(Better)
    assert isinstance(criterion.order, int)
    assert isinstance(criterion.counts, bool)
    assert criterion.better == "higher" or not criterion.counts  # the least rate is the worst


@each
def test_an_audit_runs_it_and_its_variants(name, trial) -> None:
    criterion = CRITERIA.get(name)
    variants = criterion.variants(k=7)
    assert variants[0] == criterion
    assert {type(each) for each in variants} == {type(criterion)}
    assert [CRITERIA.read(written(each)) for each in variants] == list(variants)
    assert [each for each in default_criteria(trial, 7).values() if type(each) is type(criterion)] == list(
        variants
    )


@each
def test_it_applies_to_a_trial_with_all_that_it_needs(name, trial) -> None:
    criterion = CRITERIA.get(name)
    assert criterion.is_given(trial)
    assert criterion.inapplicable(trial) is None


@each
def test_what_it_needs_is_of_a_trial_and_without_it_there_is_a_reason(name, trial) -> None:
    criterion = CRITERIA.get(name)
    assert set(criterion.needs) <= {field.name for field in fields(Trial)}
    bare = replace(trial, **dict.fromkeys(criterion.needs))
    assert criterion.is_given(bare) == (not criterion.needs)
    assert (name in default_criteria(bare, 1)) == (not criterion.needs)
    if criterion.needs:
        outcome = judge(bare, ["cos_x"], [name])["cos_x", name]
        assert outcome == Inapplicable(criterion.inapplicable(bare))
        assert len(outcome.reason) > 10


@each
def test_it_says_how_many_cases_it_compares(name, trial) -> None:
    rounds = CRITERIA.get(name).rounds(trial)
    assert rounds
    assert all(count > 0 for count in rounds.values())
    assert all(isinstance(word, str) for key in rounds for word in key)


@each
def test_it_says_what_it_asks_in_a_sentence(name) -> None:
    assert CRITERIA.get(name).sentence.endswith(".")


@each
def test_models_beside_the_trained_one_are_named_with_what_made_them(name, trial) -> None:
    others = CRITERIA.get(name).others(trial)
    assert all(text and isinstance(model, Classifier) for text, model in others.items())
    assert bool(others) == any("random" in model for model, _ in CRITERIA.get(name).rounds(trial))


@each
def test_what_is_prepared_is_not_made_again(name, model, train, test) -> None:
    calls = []

    def counting(data: Examples, seed: int) -> nn.Module:
        calls.append(seed)
        return retrained(data, seed)

    trial = Trial.of(model, train, test, retrain=counting)
    CRITERIA.get(name).prepared(trial)
    assert bool(calls) == ("retrain" in CRITERIA.get(name).needs)
    made = len(calls)
    judge(trial, ["cos_x"], [name])
    assert len(calls) == made

"""A criterion gives one number per case, a mean within its interval, a chance level and a verdict."""

from dataclasses import is_dataclass
from importlib import import_module
from typing import get_args

import pytest
import torch

from precedents import CRITERIA, METRICS, Result
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
def test_its_verdict_is_one_of_three(result) -> None:
    assert result.verdict in get_args(Verdict)


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

"""An audit always ends: what cannot be afforded or fails is left out by name, and a kill loses no long work."""

import json
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from conftest import blobs, mlp, trained
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from waiting import Clock

from precedents import Audit, Metric, Trial, audit
from precedents.audit.agenda import Agenda
from precedents.audit.estimate import KernelWork, compared, estimate
from precedents.audit.limits import Limits, seconds_of
from precedents.audit.profile import profile
from precedents.cli._main import main
from precedents.criteria._criterion import Criterion
from precedents.criteria._judgement import Inapplicable, attempted
from precedents.criteria._result import Result, rate
from precedents.curvature.gram import gradient_gram
from precedents.errors import BudgetError, InputError, NotApplicable, NumericalError, StaleError
from precedents.metrics.features.gradient import gradient
from precedents.metrics.features.inputs import inputs
from precedents.metrics.preconditioners.identity import Identity
from precedents.metrics.similarities.cosine import cosine
from precedents.runtime import budget as memory
from precedents.runtime import progress
from precedents.runtime.checkpoint import InPlace, Resumed, kept_in
from precedents.runtime.deadline import ending
from precedents.runtime.progress import Pace, told, tracked
from promises.killed import FITS, audited

FOLDER = Path(__file__).parents[1]
UNITS = {"s": 1, "min": 60, "h": 3600, "d": 86400}
HESSIAN = "cosine:gradient/hessian(kind=exact)"
NO_MEMORY = (
    "[enforce fail at alloc_cpu.cpp:117] can't allocate memory: you tried to allocate 43072299008 bytes."
)


@pytest.fixture(scope="module")
def world():
    train, test = blobs(45, seed=1), blobs(12, seed=2)
    return trained(mlp, train), train, test


@pytest.fixture(scope="module")
def valid():
    return Draft202012Validator(json.loads((files("precedents.audit") / "schema.json").read_text()))


def cells(found: Audit, metric: str) -> list:
    return [outcome for (name, _), outcome in found.judgement.outcomes.items() if name == metric]


def lacks(found: Audit, metric: str) -> set[tuple[str, str]]:
    return {(each.kind, each.reason) for each in cells(found, metric) if isinstance(each, Inapplicable)}


def whole(found: Audit, metric: str) -> bool:
    return all(isinstance(each, Result) for each in cells(found, metric))


# What is raised.


def raised(error: BaseException):
    raise error


@pytest.mark.parametrize(
    ("error", "kind", "reason"),
    [
        (NotApplicable("It has no hidden layer."), "not applicable", "It has no hidden layer."),
        (NumericalError("It is singular."), "not applicable", "It is singular."),
        (BudgetError("It needs 3 GiB."), "left out", "It needs 3 GiB."),
        (RuntimeError(NO_MEMORY), "left out", "It ran out of memory: 40.1 GiB more were asked for."),
        (RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"), "left out", "It ran out of memory."),
        (MemoryError(), "left out", "It ran out of memory."),
        (ValueError("no such word\nat line 3"), "error", "ValueError: no such word"),
        (RuntimeError("\n\n  mat1 and mat2\nshapes"), "error", "RuntimeError: mat1 and mat2"),
        (KeyError("token"), "error", "KeyError: 'token'"),
        (AssertionError(), "error", "AssertionError"),
        (InputError("k is 0."), "error", "k is 0."),
        (RecursionError("too deep"), "error", "RecursionError: too deep"),
        (SystemExit(0), "error", "SystemExit: 0"),
    ],
)
def test_whatever_is_raised_becomes_a_reason_in_one_line(error, kind, reason) -> None:
    found = attempted(lambda: raised(error))
    assert found.kind == kind
    assert reason in found.reason
    assert "\n" not in found.reason


@settings(max_examples=25)
@given(st.text(max_size=600))
def test_any_message_is_one_line_of_a_bounded_length(message) -> None:
    found = attempted(lambda: raised(ValueError(message)))
    assert len(found.reason.splitlines()) == 1
    assert len(found.reason) < 350


@pytest.mark.parametrize("error", [KeyboardInterrupt(), StaleError("The data changed.")])
def test_an_interruption_and_changed_data_pass(error) -> None:
    with pytest.raises(type(error)):
        attempted(lambda: raised(error))


# A metric that raises is a row with its error.


def broken(*_):
    raise ValueError("my part is broken\nwith a second line")


def greedy(*_):
    return torch.empty(2**58)


def insatiable(*_):
    return np.empty(2**57)


class BrokenMatrix(Identity):
    __name__ = "broken_matrix"

    def fit(self, vectors):
        return broken(vectors)


METRICS = {
    "features": (Metric(broken, cosine), "error", "ValueError: my part is broken"),
    "similarity": (Metric(inputs, broken), "error", "ValueError: my part is broken"),
    "preconditioner": (Metric(inputs, cosine, BrokenMatrix()), "error", "ValueError: my part is broken"),
    "memory of torch": (Metric(inputs, greedy), "left out", "It ran out of memory"),
    "memory of numpy": (Metric(inputs, insatiable), "left out", "It ran out of memory"),
}


@pytest.mark.parametrize("part", METRICS)
def test_a_failing_part_of_a_metric_is_a_row_with_its_error(part, world, valid) -> None:
    metric, kind, reason = METRICS[part]
    found = audit(*world, metrics=[metric, "cos_x", "cos_grad"], k=3)
    name = next(each for each in found.metrics if each not in ("cos_x", "cos_grad"))
    ((told_kind, told_reason),) = lacks(found, name)
    assert (told_kind, reason in told_reason, "\n" in told_reason) == (kind, True, False)
    assert whole(found, "cos_x")
    assert whole(found, "cos_grad")
    assert f"– {kind}: {name}. {told_reason}" in " ".join(str(found).split())
    valid.validate(found.to_dict())
    assert Audit.from_json(found.to_json())[name, "identical_class"] == found[name, "identical_class"]
    rows = found.to_frame()
    assert set(rows[rows.metric == name].verdict) == {kind}
    assert found.recommendation.metric in ("cos_x", "cos_grad")


def test_what_ran_out_of_memory_is_not_tried_for_every_criterion(world) -> None:
    calls = []

    def hungry(kernel):
        calls.append(kernel)
        raise MemoryError

    found = audit(*world, metrics=[Metric(inputs, hungry), "cos_x"], k=3)
    assert len(calls) == 1
    assert whole(found, "cos_x")
    assert len(lacks(found, found.metrics[0])) == 1


def own_criterion(trial, metric):
    raise LookupError("my criterion is broken")


def test_a_failing_criterion_leaves_the_others(world) -> None:
    found = audit(*world, metrics=["cos_x", "cos_grad"], criteria=["identical_class", own_criterion], k=3)
    for name in found.metrics:
        assert isinstance(found[name, "identical_class"], Result)
        ((kind, reason),) = lacks(found, name)
        assert kind == "error"
        assert "LookupError: my criterion is broken (test_ending.py" in reason
    assert f"– error: own_criterion of all metrics. {reason}" in " ".join(str(found).split())


def test_a_failing_vectorise_leaves_the_other_metrics(world) -> None:
    found = audit(*world, metrics=["cos_x", "cos_grad"], criteria=["identical_class"], vectorise=broken, k=3)
    ((kind, reason),) = lacks(found, "cos_x")
    assert kind == "error"
    assert "The function vectorise failed: ValueError: my part is broken" in reason
    assert whole(found, "cos_grad")


def test_what_was_not_tried_is_not_recommended_before_what_was(world) -> None:
    def only_inputs(trial, metric):
        return broken() if metric.features is gradient else trial_result(trial, metric)

    def trial_result(trial, metric):
        from precedents import CRITERIA

        return CRITERIA.get("identical_class")(trial, metric)

    found = audit(*world, metrics=["cos_grad", "dot_x"], criteria=["identical_class", only_inputs], k=3)
    assert found["cos_grad", "identical_class"].mean >= found["dot_x", "identical_class"].mean
    assert found.recommendation.metric == "dot_x"


def test_a_failing_render_ends_no_audit(world) -> None:
    found = audit(*world, metrics=["cos_x"], criteria=["identical_class"], render=broken, k=3)
    assert whole(found, "cos_x")
    assert all("ValueError: my part is broken" in each for each in found.pictures.values())


def test_an_interruption_ends_an_audit(world) -> None:
    def interrupted(trial, metric):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        audit(*world, metrics=["cos_x"], criteria=[interrupted], k=3)


# What cannot be afforded is left out before its work.


class Slow:
    """Features that take their time."""

    __name__ = "slow"

    def __init__(self, seconds: float) -> None:
        self.seconds, self.seen = seconds, 0

    def __call__(self, model, batch):
        self.seen += len(batch.labels)
        time.sleep(self.seconds * len(batch.labels))
        return inputs(model, batch)


def slow_metric(seconds: float) -> Metric:
    return Metric(Slow(seconds), cosine)


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"afford": 0.05}, "far more than the 0.05 s that can be afforded"),
        ({"within": 2.5}, "does not fit into the 2.5 s that the audit may take"),
        ({"within": "2.5 s", "afford": 9.0}, "does not fit into the 2.5 s"),
    ],
)
def test_what_takes_too_long_is_left_out_without_its_work(limits, reason, world) -> None:
    metric = slow_metric(0.01)  # 45 instances: 0.45 s for the first case
    found = audit(*world, metrics=[metric, "cos_x"], k=3, **limits)
    slow, fast = found.metrics
    ((kind, why),) = lacks(found, slow)
    assert (kind, reason in why) == ("left out", True)
    assert whole(found, fast)
    whole_set = 45 * 8  # of eight rounds
    assert metric.features.seen < whole_set
    assert f"– left out: {slow}. " in str(found)
    assert found.recommendation.metric in (fast, None)


@dataclass(frozen=True)
class Sleepy(Criterion):
    """One that takes 500 seconds more than it says, by a clock that nothing else moves."""

    clock: ClassVar[Clock] = Clock()

    def __call__(self, trial, metric):
        self.clock.passes(500)
        return rate("sleepy", torch.ones(len(trial.cases)), 0.5, 0.9)


@pytest.mark.parametrize("engine", [None, "serial"])
def test_what_takes_longer_than_estimated_does_not_take_the_others_time(engine, world, monkeypatch) -> None:
    monkeypatch.setattr(sys.modules["precedents.audit.pieces"], "monotonic", Sleepy.clock)
    monkeypatch.setattr(sys.modules["precedents.audit.by_engine"], "time", Sleepy.clock)
    metrics = [
        f"{similarity}:{each}" for similarity in ("dot", "cosine", "l2") for each in ("inputs", "gradient")
    ]
    found = audit(*world, metrics=metrics, criteria=[Sleepy()], within=700, k=3, engine=engine)
    done = sum(isinstance(found[name, found.criteria[0]], Result) for name in found.metrics)
    assert done == 2  # the second begins after 500 seconds, and a third would after 1000
    assert {kind for name in found.metrics for kind, _ in lacks(found, name)} == {"left out"}


class Ticking:
    """Features that take two seconds for each instance, by a clock that nothing else moves."""

    def __init__(self, name: str, clock: Clock) -> None:
        self.__name__, self.clock = name, clock

    def __call__(self, model, batch):
        self.clock.passes(2 * len(batch.labels))
        return inputs(model, batch)


def test_estimates_do_not_take_the_time_of_the_work(world, monkeypatch) -> None:
    clock = Clock()
    for name in ("pieces", "estimate"):
        monkeypatch.setattr(sys.modules[f"precedents.audit.{name}"], "monotonic", clock)
    metrics = [Metric(Ticking(f"ticking_{number}", clock), cosine) for number in range(12)]
    found = audit(*world, metrics=["cos_x", *metrics], criteria=["identical_class"], within=1000, k=3)
    assert whole(found, "cos_x")
    assert {kind for kind, _ in lacks(found, found.metrics[-1])} == {"left out"}
    assert clock.now < 1500  # the last estimate, of all instances at most, and the last work begin in time


class Stepping:
    """Features that are formed in blocks of one instance, which takes as long as it says, by its clock."""

    __name__ = "stepping"

    def __init__(self, clock: Clock, seconds: float) -> None:
        self.clock, self.seconds, self.seen = clock, seconds, 0

    def __call__(self, model, batch):
        self.seen += len(batch.labels)
        self.clock.passes(self.seconds * len(batch.labels))
        return inputs(model, batch)


def estimated(monkeypatch, clock: Clock, seconds: dict[str, float]) -> None:
    """The audit by this clock, with estimates of so many seconds for each round of the named metrics."""

    def told(agenda, work):
        each = next((each for name, each in seconds.items() if name in work.metrics), 0.0)
        rounds = dict.fromkeys(compared(agenda.trial, agenda.criteria.values()), each)
        return KernelWork(work.metrics, rounds=rounds)

    monkeypatch.setattr(sys.modules["precedents.audit.pieces"], "monotonic", clock)
    monkeypatch.setattr(sys.modules["precedents.audit.pieces"], "measured", told)


def test_what_is_begun_is_broken_off_when_the_time_is_over(world, monkeypatch) -> None:
    """An estimate of one second, and work of a thousand: it ends with the block in which the time does."""
    monkeypatch.setattr(memory, "MOST", 1)  # rows of a block
    clock = Clock()
    metric = Metric(Stepping(clock, 10.0), cosine)
    estimated(monkeypatch, clock, {str(metric): 1.0})
    found = audit(*world, metrics=["cos_x", metric], criteria=["identical_class"], within=100, k=3)
    fast, slow = found.metrics
    ((kind, reason),) = lacks(found, slow)
    assert (kind, "does not fit into the 1 min 40 s" in reason) == ("left out", True)
    assert whole(found, fast)
    assert clock.now <= 120  # an instance of the model's first look, and one that was begun


@pytest.mark.parametrize(("slower", "kept"), [(1.0, 3), (1.5, 2), (3.0, 1)])
def test_estimates_of_what_is_to_come_are_as_many_times_longer_as_others_were(
    slower, kept, world, monkeypatch
) -> None:
    """Three metrics of 30 estimated seconds in 100: on a slower machine fewer of them can end."""
    clock = Clock()
    metrics = [Metric(Stepping(clock, 0.0), cosine) for _ in range(3)]
    names = [f"stepping_{place}" for place in range(3)]
    for name, metric in zip(names, metrics, strict=True):
        metric.features.__name__ = name
    estimated(monkeypatch, clock, dict.fromkeys(map(str, metrics), 30.0))
    took = lambda trial, metric: clock.passes(30 * slower)  # noqa: E731
    monkeypatch.setattr(sys.modules["precedents.audit.pieces"], "profile", passing_first(took))
    found = audit(*world, metrics=metrics, criteria=["identical_class"], within=100, k=3)
    assert [whole(found, name) for name in found.metrics] == [place < kept for place in range(3)]
    assert clock.now <= 100


def passing_first(passes):
    """The profile of a metric, after so much time."""

    def made(trial, metric, k, shown):
        passes(trial, metric)
        return profile(trial, metric, k, shown)

    return made


def test_what_was_spent_before_the_work_counts(world) -> None:
    limits = Limits.of(within=100)
    assert limits.late(60, 30) is None
    assert "1 min 40 s" in replace(limits, before=20).late(60, 30).reason


def test_a_matrix_is_fitted_once_to_each_model_where_the_memory_has_room_for_one(world, monkeypatch) -> None:
    """All metrics and criteria of one matrix share its kernels, which outlast it."""
    model, train, (x, y) = world
    fits = []

    def counted(model, train):
        fits.append(model.fingerprint())
        return gradient_gram(model, train)

    monkeypatch.setattr(sys.modules["precedents.metrics.preconditioners.fisher"], "gradient_gram", counted)
    metrics = ["dot_fisher", "cos_fisher", "l2_fisher"]
    criteria = ["model_randomization", "model_randomization(label=shared)", "identical_class"]
    found = audit(model, train, (x[:4], y[:4]), metrics=metrics, criteria=criteria, memory=100_000, k=3)
    assert all(whole(found, name) for name in metrics)
    assert found.agreement
    assert len(fits) == len(set(fits)) == 4  # of the trained model and three random ones


def test_a_fit_that_is_broken_off_keeps_its_place(tmp_path) -> None:
    over, total = [], torch.zeros(1)

    def summed(steps) -> None:
        for step in tracked(Resumed(steps, lambda: "a sum", InPlace({"total": total})), "sum"):
            total.add_(step)
            over.append(step)

    ends = ending(lambda: "the time is over" if len(over) == 3 else None)
    with kept_in(tmp_path), ends, pytest.raises(BudgetError, match="the time is over"):
        summed([1, 2, 3, 4, 5])
    assert total == 6
    total.zero_()
    with kept_in(tmp_path):
        summed([1, 2, 3, 4, 5])
    assert (over, float(total)) == ([1, 2, 3, 4, 5], 15.0)


def test_the_agreement_is_kept_and_does_not_take_time_that_there_is_none_of(world, tmp_path) -> None:
    options = {"criteria": ["identical_class", own_criterion], "k": 3}
    audit(*world, metrics=["cos_x", "cos_grad"], keep=tmp_path / "failed", **options)
    assert '"piece": ["agreement"]' in (tmp_path / "failed" / "records.jsonl").read_text()
    options |= {"metrics": ["cos_x", "cos_grad", METRICS["memory of torch"][0]], "keep": tmp_path / "large"}
    first = audit(*world, **options)
    late = audit(*world, within=1e-9, **options)
    assert whole(late, "cos_x") == whole(first, "cos_x")
    assert not late.agreement
    assert audit(*world, **options).agreement == first.agreement != {}


def test_what_takes_long_is_done_where_there_is_time(world) -> None:
    metric = slow_metric(0.0005)
    found = audit(*world, metrics=[metric, "cos_x"], criteria=["identical_class"], within=None, k=3)
    assert all(whole(found, name) for name in found.metrics)


def test_an_audit_that_may_take_no_time_ends_too(world, valid) -> None:
    found = audit(*world, within=1e-9, k=3)
    assert all(isinstance(each, Inapplicable) for each in found.judgement.outcomes.values())
    assert str(found.recommendation) == "No metric has a result that could be afforded."
    assert str(found).count("– left out:") == 1
    valid.validate(found.to_dict())
    assert "Left out: " in found.to_html()


@pytest.mark.parametrize("given", ["soon", 0, -1, "10 parsecs", "", "nan", float("nan"), "0 min", "1e400"])
def test_a_time_that_is_none_is_refused(given, world) -> None:
    with pytest.raises(InputError, match="within is"):
        audit(*world, within=given)


@settings(max_examples=25)
@given(st.floats(0.001, 1e6), st.sampled_from(["s", "min", "h", "d"]))
def test_times_are_read_with_their_units(value, unit) -> None:
    assert seconds_of(f"{value!r} {unit}") == pytest.approx(value * UNITS[unit])


@pytest.mark.parametrize("metric", [HESSIAN, "dot_fisher", "cosine:gradient/lanczos"])
def test_what_needs_too_much_memory_is_left_out_and_done_with_more(metric, world, tmp_path) -> None:
    options = {"metrics": [metric, "cos_x"], "criteria": ["identical_class", "identical_instance"], "k": 3}
    found = audit(*world, memory="20 KB", keep=tmp_path, **options)
    large, small = found.metrics
    ((kind, why),) = lacks(found, large)
    assert kind == "left out"
    assert "but the budget is 19.5 KiB" in why
    assert whole(found, small)
    assert large not in (tmp_path / "records.jsonl").read_text()
    more = audit(*world, keep=tmp_path, **options)
    assert whole(more, large)
    assert alike(json.loads(more.to_json()), json.loads(audit(*world, **options).to_json()))


def alike(one: Any, other: Any) -> bool:
    """Whether two contents of JSON are the same but for rounding, which depends on the memory."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(alike, one, other))
    return one == pytest.approx(other, rel=1e-9) if isinstance(one, float) else one == other


def test_what_failed_is_tried_again(world, tmp_path) -> None:
    def sometimes(trial, metric):
        if not (tmp_path / "repaired").exists():
            raise ValueError("not yet")
        from precedents import CRITERIA

        return CRITERIA.get("identical_class")(trial, metric)

    options = {"metrics": ["cos_x"], "criteria": [sometimes], "k": 3, "keep": tmp_path / "kept"}
    ((kind, reason),) = lacks(audit(*world, **options), "cos_x")
    assert kind == "error"
    assert "ValueError: not yet" in reason
    (tmp_path / "repaired").touch()
    assert whole(audit(*world, **options), "cos_x")


# Estimates, metric by metric.


def test_an_estimate_says_what_each_metric_takes_and_what_is_left_out(world) -> None:
    model, train, test = world
    trial = Trial.of(model, train, test, memory="20 KB")
    slow = slow_metric(0.01)
    agenda = Agenda.of(trial, ["cos_x", slow, HESSIAN, "dot_x"], k=3)
    found = estimate(agenda, Limits.of(within=2.5))
    first, late, large, second = found.metrics
    assert (first.without, second.without, late.without, large.without) == (None, None, "left out", "left out")
    assert "does not fit into the 2.5 s" in late.reason
    assert "but the budget is 19.5 KiB" in large.reason
    assert late.seconds > 2.5 > found.seconds >= first.seconds > 0
    assert [each.metric for each in found.metrics] == list(agenda.metrics)
    assert str(found).startswith("about ")
    assert "left out: The work does not fit" in str(found)
    assert slow.features.seen < 8 * 45


def test_an_estimate_and_the_audit_leave_out_the_same(world) -> None:
    model, train, test = world
    metrics = ["cos_x", "cos_last", HESSIAN, "dot_fisher", "cos_grad"]
    agenda = Agenda.of(Trial.of(model, train, test, memory="20 KB"), metrics, k=3)
    found = audit(model, train, test, metrics=metrics, memory="20 KB", k=3)
    expected = {each.metric: each.without for each in estimate(agenda, Limits.of()).metrics}
    assert {name for name in found.metrics if expected[name] == "left out"} == {
        name for name in found.metrics if lacks(found, name)
    }


def test_a_command_estimates_and_leaves_out(tmp_path, monkeypatch, capsys) -> None:
    (tmp_path / "own_model.py").write_text(
        "from conftest import blobs, mlp, trained\n"
        "def factory():\n"
        "    return trained(mlp, blobs(45, seed=1)), blobs(45, seed=1), blobs(12, seed=2)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    command = [
        "audit",
        "--target",
        "own_model:factory",
        "--metrics",
        f"{HESSIAN},gc",
        "--memory",
        "20 KB",
        "-q",
    ]
    assert main([*command, "--dry-run"]) == 0
    assert "left out: " in capsys.readouterr().out
    assert main([*command, "--dry-run", "--json"]) == 0
    large, small = json.loads(capsys.readouterr().out)["metrics"]
    assert (large["without"], small["without"]) == ("left out", None)
    assert main(command) == 0
    assert "– left out: cosine:gradient/hessian(kind=exact). " in capsys.readouterr().out
    assert main([*command, "--within", "1e-9"]) == 0
    assert "cos_grad. The work does not fit" in capsys.readouterr().out
    assert main([*command, "--within", "soon"]) == 2


# Progress by work.


@pytest.fixture
def clock(monkeypatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(progress, "monotonic", made)
    return made


@pytest.mark.parametrize("slower", [0.6, 1.0, 1.7])
def test_the_time_left_is_right_within_a_factor_of_two(slower, clock) -> None:
    work = [0.2] * 30 + [2.0] * 5 + [10.0, 20.0, 40.0]
    pace, said = Pace(len(work), work), []
    for seconds in work:
        for _ in range(4):
            said.append((clock.now, pace.left()))
            clock.passes(seconds * slower / 4)
        pace.advance()
    rest = [(left, clock.now - when) for when, left in said if clock.now - when > 20 * slower]
    assert len(rest) > 120
    assert all(true / 2 < left < 2 * true for left, true in rest)


def test_what_nobody_expected_says_little_of_the_rest(clock) -> None:
    pace = Pace(3, [0.0, 0.001, 1.0])
    for seconds in (0.2, 0.1):
        clock.passes(seconds)
        pace.advance()
    assert pace.left() == pytest.approx(1.0, rel=0.1)


def test_lines_say_the_time_that_is_left_by_work(clock) -> None:
    lines: list[str] = []
    with told(lines.append):
        for seconds in tracked([10] * 4 + [600], "work", patience=-1, work=[10] * 4 + [600]):
            clock.passes(seconds)
    left = [line.rpartition(", ")[2] for line in lines]
    assert left == ["10 min 30 s left", "10 min 10 s left", "work: 5 of 5 in 10 min 40 s"]


def test_the_pieces_of_an_audit_take_what_is_expected(world, monkeypatch) -> None:
    """In one of three audits, as other work on the machine may disturb some."""
    right = []
    for _ in range(3):
        expected, taken = pieces_of(world, monkeypatch)
        assert len(expected) == len(taken)
        longest = sorted(range(len(taken)), key=taken.__getitem__)[-2:]
        long = sum(expected[i] for i in longest) > 0.5 * sum(expected)
        right.append(long and sum(taken) / 2.5 < sum(expected) < 2.5 * sum(taken))
        if right[-1]:
            break
    assert any(right)


def pieces_of(world, monkeypatch) -> tuple[list[float], list[float]]:
    """The seconds that the pieces of an audit were expected to take, and those that they took."""
    expected, taken = [], []

    def noted(items, title, work=None):
        expected.extend(work)
        for item in items:
            began = time.monotonic()
            yield item
            taken.append(time.monotonic() - began)

    monkeypatch.setattr(sys.modules["precedents.audit.pieces"], "tracked", noted)
    audit(*world, metrics=[slow_metric(0.003), "cos_x"], k=3)
    return expected, taken


# Long fits go on after a kill.


@pytest.fixture(scope="module")
def killed(tmp_path_factory) -> dict[str, dict]:
    """What became of each fit, and of an audit; one process begins them all."""
    folder = tmp_path_factory.mktemp("killed")
    command = [sys.executable, "-m", "promises.killed", str(folder)]
    environment = {"PYTHONPATH": ":".join(sys.path), "OMP_NUM_THREADS": "1", "PATH": ""}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    found = {each["fit"]: each for each in map(json.loads, done.stdout.splitlines())}
    return found | {"folder": folder}


@pytest.mark.parametrize("fit", FITS)
def test_a_killed_fit_goes_on_where_it_was(fit, killed) -> None:
    found = killed[fit]
    assert found["signal"] == signal.SIGKILL
    assert found["kept"] >= 1
    assert 0 < found["left"] < found["steps"] / 2
    assert found["same"]


@pytest.mark.parametrize("fit", FITS)
def test_what_is_kept_of_something_else_is_not_taken(fit, killed) -> None:
    assert killed[fit]["again"] == killed[fit]["steps"]
    assert killed[fit]["other"]


def test_an_audit_killed_in_a_fit_ends_with_the_same_bytes(killed) -> None:
    folder = killed["folder"] / "audit"
    for ended, partial in killed["audit"]["kills"]:
        assert ended == signal.SIGKILL
        assert partial
    assert audited(folder).to_json() == audited().to_json()
    assert not (folder / "partial").exists()


@pytest.mark.parametrize("damage", ["manifest.json", "sums.safetensors", "both"])
def test_damaged_sums_are_not_taken(damage, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("precedents.runtime.checkpoint.EVERY", 0.0)

    def summed() -> tuple[float, int]:
        total, steps = torch.zeros(4), 0
        for step in Resumed(range(5), lambda: "sum", InPlace({"total": total})):
            total += step
            steps += 1
        return float(total[0]), steps

    with kept_in(tmp_path):
        assert summed() == (10.0, 5)
        assert summed() == (10.0, 0)
        for path in tmp_path.glob("partial/*/*"):
            if damage in (path.name, "both"):
                content = bytearray(path.read_bytes())
                content[-3] ^= 1
                path.write_bytes(bytes(content))
        assert summed() == (10.0, 5)


def test_a_full_disk_ends_no_fit(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("precedents.runtime.checkpoint.EVERY", 0.0)
    (tmp_path / "partial").write_text("a file where a folder should be")
    total = torch.zeros(1)

    def summed() -> None:
        for step in Resumed(range(5), lambda: "sum", InPlace({"total": total})):
            total.add_(step)

    with kept_in(tmp_path), pytest.warns(UserWarning, match="Partial sums cannot be kept"):
        summed()
    assert float(total) == 10

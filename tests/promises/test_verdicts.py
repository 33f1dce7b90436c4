"""Verdicts are earned: less evidence never makes one better, and what is undecided says how much would do."""

import json
from pathlib import Path

import pytest
import scipy.stats
import torch
from conftest import blobs, mlp, trained
from hypothesis import example, given, settings
from hypothesis import strategies as st

from precedents import Audit, InputError, Result, Trial, audit, correlation, judge, rate
from precedents.audit.profile import Profile
from precedents.audit.recommendation import recommend
from precedents.criteria._interval import exact, student, wilson
from precedents.criteria._judgement import Inapplicable, Judgement
from precedents.errors import FormatError, StaleError

ORDER = {"undecided": 0, "failed": 1, "weak": 2, "passed": 3}
SHARED = "model_randomization(label=shared)"
README = Path(__file__).parents[2] / "README.md"


def successes(share: float, count: int) -> torch.Tensor:
    """1 for this share of so many cases."""
    return (torch.arange(count) < round(share * count)).double()


def of_rate(values, chance: float = 0.1, demand: float = 0.95) -> Result:
    return rate("rate", torch.as_tensor(values, dtype=torch.double), chance, demand)


def near_zero(values, null: float = 0.0) -> Result:
    values = torch.as_tensor(values, dtype=torch.double)
    return correlation("near_zero", values, near=0.1, fail=0.7, nulls={"null over training instances": null})


# The README's model.


@pytest.fixture(scope="module")
def readme() -> dict:
    """What the README's first block leaves: a model, its training set and 200 cases."""
    names: dict = {}
    code = README.read_text(encoding="utf-8").split("```python\n")[1].split("explainer =")[0]
    with torch.random.fork_rng(devices=[]):
        exec(compile(code, "README.md", "exec"), names)
    return names


@pytest.mark.parametrize(
    ("count", "verdict", "paper"),
    [
        (200, "weak", "weak"),
        (20, "undecided", "passed"),
        (10, "undecided", "passed"),
        (5, "undecided", "passed"),
    ],
)
def test_fewer_cases_of_the_readmes_model_are_undecided_and_not_passed(count, verdict, paper, readme) -> None:
    x, y = readme["test"]
    trial = Trial.of(readme["model"], readme["train"], (x[:count], y[:count]))
    result = judge(trial, ["cos_grad"], [SHARED])["cos_grad", SHARED]
    assert 0.28 < result.mean < 0.31
    assert result.verdict == verdict
    assert judge(trial, ["cos_grad"], [SHARED], rule="paper")["cos_grad", SHARED].verdict == paper
    if verdict == "undecided":
        assert str(result).endswith(f": undecided: too few cases (about {result.enough} would do)")
        assert count < result.enough < 200


# Less evidence never makes a verdict better.


cases_of_rates = st.lists(st.sampled_from([0.0, 1.0]) | st.floats(0, 1), min_size=1, max_size=12)
cases_of_correlations = st.lists(st.floats(-1, 1) | st.floats(-0.12, 0.12), min_size=1, max_size=12)
repeats = st.tuples(st.integers(1, 60), st.integers(1, 60)).map(sorted)


@given(cases_of_rates, repeats, st.floats(0, 1), st.floats(0.05, 1))
@example([1.0], [20, 80], 0.1, 0.95)
@example([1.0, 0.0], [3, 60], 0.1, 0.4)
def test_a_rate_over_fewer_cases_never_has_a_better_verdict(values, numbers, chance, demand) -> None:
    few, many = (of_rate(values * number, chance, demand) for number in numbers)
    assert few.mean == pytest.approx(many.mean)
    assert few.verdict in ("undecided", many.verdict)
    assert ORDER[few.verdict] <= ORDER[many.verdict]
    assert ORDER[few.worst] <= ORDER[many.worst]


@given(cases_of_correlations, repeats, st.floats(0, 1))
@example([0.28, 0.3, 0.31], [2, 60], 0.06)
@example([1.0], [2, 40], 0.3)
def test_a_correlation_over_fewer_cases_never_has_a_better_verdict(values, numbers, null) -> None:
    few, many = (near_zero(values * number, null) for number in numbers)
    assert few.mean == pytest.approx(many.mean)
    assert few.verdict in ("undecided", many.verdict)
    assert ORDER[few.worst] <= ORDER[many.worst]


@given(cases_of_correlations, st.floats(0, 1), st.floats(0, 1))
@settings(max_examples=50)
def test_fewer_training_instances_never_make_a_correlation_better(values, first, second) -> None:
    narrow, wide = sorted((first, second))  # the interval of independent ranks: fewer instances, wider
    more, fewer = near_zero(values * 9, narrow), near_zero(values * 9, wide)
    assert fewer.verdict in ("undecided", more.verdict)


@given(st.floats(0, 1), st.integers(1, 500), st.integers(1, 500))
def test_the_exact_interval_of_more_cases_lies_within_that_of_fewer(share, first, second) -> None:
    few, many = sorted((first, second))
    (wide_low, wide_high), (low, high) = exact(share * few, few), exact(share * many, many)
    assert wide_low <= low + 1e-11
    assert high <= wide_high + 1e-11


@given(st.floats(-1, 1), st.floats(0, 1), st.integers(1, 500), st.integers(1, 500))
def test_students_interval_of_more_cases_lies_within_that_of_fewer(mean, spread, first, second) -> None:
    few, many = sorted((first, second))
    std = spread * (1 - mean * mean) ** 0.5
    (wide_low, wide_high), (low, high) = student(mean, std, few), student(mean, std, many)
    assert wide_low <= low + 1e-12
    assert high <= wide_high + 1e-12


# What is not earned is rare.


@pytest.mark.parametrize("count", [2, 3, 5, 8, 20, 50, 72, 100, 230, 500])
def test_a_rate_just_short_of_a_threshold_is_taken_for_more_in_one_of_forty_trials(count) -> None:
    found = [of_rate(successes(k / count, count)).verdict for k in range(count + 1)]
    chances = {
        rate: scipy.stats.binom.pmf(range(count + 1), count, rate) for rate in (0.4999, 0.5, 0.9499, 0.95)
    }

    def chance(rate: float, *verdicts: str) -> float:
        return sum(p for p, verdict in zip(chances[rate], found, strict=True) if verdict in verdicts)

    assert chance(0.9499, "passed") <= 0.0251
    assert chance(0.95, "weak", "failed") <= 0.0251
    assert chance(0.4999, "weak", "passed") <= 0.0251
    assert chance(0.5, "failed") <= 0.0251


@pytest.mark.parametrize("count", [2, 5, 20, 36, 50, 80, 200, 400])
def test_a_rare_full_correlation_is_missed_in_one_of_forty_trials(count) -> None:
    """One case in ten correlates at one, the others at zero: the true mean is at the threshold."""
    chances = scipy.stats.binom.pmf(range(count + 1), count, 0.1001)
    passing = [near_zero(successes(k / count, count)).verdict == "passed" for k in range(count + 1)]
    assert sum(p for p, passes in zip(chances, passing, strict=True) if passes) <= 0.025


@pytest.mark.parametrize(("count", "rate", "share"), [(3, 0.95, 0.14), (4, 0.5, 0.06)])
def test_wilsons_interval_excludes_the_true_rate_more_often_on_one_side(count, rate, share) -> None:
    chances = scipy.stats.binom.pmf(range(count + 1), count, rate)
    ends = [(wilson(k, count), exact(k, count)) for k in range(count + 1)]
    for place, excluded in enumerate((share, 0.025)):
        below = sum(p for p, each in zip(chances, ends, strict=True) if each[place][1] < rate)
        assert round(below, 2) == share if place == 0 else below <= excluded


# Thresholds, and how many cases would do.


@pytest.mark.parametrize(
    ("share", "count", "verdict", "enough"),
    [
        (1.0, 1, "undecided", 72),
        (1.0, 5, "undecided", 72),
        (1.0, 20, "undecided", 72),
        (1.0, 71, "undecided", 72),
        (1.0, 72, "passed", None),
        (0.0, 1, "undecided", 6),
        (0.0, 5, "undecided", 6),
        (0.0, 6, "failed", None),
        (0.95, 100, "undecided", None),  # at the threshold: no number would do
        (0.95, 1000, "undecided", None),
        (0.5, 1000, "undecided", None),
        (0.8, 1000, "weak", None),
    ],
)
def test_a_table_of_rates(share, count, verdict, enough) -> None:
    result = of_rate(successes(share, count))
    assert (result.verdict, result.enough) == (verdict, enough)


@pytest.mark.parametrize(
    ("value", "count", "verdict", "enough"),
    [
        (0.0, 20, "undecided", 36),
        (0.0, 36, "passed", None),
        (1.0, 22, "undecided", 23),
        (1.0, 23, "failed", None),
        (0.1, 1000, "undecided", None),
        (-0.1, 1000, "undecided", None),
        (0.7, 1000, "undecided", None),
        (0.4, 1000, "weak", None),
        (-0.9, 1000, "weak", None),
    ],
)
def test_a_table_of_correlations_without_spread(value, count, verdict, enough) -> None:
    result = near_zero([value] * count)
    assert (result.verdict, result.enough) == (verdict, enough)
    assert result.high - result.low > 0.003


@given(cases_of_correlations)
@settings(max_examples=50)
def test_as_many_cases_as_would_do_decide(values) -> None:
    result = near_zero(values * 2)
    if result.enough is not None and result.enough < 5000:
        assert near_zero(values * (result.enough // len(values) + 1)).verdict != "undecided"
        assert near_zero(values * ((result.enough - 1) // len(values))).verdict == "undecided"


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (lambda: of_rate([]), "no cases"),
        (lambda: near_zero([]), "no cases"),
        (lambda: of_rate([1.0] * 500 + [torch.nan]), "a value is no number"),
        (lambda: near_zero([0.0] * 500 + [torch.nan]), "a value is no number"),
        (lambda: of_rate([1.0], demand=0.01, chance=0.0), "too few cases (about 2 would do)"),
        (lambda: near_zero([0.0]), "too few cases (about 452 would do)"),
        (lambda: of_rate([1.0] * 500, chance=torch.nan), "a value is no number"),
        (lambda: of_rate([1.0] * 500, chance=1.0), "no number of cases would do"),
        (lambda: near_zero([0.2] * 500, null=0.3), "no number of cases would do"),
    ],
)
def test_no_cases_one_case_and_no_numbers_decide_nothing(result, reason) -> None:
    found = result()
    assert found.verdict == "undecided"
    assert found.reason.startswith(reason)
    assert f": undecided: {reason}" in str(found)


# In an audit.


@pytest.fixture(scope="module")
def world():
    train, test = blobs(45, seed=1), blobs(12, seed=2)
    return trained(mlp, train), train, test


@pytest.fixture(scope="module")
def found(world) -> Audit:
    return audit(*world, metrics=["cos_x", "cos_grad"], k=3)


def test_an_audit_shows_what_is_undecided_everywhere(found) -> None:
    result = found["cos_grad", "identical_class"]
    assert (result.verdict, result.enough) == ("undecided", 72)
    assert f"{result.mean:.3f}?" in str(found)
    assert "undecided (?)" in str(found)
    frame = found.to_frame()
    row = frame[(frame.metric == "cos_grad") & (frame.criterion == "identical_class")].iloc[0]
    assert (row.verdict, row.reason) == ("undecided", "too few cases (about 72 would do)")
    page = found.to_html()
    assert page.count("too few cases (about 72 would do)") >= 2
    assert "undecided</span>" in page
    plain = next(
        each
        for each in found.to_dict()["outcomes"]
        if (each["metric"], each["criterion"]) == ("cos_grad", "identical_class")
    )
    assert (plain["verdict"], plain["enough"], plain["between"][-1]) == ("undecided", 72, "passed")
    assert found.recommendation.verdict == "undecided"
    assert "too few cases (about 72 would do)" in str(found.recommendation)


def test_an_audit_is_read_back_with_what_would_do(found) -> None:
    again = Audit.from_json(found.to_json())
    assert again.to_json() == found.to_json()
    assert str(again["cos_grad", "identical_class"]) == str(found["cos_grad", "identical_class"])


def test_the_papers_rule_has_a_name(world, found) -> None:
    by_paper = audit(*world, metrics=["cos_x", "cos_grad"], k=3, rule="paper")
    assert by_paper["cos_grad", "identical_class"].verdict == "passed"
    assert by_paper["cos_x", "model_randomization"].verdict == "failed"
    assert {each.verdict for each in by_paper.judgement.outcomes.values()} <= {"passed", "weak", "failed"}
    assert by_paper.cautions[-1].startswith("Verdicts are by the paper's rule")
    assert not any("paper" in sentence for sentence in found.cautions)
    assert (by_paper.scope.facts["rule"], found.scope.facts["rule"]) == ("paper", "interval")
    for key, outcome in found.judgement.outcomes.items():
        assert torch.equal(outcome.values, by_paper[key].values)


@pytest.mark.parametrize("rule", ["papr", "", None, 3])
def test_an_unknown_rule_is_refused(rule, world) -> None:
    with pytest.raises(InputError, match=r"No rule of verdicts is named .* Known: interval, paper"):
        audit(*world, metrics=["cos_x"], k=3, rule=rule)
    with pytest.raises(InputError, match="Known: interval, paper"):
        judge(Trial.of(*world), ["cos_x"], rule=rule)


def test_work_kept_by_one_rule_is_not_taken_by_the_other(world, tmp_path) -> None:
    chosen = {"metrics": ["cos_x"], "criteria": ["identical_class"], "k": 3, "keep": tmp_path}
    audit(*world, **chosen)
    with pytest.raises(StaleError, match=r"differs in: rule \('interval', not 'paper'\)"):
        audit(*world, rule="paper", **chosen)


def before(found: Audit) -> dict:
    """The audit as the version before wrote it: one rule, which had no name."""
    plain = found.to_dict()
    plain["scope"]["facts"] = {name: v for name, v in found.scope.facts.items() if name != "rule"}
    for each in plain["outcomes"]:
        each.pop("enough", None)
        each.pop("between", None)
    return plain


def test_an_audit_of_the_version_before_is_read_with_its_verdicts_and_says_so(world) -> None:
    plain = before(audit(*world, metrics=["cos_x", "cos_grad"], k=3, rule="paper"))
    read = Audit.from_json(json.dumps(plain))
    assert [each.verdict for each in read.judgement.outcomes.values()] == [
        each["verdict"] for each in plain["outcomes"]
    ]
    assert read.cautions[-1].startswith("Verdicts are by the paper's rule")
    assert Audit.from_json(read.to_json()).to_json() == read.to_json()


def test_a_verdict_that_is_none_is_refused(found) -> None:
    plain = found.to_dict()
    plain["outcomes"][0]["verdict"] = "splendid"
    with pytest.raises(FormatError, match=r"'splendid' is no verdict. Known: passed, weak, failed, undecided"):
        Audit.from_json(json.dumps(plain))


def nothing(trial: Trial, metric) -> Result:
    """A criterion of the user's own, whose values are no numbers."""
    return rate("nothing", torch.full((len(trial.cases),), torch.nan), 0.1, 0.95)


def test_an_audit_of_no_numbers_ends_with_undecided(world) -> None:
    found = audit(*world, metrics=["cos_x"], criteria=[nothing, "identical_class"], k=3)
    assert (found["cos_x", "nothing"].verdict, found["cos_x", "nothing"].reason) == (
        "undecided",
        "a value is no number",
    )
    assert Audit.from_json(found.to_json()).to_json() == found.to_json()
    assert "–?" in str(found)
    assert found.to_html()


# The recommendation.


def recommended(**metrics):
    """From results by criterion, for each metric; a text is the reason why there is none."""
    outcomes = {
        (name, criterion): Inapplicable(result) if isinstance(result, str) else result
        for name, results in metrics.items()
        for criterion, result in results.items()
    }
    profiles = {name: Profile("inputs", 1.0, [], [], [], 1) for name in metrics}
    return recommend(Judgement(outcomes), profiles, dict.fromkeys(metrics, 1.0), None)


ALL, FEW = of_rate([1.0] * 200), of_rate([1.0] * 10)
WEAK, BAD = of_rate(successes(0.8, 200)), of_rate(successes(0.2, 200))


@pytest.mark.parametrize(
    ("first", "second", "best"),
    [
        ({"a": FEW}, {"a": ALL}, "second"),
        ({"a": FEW}, {"a": of_rate(successes(0.99, 500))}, "second"),  # though the rate is lower
        ({"a": FEW, "b": ALL}, {"a": WEAK, "b": ALL}, "first"),  # both may be weak, the rate is higher
        ({"a": of_rate([1.0] * 3), "b": ALL}, {"a": WEAK, "b": ALL}, "second"),  # three may fail
        ({"a": ALL, "b": "too large"}, {"a": ALL, "b": WEAK}, "second"),  # not tried is not passed
        ({"a": ALL, "b": BAD}, {"a": ALL, "b": FEW}, "second"),
    ],
)
def test_nothing_is_recommended_for_having_less_evidence(first, second, best) -> None:
    assert recommended(first=first, second=second).metric == best


two_metrics = st.tuples(*[st.tuples(cases_of_rates, cases_of_correlations)] * 2)


@given(two_metrics, repeats)
@settings(max_examples=60)
@example((([1.0], [0.0]), ([0.8], [0.3])), [1, 60])
def test_a_recommendation_over_fewer_cases_is_never_better(metrics, numbers) -> None:
    few, many = (
        recommended(
            **{
                name: {"a": of_rate(rates * number), "b": near_zero(values * number)}
                for name, (rates, values) in zip(("first", "second"), metrics, strict=True)
            }
        )
        for number in numbers
    )
    assert ORDER[few.verdict] <= ORDER[many.verdict]


def test_the_recommendation_says_how_many_cases_would_decide() -> None:
    found = recommended(only={"a": FEW, "b": ALL})
    assert found.verdict == "undecided"
    assert found.sentences[:3] == [
        "No metric is shown to pass every criterion.",
        "Use only with care: it fails none of 2.",
        "It is undecided in a (1.000): too few cases (about 72 would do).",
    ]


def test_where_a_failure_is_open_nothing_is_to_be_relied_on_yet() -> None:
    found = recommended(only={"a": of_rate([1.0] * 3), "b": ALL})
    assert found.verdict == "undecided"
    assert "do not rely on these explanations before it is decided" in str(found)
    assert "The best so far is only: of 2 criteria it passes 1." in str(found)


def test_what_only_another_metric_has_a_result_of_is_told() -> None:
    found = recommended(only={"a": ALL, "b": "too large"}, other={"a": BAD, "b": BAD})
    assert (found.metric, found.verdict) == ("only", "undecided")
    assert "It has no result in b (not applicable)." in found.sentences
    alone = recommended(only={"a": ALL, "b": "not given"}, other={"a": BAD, "b": "not given"})
    assert (alone.metric, alone.verdict) == ("only", "passed")


@pytest.mark.parametrize("kind", ["left out", "error"])
def test_what_no_metric_has_a_result_of_is_open_unless_it_has_no_meaning(kind) -> None:
    lack = Inapplicable("no time", kind)
    results = {"a": ALL, "b": "not given"}
    both = recommended(first=results | {"c": lack, "d": lack}, second=results | {"c": lack, "d": lack})
    assert (both.metric, both.verdict) == ("first", "undecided")
    assert f"It has no result in c ({kind}), d ({kind})." in both.sentences
    assert "do not rely on these explanations before it is decided" in str(both)
    one = recommended(first=results | {"c": lack}, second=results | {"c": ALL})
    assert (one.metric, one.verdict) == ("second", "passed")

import torch

from precedents import Result
from precedents.audit.profile import Profile
from precedents.audit.recommendation import recommend
from precedents.criteria._criterion import Criterion
from precedents.criteria._judgement import Inapplicable, Judgement

CRITERIA = ("model_randomization", "identical_class")


class Nearness(Criterion):
    """A criterion of the user's own, which is best at zero."""

    better = "zero"

    def __call__(self, trial, metric) -> Result:
        raise AssertionError("Its results are here already.")


def result(criterion: str, value: float, verdict: str) -> Result:
    return Result(criterion, torch.tensor([value], dtype=torch.double), 0.0, 1.0, 0.1, verdict)


def recommended(afford=None, costs=None, **metrics):
    """From (randomization verdict, class verdict, rate, work) by metric; None does not apply."""
    outcomes, profiles = {}, {}
    for name, told in metrics.items():
        if told is None:
            profiles[name] = Inapplicable("no hidden layer")
            outcomes |= {(name, criterion): Inapplicable("no hidden layer") for criterion in CRITERIA}
            continue
        first, second, rate, work = told
        profiles[name] = Profile("inputs", 1.0, [], [], [], work)
        outcomes[name, CRITERIA[0]] = result(CRITERIA[0], 0.0, first)
        outcomes[name, CRITERIA[1]] = result(CRITERIA[1], rate, second)
    return recommend(Judgement(outcomes), profiles, costs or dict.fromkeys(metrics, 1.0), afford)


def test_a_metric_that_passes_everything_comes_first() -> None:
    found = recommended(a=("weak", "passed", 1.0, 1), b=("passed", "passed", 0.96, 9), c=None)
    assert (found.metric, found.verdict) == ("b", "passed")
    assert str(found).startswith("Use b: it passes every criterion (2 of 2). No other metric does.")


def test_among_those_that_pass_the_highest_rate_wins() -> None:
    found = recommended(a=("passed", "passed", 0.96, 1), b=("passed", "passed", 0.99, 9))
    assert found.metric == "b"
    assert "So does a." in str(found)
    assert "highest mean success rate, 0.990 against 0.960 of a" in str(found)


def test_at_equal_rates_the_least_work_wins_and_then_the_first() -> None:
    found = recommended(a=("passed", "passed", 0.96, 9), b=("passed", "passed", 0.96, 1))
    assert found.metric == "b"
    assert "least work" in str(found)
    same = recommended(a=("passed", "passed", 0.96, 1), b=("passed", "passed", 0.96, 1))
    assert same.metric == "a"
    assert "b is as good" in str(same)


def test_where_none_passes_a_weak_one_is_used_with_care() -> None:
    found = recommended(a=("failed", "passed", 1.0, 1), b=("passed", "weak", 0.8, 1))
    assert (found.metric, found.verdict) == ("b", "weak")
    assert found.sentences[:2] == [
        "No metric passes every criterion.",
        "Use b with care: it fails none of 2 and is weak in identical_class (0.800).",
    ]


def test_where_all_fail_the_least_bad_is_named_with_what_it_fails() -> None:
    found = recommended(a=("failed", "failed", 0.1, 1), b=("weak", "failed", 0.4, 1))
    assert (found.metric, found.verdict) == ("b", "failed")
    assert "do not rely on these explanations alone" in str(found)
    assert "The least bad is b: of 2 criteria it fails identical_class (0.400), and is weak in" in str(found)


def test_what_cannot_be_afforded_is_left_out() -> None:
    told = {"a": ("passed", "passed", 0.96, 1), "b": ("passed", "passed", 0.99, 9)}
    found = recommended(afford=0.5, costs={"a": 0.1, "b": 2.0}, **told)
    assert found.metric == "a"
    assert "takes 0.1 seconds; 0.5 can be afforded. Left out as too slow: b." in str(found)
    nothing = recommended(afford=0.01, costs={"a": 0.1, "b": 2.0}, **told)
    assert (nothing.metric, nothing.verdict) == (None, "not applicable")
    assert "The fastest is a with 0.1 seconds" in str(nothing)


def test_measured_times_do_not_change_what_is_said_without_a_limit() -> None:
    told = {"a": ("passed", "passed", 0.96, 1), "b": ("passed", "passed", 0.96, 1)}
    assert recommended(costs={"a": 9.0, "b": 0.1}, **told) == recommended(costs={"a": 0.1, "b": 9.0}, **told)


def test_without_any_result_nothing_is_recommended() -> None:
    assert recommended(a=None).sentences == ["No metric has a result on this model."]


def test_only_what_is_better_when_higher_is_a_success_rate() -> None:
    values = {"identical_class": 0.9, "nearness": 0.0, "of_yesterday": 0.6}
    outcomes = {("a", name): result(name, value, "passed") for name, value in values.items()}
    profiles = {"a": Profile("inputs", 1.0, [], [], [], 1)}
    own = recommend(Judgement(outcomes, {"nearness": Nearness()}), profiles, {"a": 1.0}, None)
    assert own.sentences[-1] == "The mean of its success rates is 0.750."
    unknown = recommend(Judgement(outcomes), profiles, {"a": 1.0}, None)
    assert unknown.sentences[-1] == "The mean of its success rates is 0.500."


def test_what_is_weak_or_failed_is_said_with_its_reason() -> None:
    found = recommended(a=("failed", "weak", 0.8, 1))
    told = [sentence for sentence in found.sentences if sentence.startswith(("It fails", "It is weak"))]
    assert told[0].startswith("It fails model_randomization: ")
    assert told[1:] == [  # of one case
        "It is weak in identical_class: So few cases do not tell it from drawing training instances at random."
    ]
    assert not any("It is weak in" in each for each in recommended(a=("passed", "passed", 1.0, 1)).sentences)

"""Why a verdict is weak or failed, in a sentence of the criterion's."""

import pytest
import torch

from precedents import CRITERIA, Trial, judge
from precedents.criteria._criterion import Criterion, lacking, like_chance
from precedents.criteria._judgement import Judgement, by_text
from precedents.criteria._result import Result, correlation, rate

SHARED = "model_randomization(label=shared)"


def rated(share: float, chance: float = 0.1, cases: int = 400) -> Result:
    return rate("often", (torch.arange(cases) < share * cases).double(), chance, 0.95)


class Plain(Criterion):
    """A criterion that says nothing of its own."""

    def __call__(self, trial, metric) -> Result:
        return rated(0.7)


class Wrong(Plain):
    def explained(self, result, metric) -> str:
        raise RuntimeError("no words")


@pytest.fixture(scope="module")
def binary() -> Trial:
    random = torch.Generator().manual_seed(0)
    x = torch.randn(260, 4, generator=random)
    y = (x[:, 0] > 0).long()
    model = torch.nn.Linear(4, 2)
    with torch.no_grad():
        model.weight.copy_(torch.randn(2, 4, generator=random))
    return Trial.of(model, (x[:160], y[:160]), (x[160:], y[160:]))


def test_a_linear_model_of_two_classes_always_has_the_same_ranking_by_angles(binary) -> None:
    found = judge(binary, ["cos_grad", "cos_x"], [SHARED])
    assert found["cos_grad", SHARED].values.min() > 1 - 1e-9
    assert "linear model of two classes" in found.explained("cos_grad", SHARED)
    assert "linear model of two classes" not in found.explained("cos_x", SHARED)
    assert "does not depend on what the model has learned" in found.explained("cos_x", SHARED)


@pytest.mark.parametrize(("mean", "begins"), [(0.9, "Most of"), (0.3, "Part of"), (-0.3, "The ranking is in")])
def test_how_much_of_a_ranking_stays(mean, begins) -> None:
    result = correlation("model_randomization", torch.full((60,), mean), near=0.1, fail=0.7)
    assert CRITERIA.read("model_randomization").explained(result, "cos_grad").startswith(begins)
    both = "Both models explain the same label" in CRITERIA.read(SHARED).explained(result, "cos_grad")
    assert both == (mean > 0)


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (rated(0.8), "In some of the cases it is another."),
        (rated(0.2), "In more than half of the cases it is another."),
        (rated(0.05), "In more than half of the cases it is another."),
        (rated(0.6, chance=0.7), "It does no better than drawing training instances at random."),
        (
            rated(1.0, chance=0.7, cases=4).by("paper"),
            "So few cases do not tell it from drawing training instances at random.",
        ),
    ],
)
def test_how_often_a_case_does_not_succeed(result, said) -> None:
    assert lacking(result, "it is another") == said


@pytest.mark.parametrize("name", CRITERIA.names())
@pytest.mark.parametrize("mean", [0.8, 0.2])
def test_every_criterion_has_a_sentence(name, mean) -> None:
    said = CRITERIA.read(name).explained(rated(mean), "cos_grad")
    assert said.endswith(".")
    assert "\n" not in said


def test_only_what_is_weak_or_failed_is_explained() -> None:
    results = {"passed": rated(1.0), "weak": rated(0.7), "failed": rated(0.2), "undecided": rated(0.7, cases=3)}
    assert {result.verdict for result in results.values()} == set(results)
    judged = Judgement({(name, "plain"): each for name, each in results.items()}, {"plain": Plain()})
    assert {name: judged.explained(name, "plain") for name in results} == {
        "passed": "",
        "weak": "The success rate is too low to pass.",
        "failed": "The success rate is below one half.",
        "undecided": "",
    }
    assert judged.explained("nobody", "plain") == ""


def test_a_criterion_without_words_or_with_wrong_ones_stops_nothing() -> None:
    result = rated(0.7)
    assert Judgement({("a", "mine"): result}, {"mine": Wrong()}).explained("a", "mine") == ""
    function = by_text([lambda trial, metric: result])
    text = next(iter(function))
    assert Judgement({("a", text): result}, function).explained("a", text) == ""
    assert like_chance(result) == ""

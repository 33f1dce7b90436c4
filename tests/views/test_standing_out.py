import numpy as np
import pytest
from sklearn.datasets import load_digits, load_wine

from precedents.views.standing_out import standing_out


def test_words_that_one_list_has_more_often_stand_out() -> None:
    found = standing_out(
        ["the river is long", "a River", "one river", "river two"] * 2,
        ["who is she", "who wrote it", "who ran", "but who"] * 2,
        "which river is it",
    )
    assert {trait.name for trait in found.traits[:2]} == {"river", "who"}
    assert 'The case is nearer to ours in "river" and "who".' in found.sentences("ours", "theirs")


def test_values_of_categories_stand_out_by_their_shares() -> None:
    one, other = [{"tone": "rude"}] * 9 + [{"tone": "calm"}] * 3, [{"tone": "calm"}] * 12
    (trait,) = standing_out(one, other).traits
    assert trait.name in ("tone = calm", "tone = rude")
    assert {trait.one, trait.other} == ({0.25, 1.0} if "calm" in trait.name else {0.75, 0.0})


def test_lists_that_are_the_same_have_nothing_that_stands_out() -> None:
    rows = [{"age": 3.0}, {"age": 5.0}]
    assert standing_out(rows, rows).traits == []
    pictures = [np.zeros((4, 4)), np.ones((4, 4))]
    assert standing_out(pictures, pictures).sentences("a", "b") == ["No region of the pictures separates them."]


def test_pictures_of_several_sizes_are_not_compared() -> None:
    assert standing_out([np.zeros((4, 4))], [np.zeros((5, 5))]).sentences("a", "b") == []


def of_a_class(kind: str) -> list:
    """Instances of one class: rows, pictures or texts."""
    if kind == "rows":
        data = load_wine()
        return [dict(zip(data.feature_names, row.tolist(), strict=True)) for row in data.data[data.target == 1]]
    if kind == "pictures":
        data = load_digits()
        return list(data.images[data.target == 3] / 16)
    draw, words = np.random.default_rng(1), [f"word{i}" for i in range(40)]
    return [" ".join(draw.choice(words, 8)) for _ in range(80)]


@pytest.mark.parametrize("kind", ["rows", "pictures", "texts"])
@pytest.mark.parametrize("k", [1, 3, 5, 25])
def test_nothing_is_said_of_random_instances_however_few(kind, k) -> None:
    every, draw, said = of_a_class(kind), np.random.default_rng(0), 0
    for _ in range(50):
        order = draw.permutation(len(every))
        one, other = ([every[i] for i in places] for places in (order[:k], order[k:]))
        said += any(
            "separates them:" in s or "They differ" in s for s in standing_out(one, other).sentences("a", "b")
        )
    assert said <= 6


@pytest.mark.parametrize("k", [5, 25])
def test_what_differs_is_said_of_few(k) -> None:
    data = load_digits()
    threes, eights = (list(data.images[data.target == digit][:k] / 16) for digit in (3, 8))
    assert "They differ most around" in standing_out(threes, eights).sentences("3", "8")[0]
    wine = load_wine()
    sides = [[{"proline": value} for value in wine.data[wine.target == i][:k, 12].tolist()] for i in (0, 1)]
    assert standing_out(*sides).traits

from datetime import date, timedelta

import numpy as np
import pandas as pd
import pytest
from scipy.stats import fisher_exact
from sklearn.datasets import load_digits, load_wine

from precedents.views.standing_out import CHANCE, standing_out


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


def drawn(kind: str, draw: np.random.Generator):
    """An instance of no class, by a kind of values."""
    if kind == "texts of rare words":
        return " ".join(f"word{number}" for number in draw.zipf(1.3, 12))
    if kind == "words with many values":
        names, towns = f"n{draw.integers(200)}", f"t{draw.integers(20)}"
        return {"name": names, "town": towns, "kind": f"k{draw.integers(3)}", "age": float(draw.normal())}
    values = {
        "numbers": draw.normal(size=10),
        "gaps": np.where(draw.random(10) < 0.1, np.nan, draw.normal(size=10)),
        "rare ones": draw.random(10) < 0.02,
        "skewed": np.exp(3 * draw.normal(size=10)),
        "stars": draw.integers(5, size=10),
        "yes or no": draw.integers(2, size=10),
    }[kind]
    return {f"x{i}": float(value) for i, value in enumerate(values)}


@pytest.mark.parametrize("sizes", [(3, 3), (5, 5), (3, 200), (25, 100)])
@pytest.mark.parametrize(
    "kind",
    [
        *("numbers", "gaps", "rare ones", "skewed", "stars", "yes or no"),
        *("words with many values", "texts of rare words"),
    ],
)
def test_something_stands_out_of_random_lists_no_more_often_than_is_said(kind, sizes) -> None:
    said, repeats = 0, 200
    for seed in range(repeats):
        draw = np.random.default_rng(seed)
        every = [drawn(kind, draw) for _ in range(sum(sizes))]
        said += bool(standing_out(every[: sizes[0]], every[sizes[0] :]).traits)
    assert said <= repeats * CHANCE + 3 * (repeats * CHANCE * (1 - CHANCE)) ** 0.5


@pytest.mark.parametrize("gap", [None, np.nan, pd.NA, pd.NaT, np.datetime64("NaT"), np.inf])
def test_gaps_hide_no_difference(gap) -> None:
    one, other = ([{"income": float(start + i)} for i in range(10)] for start in (0, 30))
    (trait,) = standing_out([*one, {"income": gap}], [*other, {"income": gap}]).traits
    assert (trait.name, trait.one, trait.other) == ("income", 4.5, 34.5)


@pytest.mark.parametrize("gap", [None, pd.NaT, np.datetime64("NaT")])
def test_gaps_hide_no_difference_of_dates(gap) -> None:
    one, other = (
        [{"opened": date(year, 1, 1) + timedelta(days=i)} for i in range(10)] for year in (2020, 2022)
    )
    found = standing_out([{"opened": gap}, *one], other)
    assert found.sentences("a", "b")[0] == "What separates them: opened: 2020-01-05 in a, 2022-01-05 in b."


@pytest.mark.parametrize("values", [[1.0] * 12, ["Berlin", "Paris"] * 6])
@pytest.mark.parametrize("gap", [None, np.nan, pd.NA])
def test_that_values_are_missing_stands_out_by_its_share(gap, values) -> None:
    whole, gaps = [{"debt": value} for value in values], [{"debt": gap}] * 12
    assert "debt = missing" in str(standing_out(gaps, whole).sentences("a", "b"))
    assert standing_out([{"debt": gap}] * 6 + whole[:6], [{"debt": gap}] * 6 + whole[:6]).traits == []


def test_of_fewer_than_three_values_that_are_there_no_mean_is_told() -> None:
    one = [{"income": 1.0 + i if i < 2 else None} for i in range(12)]
    other = [{"income": 1000.0 + i} for i in range(12)]
    assert [trait.name for trait in standing_out(one, other).traits] == ["income = missing"]


@pytest.mark.parametrize("several", [0, 40])
def test_the_more_is_tried_the_larger_a_difference_must_be(several) -> None:
    """A difference of shares that one try in a hundred shows does not stand out of forty."""
    one, other = [{"tone": "rude"}] * 6 + [{"tone": "calm"}] * 4, [{"tone": "calm"}] * 10
    assert CHANCE / 40 < fisher_exact([[6, 4], [0, 10]]).pvalue < CHANCE / 2
    every = [row | {f"tone {j}": "ab"[i % 2] for j in range(several)} for i, row in enumerate([*one, *other])]
    assert bool(standing_out(every[:10], every[10:]).traits) == (several == 0)


def test_names_that_are_all_different_hide_no_difference() -> None:
    ages = {"age": [30.0 + i for i in range(5)] + [60.0 + i for i in range(5)]}
    every = [{"name": f"n{i}", "street": f"s{i}", "age": age} for i, age in enumerate(ages["age"])]
    assert [trait.name for trait in standing_out(every[:5], every[5:]).traits] == ["age"]

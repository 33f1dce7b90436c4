import numpy as np

from precedents.views.standing_out import standing_out


def test_words_that_one_list_has_more_often_stand_out() -> None:
    found = standing_out(["the river is long", "a River"], ["who is she", "who wrote it"], "which river is it")
    assert {trait.name for trait in found.traits[:2]} == {"river", "who"}
    assert 'The case is nearer to ours in "river" and "who".' in found.sentences("ours", "theirs")


def test_values_of_categories_stand_out_by_their_shares() -> None:
    one, other = [{"tone": "rude"}] * 3 + [{"tone": "calm"}], [{"tone": "calm"}] * 4
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

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from precedents import Examples, tables
from precedents.views.comparison import (
    beginning,
    compared,
    line,
    lines,
    parts,
    sides,
    spread_of,
    spreads,
    told_first,
)

CASE = {"width": 2.0, "height": 5.0, "colour": "red", "legs": 4, "wings": True}
ROW = {"width": 2.5, "height": 1.0, "colour": "blue", "legs": 4, "wings": True}
SPREAD = {"width": 0.5, "height": 1.0, "legs": 1.0}


def test_columns_are_compared_in_standard_deviations() -> None:
    found = {column.name: column.apart for column in compared(ROW, CASE, SPREAD)}
    assert found == {"width": 1.0, "height": -4.0, "colour": 1.0, "legs": 0.0, "wings": 0.0}


def test_the_nearest_columns_come_first_and_ties_stay_in_their_order() -> None:
    names = [column.name for column in compared(ROW, CASE, SPREAD)]
    assert names == ["legs", "wings", "width", "colour", "height"]


def test_columns_say_how_far_they_are_apart() -> None:
    said = [str(column) for column in compared(ROW, CASE, SPREAD)]
    assert said == [
        "legs 4",
        "wings True",
        "width 2.5 (+1.0 sd)",
        "colour blue (case: red)",
        "height 1 (-4.0 sd)",
    ]


def test_a_difference_where_there_is_none_in_the_training_set_is_the_farthest() -> None:
    *_, last = compared({"a": 1.0, "b": 9.0}, {"a": 2.0, "b": 0.0}, {"a": 0.0, "b": 1.0})
    assert str(last) == "a 1 (case: 2)"


@pytest.mark.parametrize("value", [float("nan"), None, "missing"])
def test_two_missing_values_are_equal(value) -> None:
    (column,) = compared({"a": value}, {"a": value}, {"a": 1.0})
    assert column.apart == 0


def test_a_column_that_the_case_lacks_is_another() -> None:
    (column,) = compared({"a": 1.0}, {}, {"a": 1.0})
    assert (column.apart, column.said) == (1.0, "case: None")


@given(st.dictionaries(st.text(), st.floats(allow_nan=False), max_size=9), st.integers(1, 5))
def test_no_column_is_near_and_far_and_none_is_far_that_is_equal(row, each) -> None:
    near, far = sides(compared(row, dict.fromkeys(row, 0.0), dict.fromkeys(row, 1.0)), each)
    assert not {column.name for column in near} & {column.name for column in far}
    assert all(column.apart for column in far)
    assert all(abs(a.apart) <= abs(b.apart) for a in near for b in far)
    assert len(far) <= len(near) <= each
    assert [abs(column.apart) for column in far] == sorted((abs(c.apart) for c in far), reverse=True)


def test_the_spread_is_the_standard_deviation_of_finite_numbers() -> None:
    rows = [{"a": 1.0, "b": "x", "c": True}, {"a": 3.0, "b": 2}, {"a": float("inf")}, "a text", {"a": 2}]
    assert spreads(rows) == {"a": pytest.approx((2 / 3) ** 0.5), "b": 0.0}


def test_the_spread_of_a_training_set_is_that_of_its_columns() -> None:
    x = torch.arange(3000.0)[:, None] * torch.tensor([1.0, -2.0])
    train = Examples.of((x, torch.zeros(3000, dtype=torch.long)))
    found = spread_of(train, tables(["a", "b"]))
    assert found == {"a": pytest.approx(866, rel=1e-2), "b": pytest.approx(1732, rel=1e-2)}
    assert spread_of(train, None) == spread_of(train, lambda x: "a text") == {}


def test_a_table_row_prints_where_it_is_near_and_far() -> None:
    assert (
        line(ROW, CASE, SPREAD) == "near: legs 4, wings True; far: height 1 (-4.0 sd), colour blue (case: red)"
    )
    assert line(CASE, CASE, SPREAD) == "near: width 2, height 5"
    assert line({"a": 3.0}, {"a": 1.0}, {"a": 1.0}) == "near: a 3 (+2.0 sd)"


def test_a_text_prints_its_beginning_on_one_line() -> None:
    assert line("two\nlines \x00", "", {}) == "two lines ⟨U+0000⟩"
    assert line("a" * 300, "", {}) == "a" * 97 + "..."
    assert beginning("some words", 8) == "some..."


def test_a_picture_prints_nothing() -> None:
    assert line(torch.eye(2).numpy(), torch.eye(2).numpy(), {}) is None


def test_lines_stand_below_what_they_are() -> None:
    assert lines(ROW, CASE, SPREAD) == [
        "nearest",
        " legs      4",
        " wings  True",
        " width   2.5 +1.0 sd",
        "farthest",
        " height    1 -4.0 sd",
        " colour blue case: red",
    ]
    assert lines(CASE, CASE, SPREAD) == ["nearest", " width    2", " height   5", " colour red"]


def test_the_case_begins_with_what_is_told_of_its_precedents() -> None:
    case = {f"c{i}": 0.0 for i in range(20)}
    far = case | {"c15": 9.0}
    assert list(told_first(case, [far, far], dict.fromkeys(case, 1.0)))[:4] == ["c0", "c1", "c2", "c15"]
    assert told_first("text", [far], {}) == "text"


def test_shared_and_unknown_words_are_parts_of_their_own() -> None:
    found = parts("The Market ‹unknown› fell", "a market, the ‹unknown› one")
    assert found == (("The ", ""), ("Market", "shared"), (" ", ""), ("‹unknown›", "unknown"), (" fell", ""))


@given(st.text(), st.text())
def test_parts_are_the_whole_text(text, case) -> None:
    assert "".join(part for part, _ in parts(text, case)) == text

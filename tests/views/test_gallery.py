import re

import numpy as np

from precedents.views.fragments import document, page
from precedents.views.gallery import LARGE, LONG, SMALL, Album, Strip, figure
from precedents.views.instance import Cell
from precedents.views.marks import WordShares

STRIPS = [
    Strip(Cell("case", "text"), [Cell("one", "text", True), Cell("two", "text", False)]),
    Strip(Cell("case", "text"), [Cell("one", "text", False)]),
]


def test_a_figure_has_room_for_the_longest_strip() -> None:
    drawn = figure(STRIPS, "heading")
    assert len(drawn.axes) == 6
    assert drawn.get_suptitle() == "heading"


def test_a_long_heading_stays_within_the_figure() -> None:
    drawn = figure(STRIPS, "a first line\n" + "many words " * 40)
    drawn.draw_without_rendering()
    place = drawn._suptitle.get_window_extent()
    assert 0 <= place.x0 < place.x1 <= drawn.bbox.width
    assert drawn.get_suptitle().replace("\n", " ") == ("a first line " + "many words " * 40).strip()


def test_a_tall_picture_has_a_taller_row() -> None:
    rows = [Strip(Cell("case", np.eye(4)), [Cell("one", np.ones((n, 4)), True)]) for n in (4, 8)]
    drawn = figure(rows)
    drawn.draw_without_rendering()
    heights = [axes.get_window_extent().height for axes in drawn.axes]
    assert heights[3] > 1.5 * heights[1]


def test_a_figure_marks_what_disagrees() -> None:
    titles = [axes.get_title() for axes in figure(STRIPS).axes]
    assert titles == ["case", "one", "two ✗", "case", "one ✗", ""]


def test_a_page_marks_what_disagrees() -> None:
    assert page(STRIPS).count("✗") == 2


def test_a_page_escapes_everything() -> None:
    bad = "<b>'\"&"
    html = page([Strip(Cell(bad, bad), [Cell(bad, {bad: bad}, True), Cell(bad, np.eye(2), True)])], bad)
    assert bad not in html
    assert "<b>" not in html


def test_a_page_without_a_heading_has_none() -> None:
    assert "heading" not in page(STRIPS)
    assert "<p class='heading' style='white-space:pre-line'>what\nelse</p>" in page(STRIPS, "what\nelse")


def test_pictures_stand_above_what_they_are_called_so_that_they_are_aligned() -> None:
    made = page([Strip(Cell("case", np.eye(2)), [Cell("one\nmore", np.eye(2), True)])])
    assert made.count("<figure") == made.count("<img") == 2
    assert all(made.find("<img", at) < made.find("<figcaption", at) for at in (0, made.rfind("<figure")))


def test_words_are_marked_by_their_shares_and_nothing_is_lost() -> None:
    words = WordShares((("sea", 0.5), ("wave", -0.25)), ordered=False)
    made = page([Strip(Cell("case", "text"), [Cell("one", "A sea, a wave & more", True, words)])])
    assert made.count("<mark") == 2
    assert "A sea, a wave &amp; more" in re.sub("<[^>]*>", "", made)


def test_a_document_is_a_page_with_an_escaped_title() -> None:
    page = document("<p>body</p>", "<b>title")
    assert page.startswith("<!doctype html>")
    assert "<title>&lt;b&gt;title</title>" in page
    assert "<p>body</p>" in page


def test_a_long_text_is_shown_in_two_parts_without_loss() -> None:
    text = "some words " * 100
    tile = Album().tile(Cell("", text))
    assert len(tile.text[0][0]) <= LONG
    assert tile.text[0][0] + tile.rest[0][0] == text


def test_a_table_row_shows_where_it_is_nearest_to_the_case_and_where_farthest() -> None:
    case, row = {"a": 1.0, "b": 5.0, "c": "x", "d": "y"}, {"a": 9.0, "b": 5.5, "c": "x", "d": "z"}
    tile = Album().tile(Cell("", row), case, {"a": 2.0, "b": 1.0})
    assert [str(column) for column in tile.values] == ["c x", "b 5.5 (+0.5 sd)"]
    assert [str(column) for column in tile.far] == ["a 9 (+4.0 sd)", "d z (case: y)"]
    assert tile.more == ()


def test_the_columns_that_are_neither_near_nor_far_are_there_on_demand() -> None:
    case, row = {f"c{i}": 0.0 for i in range(9)}, {f"c{i}": float(i) for i in range(9)}
    tile = Album().tile(Cell("", row), case, dict.fromkeys(case, 1.0))
    names = [[column.name for column in columns] for columns in (tile.values, tile.far, tile.more)]
    assert names == [["c0", "c1", "c2"], ["c8", "c7", "c6"], ["c3", "c4", "c5"]]


def test_an_album_keeps_a_picture_once_and_a_case_larger() -> None:
    album, photograph = Album(), np.arange(90000.0).reshape(300, 300) / 90000
    small, case = album.tile(Cell("", photograph)).picture, album.alone(Cell("", photograph)).picture
    assert album.tile(Cell("again", photograph)).picture is small
    assert list(album.pictures.values()) == [small, case]
    assert (small.name, case.name) == ("picture-0", "picture-1")
    assert SMALL >= small.width == small.height < case.width == case.height <= LARGE

import io

import pytest
from rich.console import Console

from precedents.views.grid import Entry, Grid, as_csv, number, signed, spread

GRID = Grid("Title", ["metric", "a\nb", "c"], [["x", Entry("1", ("under",), "failed"), "[b]2[/b]"]], ["note"])
BAD = "<b>|`*_[x](y)\u202e\n# z"


def printed(grid: Grid, width: int) -> str:
    console = Console(file=io.StringIO(), width=width, no_color=True)
    console.print(grid)
    return console.file.getvalue()


def test_markdown_has_the_title_the_rows_and_the_notes() -> None:
    assert GRID.markdown() == (
        "### Title\n\n| metric | a<br>b | c |\n| --- | --: | --: |\n"
        "| x | **1**<br><sub>under</sub> | \\[b\\]2\\[/b\\] |\n\nnote\n"
    )


def test_markdown_shows_any_text_as_it_is() -> None:
    text = Grid(BAD, [BAD], [[Entry(BAD, (BAD,))]], [BAD]).markdown()
    assert "<b>" not in text
    assert "&lt;b&gt;\\|\\`\\*\\_\\[x\\](y)⟨U+202E⟩<br># z" in text
    assert len(text.strip().splitlines()) == 7


def test_the_terminal_shows_any_text_as_it_is() -> None:
    assert "[b]2[/b]" in printed(GRID, 80)
    assert "⟨U+202E⟩" in printed(Grid("t", ["a", "b"], [["x", BAD]]), 80)


@pytest.mark.parametrize(("width", "tables"), [(80, 1), (12, 2)])
def test_columns_that_do_not_fit_come_below(width, tables) -> None:
    assert printed(GRID, width).count("metric") == tables


def test_numbers_have_a_real_minus_and_no_negative_zero() -> None:
    assert [number(-0.126), number(-0.001)] == ["−0.13", "0.00"]
    assert [signed(-0.001), signed(-0.2, 1)] == ["+0.00", "−0.2"]
    assert [spread(0.5, None), spread(0.5, 0.25)] == ["0.50", "0.50 ± 0.25"]


def test_csv_quotes_what_needs_it() -> None:
    assert as_csv([{"a": 'x,"y"', "b": None}]) == 'a,b\n"x,""y""",\n'
    assert as_csv([]) == ""

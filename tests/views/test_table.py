import io
import re

import pytest
from rich.console import Console
from rich.table import Table as RichTable

from precedents.views.table import Entry, Table, as_csv, decimal, mean_and_std, signed

TABLE = Table("Title", ["metric", "a\nb", "c"], [["x", Entry("1", ("under",), "failed"), "[b]2[/b]"]], ["note"])
BAD = "<b>|`*_[x](y)\u202e\n# z"


def printed(table: RichTable | Table, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, no_color=True)
    console.print(table)
    return console.file.getvalue()


def test_markdown_has_the_title_the_rows_and_the_notes() -> None:
    assert TABLE.markdown() == (
        "### Title\n\n| metric | a<br>b | c |\n| --- | --: | --: |\n"
        "| x | **1**<br><sub>under</sub> | \\[b\\]2\\[/b\\] |\n\nnote\n"
    )


def test_markdown_shows_any_text_as_it_is() -> None:
    text = Table(BAD, [BAD], [[Entry(BAD, (BAD,))]], [BAD]).markdown()
    assert "<b>" not in text
    assert "&lt;b&gt;\\|\\`\\*\\_\\[x\\](y)⟨U+202E⟩<br># z" in text
    assert len(text.strip().splitlines()) == 7


def test_the_terminal_shows_any_text_as_it_is() -> None:
    assert "[b]2[/b]" in printed(TABLE, 80)
    assert "[b]2[/b]" in printed(TABLE.compact(), 80)
    assert "⟨U+202E⟩" in printed(Table("t", ["a", "b"], [["x", BAD]]), 80)


@pytest.mark.parametrize(("width", "tables"), [(80, 1), (12, 2)])
def test_columns_that_do_not_fit_come_below(width, tables) -> None:
    assert printed(TABLE, width).count("metric") == tables


def test_numbers_have_a_real_minus_and_no_negative_zero() -> None:
    assert [decimal(-0.126), decimal(-0.001)] == ["−0.13", "0.00"]
    assert [signed(-0.001), signed(-0.2, 1)] == ["+0.00", "−0.2"]
    assert [mean_and_std(0.5, None), mean_and_std(0.5, 0.25)] == ["0.50", "0.50 ± 0.25"]


def test_csv_quotes_what_needs_it() -> None:
    assert as_csv([{"a": 'x,"y"', "b": None}]) == 'a,b\n"x,""y""",\n'
    assert as_csv([]) == ""


CELLS = {
    ("gc", "identical_class"): Entry("1.000", verdict="passed"),
    ("gc", "identical_class(k=10)"): Entry("0.800", verdict="weak"),
    ("cos_x", "identical_class"): Entry("0.300", verdict="failed"),
    ("cos_x", "identical_class(k=10)"): Entry("–"),
}
COMPACT = Table.of("metric", CELLS).compact()


def test_a_compact_table_prints_a_row_per_metric_with_marks() -> None:
    rows = ["".join(line.replace("│", "").split()) for line in printed(COMPACT).splitlines()]
    assert "gc1.0000.800~" in rows
    assert "cos_x0.300!–" in rows


def test_a_compact_table_explains_its_marks() -> None:
    assert "passed, weak (~), failed (!), undecided (?), not applicable or left out (–)" in " ".join(
        printed(COMPACT).split()
    )


def test_a_compact_table_is_printed_like_this() -> None:
    lines = [line.rstrip() for line in printed(COMPACT).splitlines()]
    assert lines[:6] == [
        "                 identical",
        "       identical     class",
        "metric     class      k=10",
        "──────────────────────────",
        "gc         1.000    0.800~",
        "cos_x     0.300!         –",
    ]


def test_cells_by_name_are_the_rows_of_any_table() -> None:
    assert Table.of("metric", CELLS).markdown().splitlines()[2:] == [
        "| metric | identical\\_class | identical\\_class(k=10) |",
        "| --- | --: | --: |",
        "| gc | 1.000 | 0.800 |",
        "| cos\\_x | **0.300** | – |",
    ]


def test_a_verdict_has_its_colour_in_both_layouts() -> None:
    for table in (COMPACT, Table.of("metric", CELLS)):
        console = Console(file=io.StringIO(), width=80, force_terminal=True, color_system="standard")
        console.print(table)
        text = console.file.getvalue()
        for code, value in ((32, "1.000"), (33, "0.800"), (31, "0.300")):
            assert re.search(rf"\x1b\[{code}m *{value}", text)

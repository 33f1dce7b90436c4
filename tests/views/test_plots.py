from xml.etree import ElementTree

import pytest
from drawing import drawn_at, texts

from precedents.views import plots
from precedents.views.figures import COLUMN, PAGE
from precedents.views.pages import picture
from precedents.views.panels import NOTHING
from precedents.views.plots import Bar

METRICS = ["cos_grad", "dot_if", "cosine:gradient/fisher(damping=0.01)", "$x^2$ <b>"]
LAWS = ["identical_class", "identical_subclass(k=10)"]
PAIRS = [(metric, law) for metric in METRICS for law in LAWS]
LINE = [-3.0 + 0.2 * i for i in range(21)]
POINTS = ([[i, i % 3] for i in range(9)], ["$a$", "b", "c"] * 3, ["0", "1", "1"] * 3)

DRAWN = {
    "bars": lambda width: plots.bars(dict.fromkeys(PAIRS, Bar(0.5, 0.1, 0.4, 0.1)), width=width),
    "bars, bare": lambda width: plots.bars({PAIRS[0]: Bar(1.0), PAIRS[3]: Bar(None, None, 0.3)}, width=width),
    "bars, none": lambda width: plots.bars({}, width=width),
    "dots": lambda width: plots.dots({pair: {"a": 0.1, "$b$": -0.9} for pair in PAIRS}, "label", width=width),
    "dots, log": lambda width: plots.dots({PAIRS[0]: {"a": 1e-9, "b": 1e9, "c": 0.0}}, log=True, width=width),
    "dots, no numbers": lambda width: plots.dots({PAIRS[0]: {"a": float("nan")}}, width=width),
    "dots, none": lambda width: plots.dots({}, width=width),
    "strips": lambda width: plots.strips(dict.fromkeys(PAIRS, LINE), "norm", powers=True, width=width),
    "strips, far": lambda width: plots.strips({PAIRS[0]: [-300.0, 0, 300]}, powers=True, width=width),
    "strips, one value": lambda width: plots.strips({PAIRS[0]: [2.0] * 21}, powers=True, width=width),
    "strips, cosines": lambda width: plots.strips({PAIRS[0]: LINE, PAIRS[2]: []}, "cosine", width=width),
    "strips, none": lambda width: plots.strips({}, width=width),
    "scatters": lambda width: plots.scatters({f"setting {i}": POINTS for i in range(4)}, width=width),
    "scatters, none": lambda width: plots.scatters({}, width=width),
    "curves": lambda width: plots.curves(
        {m: {"a": [(1e-10, 0.1), (1.0, 0.9)], "$b$": [(0.1, 0.5)]} for m in METRICS},
        "damping",
        levels={METRICS[0]: {"a": 0.3}},
        width=width,
    ),
    "curves, none": lambda width: plots.curves({}, width=width),
}


@pytest.mark.parametrize("width", [COLUMN, PAGE])
@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_draws_at_its_width_without_warning_or_change_of_settings(name, width) -> None:
    drawn_at(width, DRAWN[name])


@pytest.mark.parametrize("name", [name for name in DRAWN if name.endswith("none")])
def test_without_values_a_figure_says_so(name) -> None:
    assert NOTHING in texts(DRAWN[name](PAGE))


@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_is_a_file_in_light_and_dark_whose_text_is_text(name) -> None:
    root = ElementTree.fromstring(picture(DRAWN[name](PAGE), "name"))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    style = root[0].text
    assert "--ink: #1f2429" in style
    assert "prefers-color-scheme: dark" in style
    shown = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert shown == [NOTHING] if name.endswith("none") else len(shown) > 2
    assert float(root.attrib["width"].removesuffix("pt")) > 100


def test_no_two_series_look_the_same() -> None:
    drawn = plots.dots({PAIRS[0]: {f"setting {i}": 0.5 for i in range(13)}})
    marks = [(line.get_marker(), line.get_color()) for line in drawn.axes[0].lines]
    assert len(set(marks)) == len(marks) == 13


def test_what_is_published_is_a_diamond_at_its_value() -> None:
    axes = plots.bars({PAIRS[0]: Bar(0.5, None, 0.75)}).axes[0]
    assert [float(line.get_xdata()[0]) for line in axes.lines if line.get_marker() == "D"] == [0.75]


def test_the_median_is_where_the_mark_is() -> None:
    axes = plots.strips({PAIRS[0]: [0.0, 0.0, 0.25, 1.0, 1.0]}).axes[0]
    assert [float(line.get_xdata()[0]) for line in axes.lines if line.get_marker() == "|"] == [0.25]


def test_values_that_are_no_numbers_are_left_out() -> None:
    assert "–" in texts(DRAWN["dots, no numbers"](PAGE))

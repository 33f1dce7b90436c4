from io import BytesIO

import numpy as np
import pytest
from drawing import drawn_at, texts
from hypothesis import given
from hypothesis import strategies as st

from precedents.views import figures
from precedents.views.figures import COLUMN, PAGE
from precedents.views.panels import NOTHING, broken

METRICS = ["cos_grad", "dot_if", "cosine:gradient/fisher(damping=0.01)", "$x^2$ <b>"]
LAWS = ["identical_class", "identical_class(k=10)", "identical_subclass(k=10)"]
RANDOM = np.random.default_rng(0)
PAIRS = [(metric, law) for metric in METRICS for law in LAWS]
VERDICTS = dict(zip(PAIRS, ["passed", "weak", "failed", "not applicable"] * 3, strict=True))
HUGE = [1e-300, 1e-5, 0.0, 3.0, 1e300]


def same(value: float) -> dict:
    return dict.fromkeys(PAIRS, [value] * 9)


DRAWN = {
    "boxes": lambda width: figures.boxes(
        {pair: RANDOM.uniform(-1, 1, 50).tolist() for pair in PAIRS}, VERDICTS, null=0.1, width=width
    ),
    "boxes, all equal": lambda width: figures.boxes(same(0.0), width=width),
    "boxes, one value": lambda width: figures.boxes({PAIRS[0]: [0.3]}, width=width),
    "boxes, far outside": lambda width: figures.boxes({PAIRS[0]: [-1e9, 1e9]}, width=width),
    "boxes, not for all": lambda width: figures.boxes(
        {PAIRS[0]: [0.1], PAIRS[4]: [0.2], PAIRS[5]: []}, width=width
    ),
    "boxes, none": lambda width: figures.boxes({}, null=0.1, width=width),
    "rates": lambda width: figures.rates(
        dict.fromkeys(PAIRS, (0.5, 0.4, 0.6)), dict.fromkeys(PAIRS, 0.1), VERDICTS, width=width
    ),
    "rates, one": lambda width: figures.rates({PAIRS[0]: (1.0, 1.0, 1.0)}, width=width),
    "rates, not for all": lambda width: figures.rates(
        {PAIRS[0]: (0, 0, 0.1), PAIRS[4]: (1, 1, 1)}, width=width
    ),
    "rates, none": lambda width: figures.rates({}, width=width),
    "norms": lambda width: figures.norms(
        {m: (RANDOM.lognormal(size=99).tolist(), RANDOM.lognormal(size=9).tolist()) for m in METRICS},
        width=width,
    ),
    "norms, huge": lambda width: figures.norms({"m": (HUGE, HUGE[1:2])}, width=width),
    "norms, all equal": lambda width: figures.norms({"m": ([2.0] * 9, [2.0])}, width=width),
    "norms, all zero": lambda width: figures.norms({"m": ([0.0] * 9, [0.0])}, width=width),
    "norms, no selected": lambda width: figures.norms({"m": ([1.0, 2.0], [])}, width=width),
    "norms, none": lambda width: figures.norms({}, width=width),
    "agreement": lambda width: figures.agreement(
        {(a, b): RANDOM.uniform(-1, 1) for a in METRICS for b in METRICS}, "overlap $10$", width=width
    ),
    "agreement, eighteen": lambda width: figures.agreement(
        {(f"m{a}", f"m{b}"): -1 + (a + b) / 17 for a in range(18) for b in range(a, 18)}, width=width
    ),
    "agreement, one": lambda width: figures.agreement({("m", "m"): 1.0}, width=width),
    "agreement, none": lambda width: figures.agreement({}, width=width),
    "hubs": lambda width: figures.hubs({m: [0.3, 0.2, 0.1, 0.1, 0.1, 0.1] for m in METRICS}, width=width),
    "hubs, one": lambda width: figures.hubs({"m": []}, width=width),
    "hubs, none": lambda width: figures.hubs({}, width=width),
    "label agreement": lambda width: figures.label_agreement(dict.fromkeys(METRICS, 1.0), width=width),
    "label agreement, none": lambda width: figures.label_agreement({}, width=width),
    "costs": lambda width: figures.costs(dict(zip(METRICS, HUGE[1:], strict=True)), width=width),
    "costs, all zero": lambda width: figures.costs(dict.fromkeys(METRICS, 0.0), width=width),
    "costs, none": lambda width: figures.costs({}, width=width),
}


@pytest.mark.parametrize("width", [COLUMN, PAGE])
@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_draws_at_its_width_without_warning_or_change_of_settings(name, width) -> None:
    drawn_at(width, DRAWN[name])


@pytest.mark.parametrize("width", [COLUMN, PAGE])
@pytest.mark.parametrize("name", DRAWN)
def test_no_text_is_mathematics(name, width) -> None:
    from matplotlib.text import Text

    drawn = DRAWN[name](width)
    drawn.draw_without_rendering()
    assert not [t.get_text() for t in drawn.findobj(Text) if "$" in t.get_text() and t.get_parse_math()]


@pytest.mark.parametrize("name", DRAWN)
def test_letters_are_legible_and_inside(name) -> None:
    from matplotlib.text import Text

    drawn = DRAWN[name](COLUMN)
    drawn.draw_without_rendering()
    assert min(text.get_fontsize() for text in drawn.findobj(Text) if text.get_text().strip()) >= 5.5
    around = drawn.get_tightbbox()
    assert around.x0 >= -0.02
    assert around.x1 <= COLUMN + 0.02


@pytest.mark.parametrize("name", [name for name in DRAWN if name.endswith("none")])
def test_without_values_a_figure_says_so(name) -> None:
    assert NOTHING in texts(DRAWN[name](PAGE))


def test_what_does_not_apply_has_a_dash() -> None:
    assert texts(DRAWN["rates, not for all"](PAGE)).count("–") == 2


def test_a_heat_map_has_numbers_where_there_is_room() -> None:
    pairs = {("a", "a"): 1.0, ("a", "b"): -0.314, ("b", "b"): -0.001}
    assert {"1", "–.31", ".00"} <= set(texts(figures.agreement(pairs)))


def test_a_pair_of_a_heat_map_serves_both_ways() -> None:
    assert texts(figures.agreement({("a", "b"): 0.25})).count(".25") == 2


def test_the_mean_is_where_the_mark_is() -> None:
    drawn = figures.boxes({PAIRS[0]: [0.0, 0.1, 0.8]}, {PAIRS[0]: "weak"})
    marks = [line for line in drawn.axes[0].lines if line.get_marker() == "D"]
    assert [float(line.get_xdata()[0]) for line in marks] == [pytest.approx(0.3)]


def test_the_null_interval_is_drawn_around_zero() -> None:
    band = figures.boxes({PAIRS[0]: [0.5]}, null=0.2).axes[0].patches[0]
    assert (band.get_x(), band.get_width()) == pytest.approx((-0.2, 0.4))


def test_values_that_are_no_numbers_are_left_out() -> None:
    drawn = figures.boxes({PAIRS[0]: [float("nan"), 0.5]})
    assert [float(line.get_xdata()[0]) for line in drawn.axes[0].lines if line.get_marker() == "o"] == [0.5]


@given(st.text(st.sampled_from("ab:/(,)_ =k"), max_size=40), st.integers(20, 30))
def test_a_broken_name_keeps_its_letters(name, most) -> None:
    lines = broken(name, most).split("\n")
    assert len(lines) <= 3
    assert max(map(len, lines)) <= most
    if "…" not in "".join(lines):
        assert "".join("".join(lines).split()) == "".join(name.split())


def test_a_very_long_name_keeps_its_beginning_and_its_end() -> None:
    assert broken("a_" * 50 + "end", 10) == "a_a_a_a_a_\na_a_a_a_a…\nend"


@pytest.mark.parametrize("width", [COLUMN, PAGE])
def test_very_long_names_leave_room_for_the_figure(width) -> None:
    name = "word " * 60
    figures.boxes({(name, f"{name}{i}"): [0.1] for i in range(5)}, width=width).savefig(BytesIO())
    figures.agreement({(name, "other"): 0.5}, width=width).savefig(BytesIO())


def test_a_name_breaks_where_it_may() -> None:
    assert broken("model_randomization(label=shared)", 17) == "model_\nrandomization\n(label=shared)"
    assert broken("identical_class(k=10)", 15) == "identical_class\n(k=10)"


@pytest.mark.parametrize("most", [3e-7, 0.004, 0.8, 1234.0, 2.5e6])
def test_seconds_are_written_as_numbers_without_an_offset(most) -> None:
    axes = figures.costs({"a": most, "b": most / 3}).axes[0]
    axes.figure.canvas.draw()
    ticks = [tick.get_text() for tick in axes.get_xticklabels()]
    assert axes.xaxis.get_offset_text().get_text() == ""
    shown = [float(text.replace(",", "")) for text in ticks]
    assert shown == pytest.approx(list(axes.get_xticks()), rel=0.01, abs=1e-12)
    assert most < 1e-4 or not any("e" in text for text in ticks)

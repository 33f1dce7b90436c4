import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from precedents.reproduction.comparison import ROUNDING, compare, deviations, variants
from precedents.reproduction.comparison_tables import alone, brief, grids, sentences
from precedents.reproduction.published import PublishedValue
from precedents.reproduction.rank_agreement import DRAWS, RankedMetric, order, spearman
from precedents.reproduction.results import RepeatedValue, read_results
from reproduction import recorded

SETTING = "mnist/cnn"
MANY = 10


def estimate(mean: float, std: float = 0.0, repeats: int = MANY, cases: float = 500) -> RepeatedValue:
    """Two halves around the mean, with this sample deviation."""
    half = std * math.sqrt((repeats - 1) / repeats)
    return RepeatedValue(tuple(mean + half * (1 if i % 2 else -1) for i in range(repeats)), cases)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return read_results(recorded.write(tmp_path_factory.mktemp("records")))


@pytest.fixture(scope="module")
def comparison(found):
    return compare(found)


def cell(comparison, metric, criterion, setting=SETTING):
    return next(
        c for c in comparison.cells if (c.setting, c.criterion, c.metric) == (setting, criterion, metric)
    )


def compared(folder, *lines, setting=SETTING):
    recorded.written(folder, setting, [recorded.header(setting), *lines])
    return compare(read_results(folder))


def test_a_difference_is_in_combined_deviations() -> None:
    found = deviations(estimate(0.5, 0.03), PublishedValue(0.3, 0.04), rate=False)
    assert found == pytest.approx(0.2 / math.sqrt(0.03**2 + 0.04**2 + ROUNDING**2))


def test_deviations_are_not_smaller_than_what_two_digits_round_off() -> None:
    found = deviations(estimate(0.31), PublishedValue(0.3, 0.0), rate=False)
    assert found == pytest.approx(0.01 / (ROUNDING * math.sqrt(3)))


def test_a_rate_spreads_as_far_as_its_cases_let_it() -> None:
    few, many = (deviations(estimate(0.6, cases=n), PublishedValue(0.5, 0.0), rate=True) for n in (50, 500))
    assert few == pytest.approx(0.1 / math.hypot(math.sqrt(0.6 * 0.4 / 50), math.sqrt(0.25 / 500)), rel=0.02)
    assert few < many


@pytest.mark.parametrize("repeats", [1, 2, 4])
def test_few_repeats_spread_as_far_as_the_published_ones(repeats) -> None:
    few = RepeatedValue((0.5,) * repeats, 500)
    assert deviations(few, PublishedValue(0.3, 0.1), rate=False) == pytest.approx(
        0.2 / math.hypot(0.1, 0.1, ROUNDING)
    )


def test_a_published_deviation_that_cannot_be_is_replaced_by_ours() -> None:
    known, unknown = (
        deviations(estimate(0.5, 0.03), PublishedValue(0.3, 0.0), rate=False, spread=spread)
        for spread in (True, False)
    )
    assert known == pytest.approx(0.2 / math.hypot(0.03, ROUNDING, ROUNDING))
    assert unknown == pytest.approx(0.2 / math.hypot(0.03, 0.03, ROUNDING))


def test_all_right_agrees_with_all_right() -> None:
    assert abs(deviations(estimate(0.998), PublishedValue(1.0, 0.0), rate=True)) < 2


@pytest.mark.parametrize(
    ("off", "status"), [(0.1999, "agrees"), (0.2001, "open"), (-0.1999, "agrees"), (-0.2001, "open")]
)
def test_two_combined_deviations_are_the_boundary(off, status, tmp_path) -> None:
    printed = 0.24, 0.0  # cos_last by randomization
    spread = math.sqrt(0.1**2 - 2 * ROUNDING**2)
    values = estimate(printed[0] + off, spread).values
    lines = [recorded.outcome(i, "cos_last", "model_randomization", v) for i, v in enumerate(values)]
    found = cell(compared(tmp_path, *lines), "cos_last", "model_randomization")
    assert (found.cell.published.mean, found.cell.published.std) == printed
    assert found.deviations == pytest.approx(off / 0.1)
    assert found.status == status


def test_cells_as_published_agree(comparison) -> None:
    assert cell(comparison, "cos_grad", "identical_class").status == "agrees"


def test_a_variant_that_gives_the_published_value_is_the_cause(comparison) -> None:
    found = cell(comparison, "dot_if", "identical_class")
    assert found.status == "differs"
    assert found.named(found.cause) == "dot:gradient/hessian(damping=1e-06)"
    record = found.record()
    assert (record["mean"], record["published mean"], record["cause mean"]) == (0.29, 0.09, 0.09)


def test_a_difference_without_such_a_variant_is_open(tmp_path) -> None:
    lines = [recorded.outcome(i, "cos_grad", "identical_class", 0.5) for i in range(5)]
    lines += [recorded.outcome(i, "dot_grad", "identical_class", 0.99) for i in range(5)]
    found = cell(compared(tmp_path, *lines), "cos_grad", "identical_class")
    assert (found.status, found.cause, found.variants) == ("open", None, [])


def test_another_label_choice_can_be_the_cause(tmp_path) -> None:
    printed = 0.24
    lines = [recorded.outcome(i, "cos_last", "model_randomization", 0.6) for i in range(5)]
    lines += [recorded.outcome(i, "cos_last", recorded.SHARED, printed) for i in range(5)]
    found = cell(compared(tmp_path, *lines), "cos_last", "model_randomization")
    assert found.named(found.cause) == recorded.SHARED


def test_cells_without_ours_are_missing(comparison, tmp_path) -> None:
    some = compared(tmp_path, recorded.outcome(0, "cos_grad", "identical_class", 0.99))
    assert some.counts() == {"agrees": 1, "differs": 0, "open": 0, "missing": 89}
    assert comparison.counts()["missing"] == 0


def test_variants_are_of_the_same_family_and_criterion(found) -> None:
    mnist = found[0]
    assert {criterion for _, criterion in variants(mnist, "dot_if", "identical_class")} == {"identical_class"}
    names = {name for name, _ in variants(mnist, "cos_fisher", "identical_class(k=10)")}
    assert names == {"cosine:gradient/fisher(kind=published, damping=1e-10)"}
    assert list(variants(mnist, "cos_x", "identical_class")) == []
    assert list(variants(mnist, "cos_x", "model_randomization")) == [("cos_x", recorded.SHARED)]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=18))
def test_the_rank_correlation_with_ties_is_scipys(pairs) -> None:
    first, second = (list(map(float, each)) for each in zip(*pairs, strict=True))
    assume(len(set(first)) > 1 and len(set(second)) > 1)
    assert spearman(first, second) == pytest.approx(spearmanr(first, second).statistic)


def test_a_column_without_an_order_has_no_rank_correlation() -> None:
    assert spearman([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]) is None


def test_the_order_of_a_column_leaves_the_fisher_rows_out(comparison, tmp_path) -> None:
    order = next(o for o in comparison.orders if (o.setting, o.criterion) == (SETTING, "identical_class"))
    assert order.metrics == 15
    assert 0.8 <= order.correlation < 1
    assert order.reproduced == pytest.approx(1.0)


def test_an_order_that_the_variants_explain_differs(tmp_path) -> None:
    lines = []
    for i in range(5):
        for metric, ours in {"cos_grad": 0.99, "dot_grad": 0.30, "dot_if": 1.0, "cos_x": 0.94}.items():
            lines.append(recorded.outcome(i, metric, "identical_class", ours))
        lines.append(recorded.outcome(i, "dot:gradient/hessian(damping=1e-06)", "identical_class", 0.09))
    (order,) = compared(tmp_path, *lines).orders
    assert order.correlation == pytest.approx(spearmanr([4, 2, 1, 3], [3, 1, 4, 2]).statistic)
    assert (order.status, order.reproduced, order.moved[0]) == ("differs", 1.0, "dot_if")


def test_a_choice_that_explains_a_cell_is_made_in_the_whole_column(tmp_path) -> None:
    """The published order: cos_grad, cos_x, l2_x, dot_x. Ours has dot_x before the other two."""
    lines = []
    for i in range(5):
        for metric, ours, other in (
            ("cos_grad", 0.99, None),
            ("cos_x", 0.50, 0.48),
            ("l2_x", 0.49, 0.40),
            ("dot_x", 0.60, 0.28),
        ):
            lines.append(recorded.outcome(i, metric, "identical_class", ours))
            if other is not None:
                lines.append(recorded.outcome(i, metric, "identical_class(words=all)", other))
    found = compared(tmp_path, *lines, setting="agnews/bilstm")
    assert {each.metric: each.status for each in found.cells if each.cell.ours}["dot_x"] == "differs"
    (order,) = found.orders
    assert (order.correlation, order.reproduced) == (pytest.approx(0.4), pytest.approx(1.0))
    assert "1.00 with the variants" in order.reasons


def test_a_damping_that_explains_a_cell_is_chosen_for_all_metrics_of_the_matrix(tmp_path) -> None:
    """The published order: cos_grad, l2_grad, cos_if, l2_if, dot_grad. Ours has l2_if first."""
    lines, criterion = [], "identical_subclass(k=10)"
    for i in range(5):
        for metric, ours in (("cos_grad", 0.37), ("cos_if", 0.27), ("l2_grad", 0.24), ("dot_grad", 0.1)):
            lines.append(recorded.outcome(i, metric, criterion, ours))
        lines.append(recorded.outcome(i, "l2_if", criterion, 0.45))
        for similarity, ours in (("l2", 0.11), ("cosine", 0.2)):
            form = f"{similarity}:gradient/hessian(damping=1e-10)"
            lines.append(recorded.outcome(i, form, criterion, ours))
    found = compared(tmp_path, *lines, setting="trec/bilstm")
    statuses = {each.metric: each.status for each in found.cells if each.cell.ours}
    assert (statuses["l2_if"], statuses["cos_if"]) == ("differs", "agrees")
    (order,) = found.orders
    assert order.correlation < 0.8
    assert order.reproduced == pytest.approx(1.0)


def test_a_variant_that_is_near_is_named_where_grad_cos_is_not(tmp_path) -> None:
    lines = []
    for criterion, ours in (("identical_class", 0.87), ("identical_class(rescaled=8)", 0.98)):
        lines.append(recorded.outcome(0, "cos_grad", criterion, ours))
    found = compared(tmp_path, *lines, setting="cifar10/mobilenetv2")
    (sentence,) = [each for each in sentences(found) if "GC" in each]
    assert sentence.endswith("not in: cifar10/mobilenetv2 −0.120 (−0.010 by identical_class(rescaled=8)).")


def test_an_order_within_the_spread_is_told_by_drawing_it_again() -> None:
    theirs = [0.0, 0.01, 0.02, 0.01, 0.02]
    found = column([0.02, 0.01, 0.0, 0.02, 0.01], theirs, differing=[0], deviation=0.01)
    assert found.drawn < 0.8
    (reason,) = found.reasons
    assert reason.startswith("within the spread")
    assert column([0.9, 0.5, 0.1], [0.1, 0.5, 0.9], differing=[0, 1, 2]).drawn == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("criterion", "least", "theirs"),
    [
        ("identical_class", 0.0, [0.0, 0.02, 0.5, 0.98, 1.0]),
        ("model_randomization", -1.0, [-1.0, -0.98, 0.5, 0.98, 1.0]),
        ("model_randomization", -1.0, [-0.2, 0.0, 0.05, 0.1, 0.3]),
    ],
)
def test_what_is_drawn_again_is_a_rate_or_a_correlation(criterion, least, theirs) -> None:
    """Draws beyond what such a number can be are at its bound, where they tie."""

    def agreement(drawn: np.ndarray) -> float:
        return float(np.mean([spearmanr(each.round(2), theirs).statistic for each in drawn]))

    noise = np.random.default_rng(0).standard_normal((DRAWS, len(theirs)))
    drawn = np.array(theirs) + 0.1 * noise
    found = column(theirs[::-1], theirs, deviation=0.1, criterion=criterion).drawn
    assert found == pytest.approx(agreement(drawn.clip(least, 1)))


def column(ours, theirs, differing=(), spread=True, deviation=0.001, criterion="identical_class"):
    """A column of which each metric has the same values in two repeats, or those that are given."""
    rows = []
    for i, (own, published) in enumerate(zip(ours, theirs, strict=True)):
        estimate = RepeatedValue(own if isinstance(own, tuple) else (own, own))
        rows.append(
            RankedMetric(f"metric {i}", estimate, published, deviation, estimate.mean, i not in differing)
        )
    return order("somewhere", criterion, rows, spread)


def test_an_order_without_metrics_that_differ_names_them() -> None:
    ours, theirs = [0.9, 0.1, 0.2, 0.3, 0.4], [0.0, 0.1, 0.2, 0.3, 0.4]
    found = column(ours, theirs, differing=[0])
    assert (found.status, found.without) == ("differs", (["metric 0"], pytest.approx(1.0)))
    assert list(found.reasons) == ["1.00 without metric 0"]
    assert column(ours, theirs, differing=[1]).status == "open"
    assert not any(column(theirs, theirs, differing=[0]).reasons)


def test_an_order_whose_cells_all_agree_is_within_their_spread() -> None:
    found = column([0.11, 0.1, 0.13, 0.12], [0.1, 0.11, 0.12, 0.13])
    assert (found.status, *found.reasons) == ("differs", "every cell agrees")


UNSTEADY = [(0.0, 0.42), (0.1, 0.3), (0.2, 0.2), (0.3, 0.12), (0.4, 0.0)]
THEIRS = [0.1, 0.5, 0.4, 0.2, 0.3]


def test_the_order_of_a_single_run_is_held_against_single_runs() -> None:
    assert column(UNSTEADY, THEIRS, differing=[1]).status == "open"
    found = column(UNSTEADY, THEIRS, differing=[1], spread=False)
    assert (found.status, found.without) == ("differs", None)
    best, own = found.single
    assert best == pytest.approx(max(spearman([each[i] for each in UNSTEADY], THEIRS) for i in (0, 1)))
    assert own < 0.8
    assert list(found.reasons) == [f"one run published: ours have {own:.2f} with our mean"]
    near = [(published, ours[1]) for ours, published in zip(UNSTEADY, THEIRS, strict=True)]
    assert list(column(near, THEIRS, differing=[1], spread=False).reasons) == [
        "one run published: one of ours has 1.00"
    ]
    steady = [sum(each) / 2 for each in UNSTEADY]
    assert column(steady, THEIRS, differing=[1], spread=False).status == "open"


def test_grad_cos_is_held_to_its_target(comparison, tmp_path) -> None:
    assert set(comparison.closeness()) == {SETTING, "vehicle/logreg"}
    assert "GC is within 0.03 of the published value in 2 of 2 settings." in " ".join(sentences(comparison))
    far = compared(tmp_path, recorded.outcome(0, "cos_grad", "identical_class", 0.95))
    assert "0 of 1 setting; not in: mnist/cnn −0.040." in " ".join(sentences(far))


def texts(grid) -> str:
    return "\n".join(" ".join([e.text, *e.under]) for row in grid.entries for e in row)


def test_the_fisher_rows_have_the_published_codes_matrix_beside_the_correct_one(comparison) -> None:
    (grid,) = [grid for grid in grids(comparison) if grid.title.startswith("Fisher")]
    assert len(grid.rows) == 6
    assert texts(grid).count("code's 0.25 ± 0.00") == 30
    assert "0.10 ± 0.00 ✓ published 0.10 ± 0.01" in texts(grid)


def test_the_randomization_has_both_labels_and_both_intervals(comparison) -> None:
    (grid,) = [grid for grid in grids(comparison) if grid.title.startswith("Randomization")]
    row = next(row for row in grid.entries if row[1].text == "cos_fisher")
    assert [entry.text for entry in row[2:]] == [
        "0.00 ± 0.02",
        "0.00 ± 0.00 ✓",
        "0.30 ± 0.00",
        "±0.030",
        "±0.088",
    ]
    assert [entry.under for entry in row[5:]] == [("own",), ("own",)]


def test_settings_without_published_numbers_are_shown_alone(found, comparison) -> None:
    assert [each.setting for each in comparison.without] == ["digits/logreg"]
    assert "Without published numbers, ours alone: digits/logreg." in sentences(comparison)
    (digits,) = [each for each in found if each.setting == "digits/logreg"]
    only = compare([digits])
    assert only.cells == []
    (grid,) = brief(only)
    assert grid.title == alone(digits).title == "digits/logreg: ours alone"
    assert len(grid.rows) == len(digits.tried())


def test_every_status_and_value_is_in_the_printed_counts(comparison) -> None:
    counts = comparison.counts()
    assert sum(counts.values()) == len(comparison.cells) == 150
    assert sum(sum(comparison.counts(setting=s).values()) for s in (SETTING, "vehicle/logreg")) == 150
    assert np.isfinite([each.deviations for each in comparison.cells]).all()

import json
import math

import pytest

from precedents import FormatError, InputError
from precedents.reproduction.results import costs, read_results
from reproduction import recorded

SETTING = "mnist/cnn"


def read(folder, *lines, setting=SETTING):
    recorded.written(folder, setting, [recorded.header(setting), *lines])
    (found,) = read_results(folder)
    return found


def test_a_cell_is_the_mean_and_the_sample_deviation_over_repeats(tmp_path) -> None:
    values = {0: 0.5, 2: 0.7, 1: 0.9}
    found = read(tmp_path, *(recorded.outcome(i, "cos_grad", "identical_class", v) for i, v in values.items()))
    cell = found.outcome("cos_grad", "identical_class")
    assert cell.values == (0.5, 0.9, 0.7)
    assert (cell.mean, cell.std) == pytest.approx((0.7, 0.2))
    assert (cell.repeats, cell.cases, cell.chance) == (3, 500, pytest.approx(0.1))


def test_one_repeat_has_no_deviation(tmp_path) -> None:
    found = read(tmp_path, recorded.outcome(4, "cos_grad", "identical_class", 0.5))
    assert found.outcome("cos_grad", "identical_class").std is None


def test_a_missing_outcome_has_its_reason(tmp_path) -> None:
    piece = ["outcome", "dot_if", "identical_class"]
    found = read(tmp_path, recorded.record(0, piece, {"missing": "too large"}))
    assert found.outcome("dot_if", "identical_class") is None
    assert found.missing("dot_if", "identical_class") == "too large"
    assert found.missing("cos_grad", "identical_class") == ""


def test_repeats_with_a_number_count_where_others_have_none(tmp_path) -> None:
    piece = ["outcome", "dot_if", "identical_class"]
    found = read(
        tmp_path,
        recorded.record(0, piece, {"missing": "too large"}),
        recorded.outcome(1, "dot_if", "identical_class", 0.25),
    )
    assert found.outcome("dot_if", "identical_class").values == (0.25,)


def test_a_line_that_is_still_being_written_is_left_out(tmp_path) -> None:
    lines = [recorded.header(SETTING), recorded.outcome(0, "cos_grad", "identical_class", 0.5)]
    file = recorded.written(tmp_path, SETTING, lines)
    file.write_text(file.read_text() + json.dumps(recorded.outcome(1, "cos_grad", "identical_class", 0.7)))
    (found,) = read_results(tmp_path)
    assert found.repeats == 1


def test_a_damaged_line_is_refused_with_its_place(tmp_path) -> None:
    lines = [recorded.header(SETTING), recorded.outcome(0, "cos_grad", "identical_class", 0.5)]
    file = recorded.written(tmp_path, SETTING, lines)
    file.write_text(f'{file.read_text()}{{"repeat": 0, "value": 1}}\n')
    with pytest.raises(FormatError, match=r"Line 3 of .*mnist-cnn\.jsonl is damaged"):
        read_results(tmp_path)


@pytest.mark.parametrize(
    "value",
    [
        3,
        None,
        [],
        {"mean": 0.5},
        {"mean": 1.5, "count": 5},
        {"mean": -0.5, "count": 5},
        {"mean": "0.5", "count": 5},
        {"mean": 0.5, "count": 0},
    ],
)
def test_what_is_no_outcome_is_refused_by_its_name(value, tmp_path) -> None:
    with pytest.raises(FormatError, match=r"mnist-cnn\.jsonl: .* repeat 7, outcome, cos_grad, identical_class"):
        read(tmp_path, recorded.record(7, ["outcome", "cos_grad", "identical_class"], value))


def test_what_json_has_no_number_for_is_a_damage(tmp_path) -> None:
    with pytest.raises(FormatError, match=r"Line 2 of .*mnist-cnn\.jsonl is damaged"):
        read(
            tmp_path,
            recorded.record(7, ["outcome", "cos_grad", "identical_class"], {"mean": math.nan, "count": 5}),
        )


def test_a_correlation_may_be_negative(tmp_path) -> None:
    found = read(tmp_path, recorded.outcome(0, "cos_grad", "model_randomization", -0.5))
    assert found.outcome("cos_grad", "model_randomization").mean == -0.5


def test_a_folder_that_is_not_there_is_an_error_with_advice(tmp_path) -> None:
    with pytest.raises(InputError, match="precedents reproduction run"):
        read_results(tmp_path / "none")
    with pytest.raises(InputError, match="has no records"):
        read_results(tmp_path)


def test_settings_come_in_the_papers_order_and_can_be_chosen(tmp_path) -> None:
    recorded.write(tmp_path, ("digits/logreg", "vehicle/logreg", "mnist/cnn", "breast_cancer/mlp"))
    names = [each.setting for each in read_results(tmp_path)]
    assert names == ["mnist/cnn", "vehicle/logreg", "breast_cancer/mlp", "digits/logreg"]
    assert [each.setting for each in read_results(tmp_path, ["digits/logreg"])] == ["digits/logreg"]
    with pytest.raises(InputError, match="Did you mean 'mnist/cnn'"):
        read_results(tmp_path, ["mnist/cn"])


def test_costs_are_read(tmp_path) -> None:
    assert costs(tmp_path) == []
    recorded.write(tmp_path, ("mnist/cnn",))
    third = costs(tmp_path)[2]
    assert (third.piece, third.seconds) == (("outcome", "l2_all", "identical_class"), 0.04)

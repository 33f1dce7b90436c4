from collections import Counter

import pytest

from precedents.metrics.names import FORMS
from precedents.reproduction.published import CRITERIA, published, published_models, without_spread
from precedents.reproduction.tables import overview


def test_all_numbers_of_the_five_tables_are_there() -> None:
    cells = published()
    assert len(cells) == 966
    assert {criterion for criterion, _, _ in cells} == set(CRITERIA.values())
    assert {metric for _, _, metric in cells} == set(FORMS)
    assert len({setting for _, setting, _ in cells}) == 13
    assert all(-1 <= cell.mean <= 1 and 0 <= cell.std < 1 for cell in cells.values())


def test_six_columns_have_no_spread_at_all() -> None:
    trec = {(f"identical_class{k}", f"trec/{model}") for k in ("", "(k=10)") for model in ("logreg", "bilstm")}
    vehicle = {("identical_subclass(k=10)", f"vehicle/{model}") for model in ("logreg", "mlp")}
    assert without_spread() == trec | vehicle


def test_names_of_the_tables_are_those_of_the_metrics() -> None:
    cells = published()
    assert cells["identical_class", "vehicle/logreg", "cos_grad"].mean == 1.0
    assert cells["identical_class", "vehicle/logreg", "dot_fisher"].mean == 0.26
    assert cells["identical_class(k=10)", "vehicle/logreg", "l2_grad"].mean == 0.95


def test_every_column_has_a_model() -> None:
    models = published_models()
    assert set(models) == {(criterion, setting) for criterion, setting, _ in published()}
    assert models["model_randomization", "mnist/cnn"].parameters == "12K"
    assert models["model_randomization", "mnist/cnn"].accuracy.mean == 0.98
    assert Counter(setting for _, setting in models)["trec/bilstm"] == 5


@pytest.mark.parametrize(
    ("metric", "criterion", "printed"),
    [
        ("l2_x", "identical_class", (0.615, 0.261)),
        ("dot_if", "identical_class", (0.372, 0.270)),
        ("dot_fisher", "identical_class", (0.226, 0.103)),
        ("dot_fisher", "identical_subclass", (0.180, 0.076)),
        ("cos_grad", "identical_subclass", (0.753, 0.196)),
        ("cos_all", "identical_subclass", (0.738, 0.166)),
    ],
)
def test_the_overview_of_the_paper_is_over_settings_and_repeats(metric, criterion, printed) -> None:
    average = overview([]).all[metric, criterion]
    assert (average.mean, average.std) == pytest.approx(printed, abs=0.006)


def test_the_rule_of_the_overview_gives_the_papers_verdicts() -> None:
    every = overview([]).all
    failed = {metric for metric, criterion in every if criterion == "model_randomization"} - {
        metric for metric in FORMS if every[metric, "model_randomization"].largest <= 0.7
    }
    assert failed == {"l2_x", "l2_all", "cos_x", "cos_all", "dot_x", "dot_last", "dot_all"}

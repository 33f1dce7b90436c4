import pytest

from precedents import ALIASES, METRICS, InputError, Metric, UnknownNameError, metric
from precedents.metrics.paper import name_of


def test_there_are_eighteen_metrics() -> None:
    features = ("x", "last", "all", "grad", "if", "fisher")
    assert set(METRICS) == {f"{s}_{f}" for s in ("dot", "cos", "l2") for f in features}
    assert len(set(METRICS.values())) == 18


@pytest.mark.parametrize(
    ("alias", "name"),
    [("GD", "dot_grad"), ("GC", "cos_grad"), ("IF", "dot_if"), ("RIF", "cos_if"), ("FK", "dot_fisher")],
)
@pytest.mark.parametrize("form", [str.upper, str.lower, str.title])
def test_the_papers_abbreviations_are_names_in_any_case(alias, name, form) -> None:
    assert metric(form(alias)) is METRICS[name]


def test_every_alias_is_of_a_metric() -> None:
    assert set(ALIASES.values()) <= set(METRICS)


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_is_found_by_its_name_and_tells_it(name) -> None:
    assert name_of(metric(name)) == name


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_is_found_by_its_text(name) -> None:
    assert metric(str(METRICS[name])) == METRICS[name]


def test_a_metric_passes_through() -> None:
    assert metric(METRICS["cos_x"]) is METRICS["cos_x"]


def test_a_metric_of_no_name_is_called_by_its_text() -> None:
    text = "cosine:gradient/hessian(damping=0.01)"
    assert name_of(Metric.read(text)) == text


@pytest.mark.parametrize(
    ("wrong", "near"),
    [("cos_gard", "cos_grad"), ("cosgrad", "cos_grad"), ("dot_fischer", "dot_fisher"), ("RIFF", "rif")],
)
def test_an_unknown_name_suggests_the_nearest(wrong, near) -> None:
    with pytest.raises(UnknownNameError, match=rf"No metric is named '{wrong}'. Did you mean '{near}'"):
        metric(wrong)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(UnknownNameError) as caught:
        metric("influence")
    assert all(name in str(caught.value) for name in [*METRICS, *ALIASES])


def test_what_is_neither_name_nor_metric_is_refused() -> None:
    with pytest.raises(InputError, match="Pass a name such as 'cos_grad'"):
        metric(None)

import oracle
import pytest
import torch
from conftest import mlp, trained
from torch import nn
from torch.nn.utils import prune

from precedents import Explainer


def cosine(a, b) -> float:
    return float(a @ b / (a.norm() * b.norm()))


def residual(model, x, y):
    return model(x).detach().softmax(dim=0) - torch.eye(3, dtype=torch.double)[y]


@pytest.mark.parametrize("kind", ["linear", "biasless"])
def test_the_parts_of_logistic_regression_are_those_by_hand(kind, request, train, cases) -> None:
    model = request.getfixturevalue(kind)
    found = Explainer(model, train).explain(cases, k=6)
    bias = torch.ones(1 if kind == "linear" else 0, dtype=torch.double)
    for case, x in enumerate(cases):
        r = residual(model, x, int(found.predictions[case]))
        for p in found.precedents(case):
            t, s = train[0][p.index], residual(model, train[0][p.index], p.label)
            assert p.residual_cosine == pytest.approx(cosine(r, s), abs=1e-12)
            with_bias = cosine(torch.cat([x, bias]), torch.cat([t, bias]))
            assert p.feature_cosine == pytest.approx(with_bias, abs=1e-12)


@pytest.mark.parametrize("kind", ["linear", "biasless"])
def test_the_product_of_the_parts_is_the_score_of_a_linear_model(kind, request, train, cases) -> None:
    found = Explainer(request.getfixturevalue(kind), train).explain(cases, k=45)
    torch.testing.assert_close(found.parts.residual * found.parts.feature, found.top.scores, rtol=0, atol=1e-12)


def test_cases_are_decomposed_some_at_a_time(model, train, cases, monkeypatch) -> None:
    whole = Explainer(model, train).explain(cases, k=6).parts
    monkeypatch.setattr("precedents.explain.decomposition.AT_ONCE", 100)
    some = Explainer(model, train).explain(cases, k=6).parts
    torch.testing.assert_close(some.residual, whole.residual, rtol=0, atol=1e-12)
    torch.testing.assert_close(some.feature, whole.feature, rtol=0, atol=1e-12)


def test_a_frozen_bias_takes_no_part(linear, train, cases) -> None:
    model = nn.Linear(5, 3).double()
    model.load_state_dict(linear.state_dict())
    model.bias.requires_grad_(False)
    found = Explainer(model, train).explain(cases, k=45)
    torch.testing.assert_close(found.parts.residual * found.parts.feature, found.top.scores, rtol=0, atol=1e-12)


def test_the_parts_of_a_network_are_those_of_its_last_layer(model, train, cases) -> None:
    found = Explainer(model, train).explain(cases, k=3)
    own = sum(p.numel() for p in model[-1].parameters())
    for case, x in enumerate(cases):
        g = oracle.gradient(model, x, int(found.predictions[case]))[-own:]
        for p in found.precedents(case):
            t = oracle.gradient(model, train[0][p.index], p.label)[-own:]
            assert p.residual_cosine * p.feature_cosine == pytest.approx(oracle.cosine(g, t), abs=1e-10)


@pytest.mark.parametrize("metric", ["dot_grad", "cos_last", "cos_if"])
def test_other_metrics_have_no_parts(metric, model, train, cases) -> None:
    found = Explainer(model, train, metric).explain(cases, k=3)
    assert found.parts is None
    assert found.precedents()[0].residual_cosine is None


def test_a_model_that_does_not_end_in_a_linear_layer_has_no_parts(train, cases) -> None:
    model = trained(lambda: nn.Sequential(nn.Linear(5, 3), nn.Tanh()), train)
    assert Explainer(model, train).explain(cases, k=3).parts is None


def test_a_frozen_last_layer_has_no_parts(train, cases) -> None:
    model = mlp().double()
    model[-1].requires_grad_(False)
    assert Explainer(model, train).explain(cases, k=3).parts is None


MADE_OF_OTHERS = {
    "a pruned weight": lambda layer: prune.l1_unstructured(layer, "weight", 0.4),
    "a pruned bias": lambda layer: prune.l1_unstructured(layer, "bias", 1),
    "a length and a direction": nn.utils.weight_norm,
    "a spectral norm": nn.utils.spectral_norm,
    "a parametrization": nn.utils.parametrizations.weight_norm,
    "a parameter more": lambda layer: layer.register_parameter("scale", nn.Parameter(torch.ones(1))),
}


@pytest.mark.filterwarnings("ignore:.*weight_norm:FutureWarning", "ignore:.*performance drop")
@pytest.mark.filterwarnings("ignore::precedents.gradients.search.SlowGradientsWarning")
@pytest.mark.parametrize("kind", MADE_OF_OTHERS)
def test_a_last_layer_that_is_made_of_other_parameters_has_no_parts(kind, train, cases) -> None:
    model = mlp().double()
    MADE_OF_OTHERS[kind](model[-1])
    explainer = Explainer(model.eval(), train)
    assert explainer.explain(cases, k=3).parts is None
    assert explainer.explain(cases.repeat(4, 1), k=40).parts is None  # of more precedents than are few
    assert explainer.estimate(2).seconds > 0


def test_a_certain_prediction_has_parts_all_the_same(train, cases) -> None:
    model = nn.Linear(5, 3).double()
    with torch.no_grad():
        model.weight.mul_(3000)
    found = Explainer(model, train).explain(cases, k=45)
    assert found.parts.residual.abs().max() <= 1 + 1e-12
    assert found.parts.residual.isfinite().all()

from importlib import import_module

import pytest
import torch
from torch import nn

from precedents import METRICS, Trial
from precedents.criteria._spearman import spearman
from precedents.metrics.ranking import top_k

module = import_module("precedents.audit.agreement")


@pytest.mark.parametrize("volume", [1, 10**6])
def test_agreement_is_the_mean_over_the_cases(volume, trial, monkeypatch) -> None:
    monkeypatch.setattr(module, "VOLUME", volume)
    names = ["l2_x", "dot_x", "cos_last", "cos_grad", "dot_if"]
    found = module.agreement(trial, {name: METRICS[name] for name in names}, 4)
    for (a, b), overlap in found["overlap at 4"].items():
        first, second = (trial.scores(METRICS[name]) for name in (a, b))
        tops = zip(*(top_k([scores], 4).indices.tolist() for scores in (first, second)), strict=True)
        assert overlap == pytest.approx(sum(len({*p} & {*q}) for p, q in tops) / 48, abs=1e-12)
        expected = float(spearman(first, second).mean())
        assert found["rank correlation"][a, b] == pytest.approx(expected, abs=1e-12)
    assert len(found["overlap at 4"]) == 10


def test_metrics_that_order_nothing_agree_with_each_other_alone(train, test) -> None:
    model = nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3)).double()
    with torch.no_grad():
        model[0].weight.zero_()
        model[0].bias.fill_(1.0)
    trial = Trial.of(model, train, test)
    found = module.agreement(trial, {name: METRICS[name] for name in ("dot_last", "l2_last", "dot_x")}, 3)
    assert found["rank correlation"]["dot_last", "l2_last"] == 1
    assert found["rank correlation"]["dot_last", "dot_x"] == 0

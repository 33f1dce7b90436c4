"""The report's examples show why: the scores of the recommended metric in parts; no audit fails by them."""

from dataclasses import replace

import pytest
import torch
from conftest import trained
from torch import nn

from precedents import Audit, Examples, Explainer, Trial, audit, texts
from precedents.audit.instances import example_cases, pictures, shares
from precedents.audit.profile import profile
from precedents.classifier.classifier import Classifier
from precedents.explain.naming import Sharing
from precedents.metrics.paper import metric

QUICK = {"criteria": ["identical_class"], "k": 1}


def small() -> nn.Module:
    """A convolution and a Linear."""
    return nn.Sequential(nn.Conv2d(1, 3, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(48, 2)).double()


@pytest.fixture(scope="module")
def world():
    """Pictures of two classes, of which the second is bright at the top."""
    draw = torch.Generator().manual_seed(0)
    x, y = torch.rand(40, 1, 4, 4, generator=draw).double(), torch.arange(40) % 2
    x[1::2, :, :2] += 1
    return trained(small, (x[:30], y[:30])), (x[:30], y[:30]), (x[30:], y[30:])


@pytest.fixture(scope="module")
def found(world) -> Audit:
    return audit(*world, metrics=["cos_grad", "cos_x"], **QUICK)


def test_they_are_those_of_an_explainer(found, world) -> None:
    best = found.recommendation.metric
    explainer = Explainer(world[0], world[1], best)
    offered = [
        (case.index, each.index)
        for case, row in zip(found.examples, found.profiles[best].examples, strict=True)
        for each in row
    ]
    assert set(found.shares) == set(offered)
    for (case, place), made in found.shares.items():
        asked = explainer.shares(world[2][0][case], place)
        assert made.score == pytest.approx(asked.score, abs=1e-9)
        assert [each.share for each in made.layers] == pytest.approx([each.share for each in asked.layers])
        assert made.index == place


def test_the_page_shows_them_beside_the_plain_precedents(found) -> None:
    best, page = found.recommendation.metric, found.to_html()
    assert page.count(f"<h5>{best}, in parts</h5>") == len(found.examples)
    assert "green is what speaks for the training instance" in page
    assert "not a cause of the prediction" in page
    [cells] = found.report().examples[0].shares.values()
    assert [cell.shown.shape for cell in cells] == [(4 + 1 + 4, 4, 3)] * 3
    assert "in parts" not in Audit.from_json(found.to_json()).to_html()


def test_a_kept_audit_and_an_engine_give_the_same_page(found, world, tmp_path) -> None:
    kept = [audit(*world, metrics=["cos_grad", "cos_x"], keep=tmp_path, **QUICK).to_html() for _ in range(2)]
    assert kept[0] == kept[1]
    assert "in parts" in kept[0]
    elsewhere = audit(*world, metrics=["cos_grad", "cos_x"], engine="serial", **QUICK)
    assert replace(elsewhere, costs={}).to_html() == replace(found, costs={}).to_html()


def test_a_metric_without_parts_has_none(world) -> None:
    found = audit(*world, metrics=["cos_last"], **QUICK)
    assert found.recommendation.metric == "cos_last"
    assert not found.shares
    assert "in parts" not in found.to_html()


def test_words_are_marked_and_columns_are_listed() -> None:
    draw = torch.Generator().manual_seed(0)
    tokens, labels = torch.randint(1, 9, (30, 5), generator=draw), torch.arange(30) % 2
    tokens[1::2, 0] = 9
    torch.manual_seed(0)
    reader = nn.Sequential(nn.Embedding(10, 4), nn.Flatten(), nn.Linear(20, 2)).double()
    words = [f"word{i}" for i in range(10)]
    for model, x, render in ((reader, tokens, texts(words)), (nn.Linear(5, 2).double(), tokens.double(), None)):
        found = audit(
            model, (x[:20], labels[:20]), (x[20:], labels[20:]), metrics=["cos_grad"], render=render, **QUICK
        )
        page = found.to_html()
        assert "<h5>cos_grad, in parts</h5>" in page
        assert ('<mark class="for3">word' in page) == (render is not None)
        assert ("each with its value and its share" in page) == (render is None)


def test_what_fails_is_left_out(world) -> None:
    trial, chosen = Trial.of(*world), metric("cos_grad")
    cases = example_cases(trial)
    offered = profile(trial, chosen, 1, [case.index for case in cases])
    seen = pictures(trial, cases, {"cos_grad": offered}, [])
    subject = trial.workspace.subject
    assert shares(trial, cases, Sharing(chosen, "cos_grad", subject), offered, seen)
    flat = torch.rand(4, 3), torch.arange(4) % 2
    other = replace(
        subject, classifier=Classifier.of(nn.Linear(3, 2), Examples.of(flat))
    )  # which cannot take these pictures
    assert shares(trial, cases, Sharing(chosen, "cos_grad", other), offered, seen) == {}

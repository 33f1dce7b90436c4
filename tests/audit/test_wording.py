import io
import re
from dataclasses import replace

import pytest
import torch
from rich.console import Console

from precedents import FEATURES, Kernel, Metric, audit
from precedents.audit.instances import COPIES
from precedents.audit.wording import meaning, price, recommended
from precedents.metrics.paper import METRICS


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_of_the_paper_is_said_in_a_sentence_of_its_own(name) -> None:
    every = [meaning(each) for each in METRICS]
    assert meaning(name)
    assert every.count(meaning(name)) == 1


def test_famous_metrics_have_their_names() -> None:
    assert meaning("gc") == "Grad-Cos: the angle between the loss gradients"
    assert meaning("rif") == "RIF: the angle between the loss gradients after influence-function weighting"
    assert meaning("cosine:gradient/ekfac").endswith("after weighting by ekfac")
    assert meaning("a metric of another house") == ""


def test_within_a_sentence_there_is_no_capital() -> None:
    assert meaning("cos_x") == "The angle between the inputs themselves, whatever the model"
    assert recommended("cos_x", {}) == ["cos_x is the angle between the inputs themselves, whatever the model."]
    assert recommended("gc", {}) == ["gc is Grad-Cos: the angle between the loss gradients."]


def test_parts_that_say_no_phrase_are_called_by_their_names() -> None:
    def blend(kernel: Kernel) -> torch.Tensor:
        return kernel.cross

    assert meaning(Metric(FEATURES.get("gradient"), blend)) == "Blend of the loss gradients"


def test_the_price_stands_beside_that_of_the_default() -> None:
    costs = {"cos_if": 0.5, "cos_grad": 0.02}
    assert price("cos_if", costs) == [
        "Explaining one case by cos_if took 0.5 s here, and by cos_grad, the default, 0.02 s."
    ]
    assert price("cos_grad", costs) == ["Explaining one case by cos_grad took 0.02 s here."]
    assert price("cos_x", costs) == price(None, costs) == []


def test_a_report_shows_what_is_seen_of_duplicates_and_why_verdicts_are_weak() -> None:
    x, y = torch.eye(2).repeat(20, 1), torch.arange(40) % 2
    model = torch.nn.Linear(2, 2, bias=False)
    kinds = {"metrics": ["cos_x"], "criteria": ["model_randomization(draws=1)"], "k": 1}
    found = audit(model, (x, y), (x, y), render=lambda row: f"text {int(row[0])}", **kinds).report()
    assert len(found.copies) == COPIES
    assert found.copies[found.duplicates[0]] == "text 1"
    assert "drawn at random" in found.why["cos_x", "model_randomization(draws=1)"]


def test_the_printed_audit_says_what_the_metric_is_and_what_it_costs() -> None:
    x, y = torch.eye(2).repeat(20, 1), torch.arange(40) % 2
    model = torch.nn.Linear(2, 2, bias=False)
    found = audit(model, (x, y), (x, y), metrics=["cos_grad", "dot_x"], criteria=["identical_class"], k=1)
    slow = replace(found, costs={"cos_grad": 250.0, "dot_x": 0.5})
    best = found.recommendation.metric
    lines = str(slow).splitlines()
    assert [line.split()[-2:] for line in lines if re.match(r"(cos_grad|dot_x) +\d", line)] == [
        ["4.2", "min"],
        ["<1", "s"],
    ]
    assert recommended(best, {})[0] in lines
    assert price(best, slow.costs, roughly=True)[0] in lines
    assert "4.2 min" in slow._repr_html_()
    assert "one" not in str(replace(found, costs={})).splitlines()[0]


def test_a_narrow_terminal_has_no_column_of_costs() -> None:
    x, y = torch.eye(2).repeat(20, 1), torch.arange(40) % 2
    found = audit(torch.nn.Linear(2, 2), (x, y), (x, y), metrics=["cos_x"], criteria=["identical_class"], k=1)
    for width, there in ((100, True), (22, False)):
        console = Console(file=io.StringIO(), width=width, no_color=True)
        console.print(found)
        assert ("<1 s" in console.file.getvalue()) == there
        assert "…" not in console.file.getvalue()

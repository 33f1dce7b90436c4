import pytest

from precedents.audit.wording import meaning, price
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


def test_the_price_stands_beside_that_of_the_default() -> None:
    costs = {"cos_if": 0.5, "cos_grad": 0.02}
    assert price("cos_if", costs) == [
        "Explaining one case by cos_if took 0.5 s here, and by cos_grad, the default, 0.02 s."
    ]
    assert price("cos_grad", costs) == ["Explaining one case by cos_grad took 0.02 s here."]
    assert price("cos_x", costs) == price(None, costs) == []

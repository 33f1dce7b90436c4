import pytest
import torch

from precedents import Examples
from precedents.evidence import Evidence
from precedents.features.gradient import gradient
from precedents.features.inputs import inputs
from precedents.runtime import memory


def test_a_value_is_made_once(classifier, examples) -> None:
    evidence, calls = Evidence(classifier, examples), []
    values = [evidence.once("key", lambda: calls.append(1) or "value") for _ in range(3)]
    assert values == ["value"] * 3
    assert len(calls) == 1


def test_other_evidence_keeps_other_values(classifier, examples) -> None:
    one, two = Evidence(classifier, examples), Evidence(classifier, examples)
    assert one.once("key", lambda: 1) != two.once("key", lambda: 2)


def test_a_value_that_could_not_be_made_is_tried_again(classifier, examples) -> None:
    evidence = Evidence(classifier, examples)
    with pytest.raises(ZeroDivisionError):
        evidence.once("key", lambda: 1 / 0)
    assert evidence.once("key", lambda: 2) == 2


@pytest.mark.parametrize(("features", "width"), [(inputs, 5), (gradient, 89)])
def test_the_width_is_the_length_of_a_vector(features, width, evidence) -> None:
    assert evidence.width(features) == width


def test_the_rows_of_the_training_set_are_those_of_its_instances(evidence, train) -> None:
    assert torch.equal(torch.cat([rows.dense() for _, rows in evidence.train_rows(inputs)]), train[0])


def test_the_rows_of_the_training_set_are_kept_from_the_second_time_on(classifier, examples) -> None:
    calls = []

    def counted(model, batch):
        calls.append(len(batch.labels))
        return inputs(model, batch)

    evidence = Evidence(classifier, examples)
    for _ in range(3):
        list(evidence.train_rows(counted))
    assert calls == [1, 45, 45]  # the first for the width, the second without keeping


def test_rows_come_in_consecutive_blocks(classifier, examples, monkeypatch) -> None:
    monkeypatch.setattr(memory, "BLOCK", 8 * 5 * 20)
    monkeypatch.setattr(memory, "ENOUGH", 1)
    found = list(Evidence(classifier, examples).rows(inputs, examples))
    assert [(places.start, places.stop, len(rows)) for places, rows in found] == [
        (0, 20, 20),
        (20, 40, 20),
        (40, 45, 5),
    ]


def test_rows_of_cases_are_those_of_the_cases(evidence, test) -> None:
    found = [rows.dense() for _, rows in evidence.rows(inputs, Examples.of(test))]
    assert torch.equal(torch.cat(found), test[0])

"""A feature map is a function of a model and a batch; each row depends on its own instance alone."""

import inspect
from importlib import import_module

import pytest
import torch

from precedents import FEATURES, Metric
from precedents.gradients.rows import Rows
from precedents.registry import written

each = pytest.mark.parametrize("name", FEATURES.names())


def rows(name, classifier, examples, places) -> torch.Tensor:
    return Rows.of(FEATURES.get(name)(classifier, examples.take(places))).dense()


@each
def test_the_file_defines_its_own_name_and_says_what_it_is(name) -> None:
    features = FEATURES.get(name)
    assert features.__name__ == name
    assert import_module(features.__module__).__doc__
    assert inspect.getdoc(features)


@each
def test_it_gives_a_finite_float64_vector_for_each_instance(name, classifier, examples) -> None:
    found = rows(name, classifier, examples, range(45))
    assert found.ndim == 2
    assert len(found) == 45
    assert found.dtype == torch.double
    assert found.isfinite().all()


@each
def test_it_has_no_graph(name, classifier, examples) -> None:
    assert not rows(name, classifier, examples, range(3)).requires_grad


@each
def test_a_row_depends_on_its_own_instance_alone(name, classifier, examples) -> None:
    whole = rows(name, classifier, examples, range(45))
    for i in (0, 20, 44):
        torch.testing.assert_close(rows(name, classifier, examples, [i])[0], whole[i], rtol=1e-10, atol=1e-12)


@each
def test_permuted_instances_give_permuted_rows(name, classifier, examples) -> None:
    order = torch.randperm(45, generator=torch.Generator().manual_seed(0)).tolist()
    whole = rows(name, classifier, examples, range(45))
    torch.testing.assert_close(rows(name, classifier, examples, order), whole[order], rtol=1e-10, atol=1e-12)


@each
def test_it_tells_instances_apart(name, classifier, examples) -> None:
    assert len(rows(name, classifier, examples, range(45)).unique(dim=0)) == 45


@each
def test_it_is_the_same_at_every_call(name, classifier, examples) -> None:
    assert torch.equal(rows(name, classifier, examples, range(45)), rows(name, classifier, examples, range(45)))


@each
def test_it_changes_neither_the_model_nor_the_batch(name, classifier, examples, train) -> None:
    before = {key: value.clone() for key, value in classifier.module.state_dict().items()}
    batch = examples.take(range(45))
    FEATURES.get(name)(classifier, batch)
    assert torch.equal(batch.inputs, train[0])
    assert torch.equal(batch.labels, train[1])
    assert all(torch.equal(before[key], value) for key, value in classifier.module.state_dict().items())


@each
def test_its_text_is_read_back(name) -> None:
    assert FEATURES.read(written(FEATURES.get(name))) is FEATURES.get(name)
    assert str(Metric.read(f"dot:{name}")) == f"dot:{name}"

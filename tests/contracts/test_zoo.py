"""A data set is the same at every reading and splits without overlap; an architecture gives a logit a class."""

import inspect
from importlib import import_module

import pytest
import torch

from precedents.zoo.architectures import ARCHITECTURES
from precedents.zoo.datasets import DATASETS

BUNDLED = [
    name
    for name in DATASETS.names()
    if "_sklearn" in inspect.getsource(import_module(f"{DATASETS.folder.__name__}.{name}"))
]
IMAGES, TABLES, TEXTS = (1, 28, 28), (18,), (50,)


def inputs(name: str, shape: tuple[int, ...]) -> torch.Tensor:
    """Two instances; texts are token numbers."""
    return torch.randint(50, (2, 7)) if shape == TEXTS else torch.rand(2, *shape)


def suited(name: str) -> tuple[int, ...]:
    """The first of the shapes of images, tables and texts that an architecture takes."""
    for shape in (IMAGES, TABLES, TEXTS):
        try:
            ARCHITECTURES.get(name)(shape, 3).eval()(inputs(name, shape))
        except (RuntimeError, ValueError, TypeError, IndexError):
            continue
        return shape
    raise AssertionError(f"{name} takes neither images nor tables nor texts")


@pytest.mark.parametrize("name", DATASETS.names())
def test_a_data_set_is_defined_by_its_file(name) -> None:
    load = DATASETS.get(name)
    assert load.__name__ == name
    assert import_module(load.__module__).__doc__
    assert inspect.getdoc(load)
    assert next(iter(inspect.signature(load).parameters.values())).default is None


@pytest.mark.parametrize("name", BUNDLED)
def test_a_data_set_that_needs_no_files_splits_without_overlap(name) -> None:
    data = DATASETS.get(name)()
    split = data.split(seed=0)
    assert len(split.train) == data.keep
    marks = [set(part.marks()) for part in (split.train, split.dev, split.test)]
    assert len(split.train) + len(split.dev) + len(split.test) <= len(data.train)
    assert all(len(each) > 0 for each in marks)


@pytest.mark.parametrize("name", BUNDLED)
def test_a_data_set_is_the_same_at_every_reading(name) -> None:
    assert DATASETS.get(name)().train.fingerprint() == DATASETS.get(name)().train.fingerprint()


@pytest.mark.parametrize("name", ARCHITECTURES.names())
def test_an_architecture_is_defined_by_its_file(name) -> None:
    build = ARCHITECTURES.get(name)
    assert import_module(f"{ARCHITECTURES.folder.__name__}.{name}").__doc__
    assert inspect.getdoc(build)


@pytest.mark.parametrize("name", ARCHITECTURES.names())
@pytest.mark.parametrize("classes", [2, 5])
def test_an_architecture_returns_a_logit_for_each_class(name, classes) -> None:
    shape = suited(name)
    assert ARCHITECTURES.get(name)(shape, classes).eval()(inputs(name, shape)).shape == (2, classes)

"""A similarity is a function of a kernel block [m, n], column by column."""

import inspect
from copy import deepcopy
from importlib import import_module

import pytest
import torch

from precedents import METRICS, SIMILARITIES, Explainer, Metric
from precedents.metrics.kernel import Kernel, joined
from precedents.registry import written

each = pytest.mark.parametrize("name", SIMILARITIES.names())


def normal(count: int, seed: int) -> torch.Tensor:
    return torch.randn(count, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.double)


def kernel(case: torch.Tensor, train: torch.Tensor) -> Kernel:
    return Kernel(case @ train.T, case.square().sum(dim=1), train.square().sum(dim=1))


@pytest.fixture
def block() -> Kernel:
    zero = torch.zeros(1, 4, dtype=torch.double)
    return kernel(torch.cat([normal(4, 0), zero]), torch.cat([normal(6, 1), zero, 1e-20 * normal(2, 2)]))


@each
def test_the_file_defines_its_own_name_and_says_what_it_is(name) -> None:
    similarity = SIMILARITIES.get(name)
    assert similarity.__name__ == name
    assert import_module(similarity.__module__).__doc__
    assert inspect.getdoc(similarity)


@each
def test_it_takes_one_kernel(name) -> None:
    assert len(inspect.signature(SIMILARITIES.get(name)).parameters) == 1


@each
def test_it_gives_a_finite_number_for_each_pair(name, block) -> None:
    scores = SIMILARITIES.get(name)(block)
    assert scores.shape == (5, 9)
    assert scores.dtype == torch.double
    assert scores.isfinite().all()


@each
def test_it_leaves_the_kernel_as_it_was(name, block) -> None:
    before = deepcopy(block)
    SIMILARITIES.get(name)(block)
    for field in ("cross", "case_sq", "train_sq"):
        assert torch.equal(getattr(block, field), getattr(before, field))


@each
def test_it_depends_on_the_kernel_alone(name, block) -> None:
    assert torch.equal(SIMILARITIES.get(name)(block), SIMILARITIES.get(name)(deepcopy(block)))


@each
@pytest.mark.parametrize("size", [1, 2, 4])
def test_blocks_of_columns_give_the_whole(name, size, block) -> None:
    similarity = SIMILARITIES.get(name)
    blocks = [
        Kernel(cross, block.case_sq, train_sq)
        for cross, train_sq in zip(block.cross.split(size, dim=1), block.train_sq.split(size), strict=True)
    ]
    parts = torch.cat([similarity(each) for each in blocks], dim=1)
    assert torch.equal(parts, similarity(block))
    assert torch.equal(parts, similarity(joined(blocks)))


@each
def test_permuted_training_instances_give_permuted_scores(name, block) -> None:
    order = torch.tensor([3, 1, 8, 0, 2, 7, 6, 5, 4])
    permuted = Kernel(block.cross[:, order], block.case_sq, block.train_sq[order])
    assert torch.equal(SIMILARITIES.get(name)(permuted), SIMILARITIES.get(name)(block)[:, order])


@each
def test_permuted_cases_give_permuted_scores(name, block) -> None:
    order = torch.tensor([3, 1, 0, 2, 4])
    permuted = Kernel(block.cross[order], block.case_sq[order], block.train_sq)
    assert torch.equal(SIMILARITIES.get(name)(permuted), SIMILARITIES.get(name)(block)[order])


@each
def test_its_text_is_read_back(name) -> None:
    assert SIMILARITIES.read(written(SIMILARITIES.get(name))) is SIMILARITIES.get(name)


@each
@pytest.mark.parametrize("rest", sorted({str(metric).partition(":")[2] for metric in METRICS.values()}))
def test_it_makes_a_metric_with_all_features_and_preconditioners(name, rest, model, train, cases) -> None:
    if "keep" in rest:  # an indefinite kernel, which only some similarities can use
        rest = rest.replace("(negative=keep)", "(damping=10)")
    metric = Metric.read(f"{name}:{rest}")
    assert Metric.read(str(metric)) == metric
    scores = Explainer(model, train, metric).scores(cases)
    assert scores.shape == (12, 45)
    assert scores.isfinite().all()

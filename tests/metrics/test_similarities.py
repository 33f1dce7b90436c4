import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from precedents import IndefiniteKernelError
from precedents.metrics.kernel import Kernel
from precedents.metrics.similarities.cosine import cosine
from precedents.metrics.similarities.dot import dot
from precedents.metrics.similarities.l2 import l2

seeds = st.integers(0, 10_000)


def vectors(count: int, seed: int) -> torch.Tensor:
    return torch.randn(count, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.double)


def kernel(case: torch.Tensor, train: torch.Tensor) -> Kernel:
    return Kernel(case @ train.T, case.square().sum(dim=1), train.square().sum(dim=1))


@given(seeds)
def test_dot_is_linear_in_each_argument(seed) -> None:
    a, b, c = (vectors(3, seed + i) for i in range(3))
    torch.testing.assert_close(dot(kernel(2 * a - b, c)), 2 * dot(kernel(a, c)) - dot(kernel(b, c)))
    torch.testing.assert_close(dot(kernel(c, 2 * a - b)), 2 * dot(kernel(c, a)) - dot(kernel(c, b)))


@given(seeds)
def test_cosine_is_within_one(seed) -> None:
    a = vectors(3, seed)
    assert cosine(kernel(a, torch.cat([a, -a, vectors(3, seed + 1)]))).abs().max() <= 1


@given(seeds, st.floats(1e-30, 1e30), st.floats(1e-30, 1e30))
def test_cosine_is_blind_to_scale(seed, first, second) -> None:
    a, b = vectors(3, seed), vectors(5, seed + 1)
    torch.testing.assert_close(cosine(kernel(first * a, second * b)), cosine(kernel(a, b)))


@pytest.mark.parametrize("length", [1.0, 1e-20, 1e-60, 1e60])
def test_the_cosine_of_a_vector_with_itself_is_one(length) -> None:
    a = length * vectors(3, 0)
    torch.testing.assert_close(cosine(kernel(a, a)).diagonal(), torch.ones(3, dtype=torch.double))


def test_the_cosine_with_a_zero_vector_is_zero() -> None:
    a, zero = vectors(3, 0), torch.zeros(2, 4, dtype=torch.double)
    assert torch.equal(cosine(kernel(a, zero)), torch.zeros(3, 2, dtype=torch.double))
    assert torch.equal(cosine(kernel(zero, a)), torch.zeros(2, 3, dtype=torch.double))
    assert torch.equal(cosine(kernel(zero, zero)), torch.zeros(2, 2, dtype=torch.double))


def test_the_cosine_with_nan_is_nan() -> None:
    assert cosine(kernel(vectors(1, 0), vectors(1, 1) * torch.nan)).isnan().all()


@given(seeds)
def test_l2_is_minus_the_squared_distance(seed) -> None:
    a, b = vectors(3, seed), vectors(5, seed + 1)
    torch.testing.assert_close(l2(kernel(a, b)), -torch.cdist(a, b).square())


@given(seeds)
def test_l2_is_largest_for_the_vector_itself(seed) -> None:
    a = vectors(6, seed)
    found = l2(kernel(a, a))
    assert found.max() <= 0
    assert torch.equal(found.argmax(dim=1), torch.arange(6))


@pytest.mark.parametrize("similarity", [cosine, l2])
def test_lengths_need_a_definite_kernel(similarity) -> None:
    block = kernel(vectors(2, 0), vectors(3, 1))
    with pytest.raises(IndefiniteKernelError):
        similarity(Kernel(block.cross, block.case_sq, block.train_sq, definite=False))


def test_dot_takes_an_indefinite_kernel() -> None:
    block = kernel(vectors(2, 0), vectors(3, 1))
    indefinite = Kernel(block.cross, block.case_sq, block.train_sq, definite=False)
    assert torch.equal(dot(indefinite), block.cross)

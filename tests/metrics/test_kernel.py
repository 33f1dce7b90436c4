import pytest
import torch

from precedents import IndefiniteKernelError
from precedents.metrics.kernel import Kernel, joined

CROSS = torch.arange(6.0).reshape(2, 3)
CASE, TRAIN = torch.tensor([1.0, -1e-20]), torch.tensor([4.0, 0.0, -1e-20])


def test_squares_are_a_column_and_a_row() -> None:
    case, train = Kernel(CROSS, CASE, TRAIN).squares()
    assert case.shape == (2, 1)
    assert train.shape == (1, 3)


def test_rounding_below_zero_is_zero() -> None:
    case, train = Kernel(CROSS, CASE, TRAIN).squares()
    assert case[1, 0] == train[0, 2] == 0


def test_an_indefinite_kernel_has_no_squares() -> None:
    with pytest.raises(IndefiniteKernelError, match=r"cosine and l2 are undefined"):
        Kernel(CROSS, CASE, TRAIN, definite=False).squares()


@pytest.mark.parametrize("definite", [True, False])
def test_joined_blocks_are_the_whole(definite) -> None:
    blocks = [Kernel(CROSS[:, i : i + 1], CASE, TRAIN[i : i + 1], definite) for i in range(3)]
    whole = joined(blocks)
    assert torch.equal(whole.cross, CROSS)
    assert torch.equal(whole.case_sq, CASE)
    assert torch.equal(whole.train_sq, TRAIN)
    assert whole.definite is definite

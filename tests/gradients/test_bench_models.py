import pytest
import torch

from gradients.single import CLASSES, ruled, stirred
from precedents.zoo.architectures import ARCHITECTURES

TOKENS = torch.tensor([[2, 5, 6, 5, 7, 3], [2, 8, 3, 0, 0, 0], [2, 1, 9, 4, 3, 0], [2, 3, 0, 0, 0, 0]])
INPUTS = {
    "bag_of_words": ((10,), lambda: TOKENS),
    "bi_lstm": ((10,), lambda: TOKENS),
    "cnn": ((3, 9, 11), lambda: torch.rand(4, 3, 9, 11, dtype=torch.double)),
    "logistic_regression": ((2, 3), lambda: torch.rand(4, 2, 3, dtype=torch.double)),
    "mlp": ((5,), lambda: torch.rand(4, 5, dtype=torch.double)),
    "mobilenet_v2": ((3, 32, 32), lambda: torch.rand(2, 3, 32, 32, dtype=torch.double)),
}


@pytest.mark.parametrize("name", INPUTS)
def test_gradients_are_those_of_plain_autograd_one_at_a_time(name) -> None:
    shape, inputs = INPUTS[name]
    ruled(stirred(ARCHITECTURES.get(name)(shape, CLASSES)), inputs())

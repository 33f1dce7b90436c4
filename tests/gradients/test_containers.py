"""Parameters that belong to no layer but to the module around the layers."""

from collections.abc import Callable
from unittest.mock import patch

import pytest
import torch
from torch import Tensor, nn

from gradients.single import B, agree, frozen, normal, ruled, stirred
from precedents.gradients import instrumentation


class Patches(nn.Module):
    """A class token, positions and a scale of the model itself."""

    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.randn(1, 1, 6))
        self.places = nn.Parameter(torch.randn(1, 5, 6))
        self.scale = nn.Parameter(torch.tensor(0.7))
        self.layer = nn.TransformerEncoderLayer(6, 2, 5, batch_first=True)
        self.head = nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.cat([self.token.expand(len(x), -1, -1), x], dim=1) + self.places
        return self.head(self.scale * self.layer(x)[:, 0])


@pytest.mark.parametrize("freeze", ["", "token", "places", "weight"])
def test_a_class_token_positions_and_a_scale(freeze) -> None:
    ruled(frozen(stirred(Patches()), freeze), normal(B, 4, 6))


class Owner(nn.Module):
    """A parameter of any shape and what is done with it."""

    def __init__(self, shape: tuple[int, ...], use: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.own, self.use = nn.Parameter(torch.randn(shape)), use

    def forward(self, x: Tensor) -> Tensor:
        return self.use(x, self.own)


USES = {
    "scale": ((), lambda x, own: x * own),
    "scales of entries": ((5,), lambda x, own: x * own),
    "scales of places": ((4, 1), lambda x, own: x * own),
    "places": ((4, 5), lambda x, own: x + own),
    "places with room for instances": ((1, 4, 5), lambda x, own: x + own),
    "token": ((5,), lambda x, own: torch.cat([own.expand(len(x), 1, 5), x], dim=1)),
    "token that is repeated": ((1, 1, 5), lambda x, own: torch.cat([own.repeat(len(x), 1, 1), x], dim=1)),
    "matrix": ((5, 3), lambda x, own: x @ own),
    "mixture of places": ((4, 4), lambda x, own: own.softmax(dim=1) @ x),
    "distances": ((2, 5), lambda x, own: torch.cdist(x, own)),
    "powers": ((), lambda x, own: x.abs() ** own),
}
FOR_VMAP = {"token that is repeated", "mixture of places"}  # with copies they would be other functions


@pytest.mark.parametrize("name", USES)
@pytest.mark.parametrize("b", [1, 2, 4, 5])
@pytest.mark.filterwarnings("ignore")
def test_a_parameter_of_a_block_is_right_by_any_fallback(name, b) -> None:
    x = normal(b, 4, 5)
    agree(stirred(around(Owner(*USES[name]), x)), x)


@pytest.mark.parametrize("name", [name for name in USES if name not in FOR_VMAP])
def test_a_parameter_of_a_block_is_copied_for_each_instance(name) -> None:
    x = normal(B, 4, 5)
    ruled(stirred(around(Owner(*USES[name]), x)), x)


def around(block: nn.Module, x: Tensor) -> nn.Module:
    """Layers before and after a block."""
    first = nn.Sequential(nn.Linear(5, 5), nn.Tanh(), block, nn.Flatten()).double()
    return first.append(nn.Linear(first(x).shape[1], 3))


class Scaled(nn.Module):
    """A block with a scale of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(5))
        self.inner = nn.Linear(5, 5)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.scale * self.inner(x).tanh()


@pytest.mark.parametrize("shape", [(B, 4), (B, 2, 4), (2, 2, 4)])
def test_blocks_with_scales(shape) -> None:
    blocks = nn.Linear(4, 5), Scaled(), Scaled(), nn.Flatten(), nn.Linear(10 if len(shape) > 2 else 5, 3)
    ruled(stirred(nn.Sequential(*blocks)), normal(*shape))


def test_what_fits_one_block_is_tried_on_all_of_its_type() -> None:
    blocks = nn.Linear(4, 5), *(Scaled() for _ in range(4)), nn.Linear(5, 3)
    with patch.object(instrumentation, "copied", wraps=instrumentation.copied) as tried:
        ruled(stirred(nn.Sequential(*blocks)), normal(B, 4))
    assert tried.call_count == 1


def test_blocks_of_a_type_that_use_their_parameters_otherwise() -> None:
    x = normal(B, 4, 5)
    scales, token = Owner(*USES["scales of entries"]), Owner((5,), lambda x, own: x + own.expand(len(x), 1, 5))
    ruled(stirred(around(nn.Sequential(scales, token), x)), x)


class Signed(nn.Module):
    """What is computed depends on the values, which vmap cannot follow and copies can."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.randn(5))

    def forward(self, x: Tensor) -> Tensor:
        signs = [1.0 if each.sum().item() > 0 else -2.0 for each in x]
        return self.scale * x * torch.tensor(signs, dtype=x.dtype)[:, None]


def test_a_block_that_vmap_cannot_do() -> None:
    ruled(stirred(nn.Sequential(nn.Linear(4, 5), Signed(), nn.Linear(5, 3))), normal(B, 4))


def test_a_block_called_twice() -> None:
    block = Scaled()
    ruled(stirred(nn.Sequential(nn.Linear(4, 5), block, nn.Tanh(), block, nn.Linear(5, 3))), normal(B, 4))


@pytest.mark.filterwarnings("ignore")
def test_two_blocks_with_one_parameter() -> None:
    one, other = Scaled(), Scaled()
    other.scale = one.scale
    agree(stirred(nn.Sequential(nn.Linear(4, 5), one, other, nn.Linear(5, 3))), normal(B, 4))

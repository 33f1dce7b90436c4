import json
from dataclasses import dataclass

import pytest
import torch

from precedents.gradients.factors import Outer
from precedents.gradients.rows import Rows
from precedents.runtime.serialize import UnwritableError, read, written


def again(value, known=None):
    """The value after a journey through JSON."""
    known, tensors = known or {}, {}
    nest = json.loads(json.dumps(written(value, {id(each): name for name, each in known.items()}, tensors)))
    return read(nest, known, tensors.__getitem__)


@pytest.mark.parametrize(
    "value",
    [None, True, 3, 0.1 + 0.2, float("inf"), "text", (), [], (1, [2.5, ("a", None)]), range(3, 9), slice(2, 5)],
    ids=str,
)
def test_plain_values_come_back(value) -> None:
    assert again(value) == value
    assert type(again(value)) is type(value)


@pytest.mark.parametrize(
    "value",
    [
        torch.arange(6.0).reshape(2, 3),
        torch.arange(6.0).reshape(2, 3).T,
        torch.arange(24).reshape(2, 3, 4).permute(2, 0, 1),
        torch.arange(12.0).reshape(3, 4)[:, 1:3],
        torch.zeros(3, 0),
        torch.tensor(2.0),
        torch.ones(1).expand(4, 3),
    ],
    ids=range(7),
)
def test_tensors_come_back(value) -> None:
    found = again(value)
    assert torch.equal(found, value)
    assert found.dtype == value.dtype


def test_the_axes_of_a_tensor_stay_in_their_order() -> None:
    value = torch.arange(24).reshape(2, 3, 4).permute(2, 0, 1)
    assert again(value).stride() == value.stride()


def test_our_values_come_back_with_what_is_known_as_it_is() -> None:
    weight = torch.zeros(4, 5)
    shared = torch.rand(2, 1, 5)
    rows = Rows(torch.rand(2, 3), torch.ones(2), ((slice(3, 23), Outer(weight, torch.rand(2, 1, 4), shared)),))
    tensors: dict[str, torch.Tensor] = {}
    nest = written((rows, shared), {id(weight): "weight"}, tensors)
    assert len({value.data_ptr() for value in tensors.values()}) == 4  # what is shared is there once
    found, _ = read(nest, {"weight": weight}, tensors.__getitem__)
    assert torch.equal(found.dense(), rows.dense())
    assert found.factors[0][1].parameter is weight


@dataclass
class Foreign:
    value: int = 1


@pytest.mark.parametrize(
    "value", [Foreign(), print, {"a": 1}, {1, 2}, torch.zeros(2, device="meta"), 1j], ids=str
)
def test_what_is_not_ours_is_not_written(value) -> None:
    with pytest.raises(UnwritableError):
        written([value], {}, {})


@pytest.mark.parametrize(
    "name", [["os", "PathLike"], ["precedents.gradients.rows", "joined"], ["test_nest", "Foreign"]]
)
def test_no_other_class_is_read(name) -> None:
    with pytest.raises(ValueError, match="is no class of a stored value"):
        read({"class": name, "fields": {}}, {}, {}.__getitem__)

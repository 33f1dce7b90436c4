import numpy as np
import pytest
import torch
from torch import nn

from precedents.classifier.outputs import fed, placed
from precedents.data.inputs import bare, between, joined, leaves, mapped, shapes, stacked, taken, tensors

NEST = {"a": torch.zeros(4, 2), "b": (torch.ones(4), torch.ones(4, 3))}


class Sum(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a + 2 * b


@pytest.mark.parametrize("value", [np.ones((2, 3)), [[1.0] * 3] * 2, torch.ones(2, 3)])
def test_arrays_and_lists_become_tensors(value) -> None:
    assert torch.equal(tensors(value), torch.ones(2, 3, dtype=tensors(value).dtype))


def test_tensors_keeps_the_nest() -> None:
    found = tensors({"a": np.zeros(2), "b": (3, [1, 2])})
    assert shapes(found) == [(2,), (), (2,)]


def test_tensors_are_cut_from_their_graph() -> None:
    assert not tensors(torch.ones(2, requires_grad=True)).requires_grad


def test_mapped_reaches_every_leaf_and_keeps_the_nest() -> None:
    found = mapped(lambda leaf: leaf[:2] + 1, NEST)
    assert list(found) == ["a", "b"]
    assert isinstance(found["b"], tuple)
    assert [float(leaf.sum()) for leaf in leaves(found)] == [4.0, 4.0, 12.0]


def test_mapped_and_leaves_pass_by_what_is_no_tensor_and_keep_lists() -> None:
    nest = [torch.ones(2), None, ({"a": [torch.zeros(3)]}, 7)]
    found = mapped(lambda leaf: leaf + 1, nest)
    assert [leaf.tolist() for leaf in leaves(found)] == [[2.0, 2.0], [1.0, 1.0, 1.0]]
    assert isinstance(found, list)
    assert isinstance(found[2][0]["a"], list)
    assert found[1] is None
    assert found[2][1] == 7


@pytest.mark.parametrize("size", [1, 3, 4])
def test_joined_undoes_cutting_into_batches(size) -> None:
    again = joined([between(NEST, start, start + size) for start in range(0, 4, size)])
    assert all(torch.equal(a, b) for a, b in zip(leaves(again), leaves(NEST), strict=True))


@pytest.mark.parametrize("indices", [range(1, 3), range(0, 4, 2), [3, 0, 0]])
def test_instances_are_taken_by_their_places(indices) -> None:
    for leaf, found in zip(leaves(NEST), leaves(taken(NEST, indices)), strict=True):
        assert torch.equal(found, leaf[list(indices)])


def test_consecutive_instances_are_a_view() -> None:
    assert taken(NEST, range(1, 3))["a"].data_ptr() == NEST["a"][1:].data_ptr()


def test_floating_point_inputs_take_the_precision_of_the_module() -> None:
    found = placed(nn.Linear(2, 2).double(), (torch.ones(3, 2), torch.ones(3, dtype=torch.long)))
    assert [leaf.dtype for leaf in found] == [torch.double, torch.long]


def test_leaves_come_in_order() -> None:
    assert [leaf.shape for leaf in leaves(NEST)] == [(4, 2), (4,), (4, 3)]


def test_shapes_are_those_of_the_leaves() -> None:
    assert shapes(NEST) == [(4, 2), (4,), (4, 3)]


def test_stacked_undoes_taking_instances_one_by_one() -> None:
    instances = [mapped(lambda leaf, i=i: leaf[i], NEST) for i in range(4)]
    again = stacked(instances)
    assert all(torch.equal(a, b) for a, b in zip(leaves(again), leaves(NEST), strict=True))


def test_a_tuple_is_fed_as_positional_arguments() -> None:
    assert float(fed(Sum(), (torch.tensor(1.0), torch.tensor(2.0)))) == 5


def test_a_dict_is_fed_as_keyword_arguments() -> None:
    assert float(fed(Sum(), {"b": torch.tensor(2.0), "a": torch.tensor(1.0)})) == 5


def test_a_tensor_is_fed_as_it_is() -> None:
    assert torch.equal(fed(nn.Identity(), torch.ones(3)), torch.ones(3))


def test_a_bare_instance_has_no_padding() -> None:
    ids, mask = torch.tensor([[5, 6, 0], [7, 8, 9]]), torch.tensor([[1, 1, 0], [1, 1, 1]])
    nest = {"input_ids": ids, "attention_mask": mask, "size": torch.tensor([[1.0], [2.0]])}
    found = bare(nest, 0)
    assert [found[name].tolist() for name in nest] == [[5, 6], [1, 1], [1.0]]
    assert bare((ids, mask), 0)[0].tolist() == [5, 6, 0]

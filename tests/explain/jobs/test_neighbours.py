import pytest
import torch

from precedents.explain.jobs._neighbours import Units, _best, nearest


@pytest.mark.parametrize("values", [3, 1000000])
@pytest.mark.parametrize("k", [0, 1, 4, 9])
def test_the_best_are_those_of_a_stable_sort(values, k) -> None:
    scores = torch.randint(0, values, (50, 9)).float()
    expected = scores.argsort(dim=1, descending=True, stable=True)[:, :k]
    assert torch.equal(_best(scores, k).indices, expected)


@pytest.mark.parametrize("room", [1, 400, 2**26])
def test_blocks_of_any_size_give_the_same_neighbours(room) -> None:
    rows = torch.nn.functional.normalize(torch.randn(40, 6), dim=1)
    found = nearest(Units(rows), Units(rows), 5, "neighbours", True, room)
    cosines = (rows @ rows.T).fill_diagonal_(-torch.inf)
    assert torch.equal(found.indices, cosines.argsort(dim=1, descending=True, stable=True)[:, :5])

"""Sparse rows are a tensor: what they do is what the dense tensor does, and rows stay sparse."""

import pickle
from copy import deepcopy

import numpy as np
import pytest
import torch
from scipy import sparse
from torch import nn

from precedents.data.sources import marks
from precedents.data.watch import row_numbers
from precedents.runtime.serialize import read, written
from precedents.runtime.sparse import SparseRows

MATRIX = sparse.random(7, 30, 0.2, format="csr", random_state=np.random.default_rng(0))


@pytest.fixture
def rows() -> SparseRows:
    return SparseRows.of(MATRIX)


CHOICES = {
    "consecutive": lambda x: x[2:5],
    "spaced": lambda x: x[::2],
    "listed": lambda x: x[[4, 0, 4]],
    "placed": lambda x: x[torch.tensor([[1, 2], [6, 0]])],
    "one": lambda x: x[3],
    "none": lambda x: x[5:5],
    "as a batch": lambda x: x[None],
    "at positions": lambda x: x.reshape(7, -1, 30),
    "at one position": lambda x: x.reshape(7, 1, 30)[:, 0],
    "without positions": lambda x: x.reshape(7, 1, 30).flatten(0, 1),
    "joined": lambda x: torch.cat([x[:2], x[4:]]),
    "detached": lambda x: x.detach(),
    "cloned": lambda x: x.clone(),
    "in float32": lambda x: x.float(),
    "copied": deepcopy,
    "pickled": lambda x: pickle.loads(pickle.dumps(x)),
}


@pytest.mark.parametrize("choice", CHOICES)
def test_whole_rows_stay_sparse(choice, rows) -> None:
    found, wanted = CHOICES[choice](rows), CHOICES[choice](rows.dense())
    assert isinstance(found, SparseRows)
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    assert torch.equal(found.dense(), wanted)


OTHERS = {
    "a column": lambda x: x[:, 3],
    "some columns": lambda x: x[:, 2:9],
    "a sum": lambda x: x.sum(dim=1),
    "a product": lambda x: x * 2 + 1,
    "comparison": lambda x: x == 0,
    "beside a column": lambda x: torch.cat([x, torch.ones(7, 1, dtype=torch.double)], dim=1),
    "turned": lambda x: x.T,
    "outer products": lambda x: torch.bmm(x[:, :, None], x[:, None]),
    "as numbers": lambda x: torch.tensor(x.tolist()),
    "as an array": lambda x: torch.tensor(np.asarray(x)),
}


@pytest.mark.parametrize("other", OTHERS)
def test_everything_else_is_done_dense(other, rows) -> None:
    found, wanted = OTHERS[other](rows), OTHERS[other](rows.dense())
    assert torch.equal(found.dense() if isinstance(found, SparseRows) else found, wanted)


PRODUCTS = {
    "with a matrix": lambda x: x @ torch.arange(60.0).double().reshape(30, 2),
    "of many rows with one": lambda x: torch.cat([x] * 5) @ torch.arange(60.0).double().reshape(2, 30).T,
    "of a matrix": lambda x: torch.arange(21.0).double().reshape(3, 7) @ x,
    "of a matrix with turned rows": lambda x: torch.arange(60.0).double().reshape(2, 30) @ x.T,
    "of turned rows": lambda x: x.T @ torch.arange(14.0).double().reshape(7, 2),
    "of rows": lambda x: x @ x[:3].T,
    "of few rows": lambda x: x[:2] @ x.T,
    "of rows with themselves": lambda x: torch.bmm(x[:, None], x[:, None].transpose(1, 2)),
    "at positions": lambda x: x[:, None] @ torch.arange(60.0).double().reshape(30, 2),
}


@pytest.mark.parametrize("product", PRODUCTS)
def test_products_are_those_of_the_dense_rows(product, rows, monkeypatch) -> None:
    wanted = PRODUCTS[product](rows.dense())
    monkeypatch.setattr(SparseRows, "dense", None)  # nothing is made dense
    torch.testing.assert_close(PRODUCTS[product](rows), wanted, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("dense", [0, 32])
def test_many_inner_products_are_made_some_at_a_time_or_by_few_dense_rows(dense, rows, monkeypatch) -> None:
    wanted = rows.dense() @ rows.dense().T
    monkeypatch.setattr("precedents.runtime.sparse.PAIRS", 10)
    monkeypatch.setattr("precedents.runtime.sparse.DENSE", dense)
    torch.testing.assert_close(rows @ rows.T, wanted, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("few", [0, 3])
def test_rows_without_numbers_have_inner_products_of_zero(few, rows) -> None:
    none = SparseRows.of(sparse.csr_matrix((few, 30)))
    assert torch.equal(rows @ none.T, torch.zeros(7, few, dtype=torch.double))
    assert torch.equal(none @ rows.T, torch.zeros(few, 7, dtype=torch.double))


def test_squared_lengths_of_many_rows_some_of_them_empty() -> None:
    rows = SparseRows.of(sparse.random(1300, 40, 0.02, format="csr", random_state=np.random.default_rng(1)))
    assert (np.diff(rows.rows.indptr) == 0).any()
    assert torch.equal(rows[7:1290].squares() > 0, (rows.dense() != 0).any(dim=1)[7:1290])
    torch.testing.assert_close(
        rows[7:1290].squares(), rows.dense().square().sum(dim=1)[7:1290], rtol=1e-13, atol=0
    )


def test_a_linear_layer_has_its_first_and_second_derivatives(rows) -> None:
    layer = nn.Linear(30, 4).double()
    found = []
    for x in (rows, rows.dense()):
        loss = layer(x).exp().sum()
        first = torch.autograd.grad(loss, list(layer.parameters()), create_graph=True)
        second = torch.autograd.grad(sum(part.square().sum() for part in first), list(layer.parameters()))
        found.append([*first, *second])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)


def test_nobody_writes_to_them(rows) -> None:
    with pytest.raises(TypeError, match="not written to"):
        rows.add_(1)


def test_memory_is_shared_where_the_form_is_the_same() -> None:
    assert np.shares_memory(SparseRows.of(MATRIX).rows.data, MATRIX.data)


def test_what_stands_twice_is_added_and_what_is_zero_left_out() -> None:
    given = sparse.csr_matrix(([1.0, 2.0, 0.0], [4, 4, 1], [0, 3]), shape=(1, 5))
    found = SparseRows.of(given)
    assert found.rows.nnz == 1
    assert found.tolist() == [[0, 0, 0, 0, 3]]
    assert given.nnz == 3  # as it was


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_they_come_back_from_a_file_bit_for_bit(kind, rows) -> None:
    value = SparseRows(rows.rows.astype(kind).astype(np.float64), (7, 1))
    tensors: dict[str, torch.Tensor] = {}
    nest = written([value], {}, tensors)
    (found,) = read(nest, {}, tensors.__getitem__)
    assert (found.shape, found.dtype) == (value.shape, torch.double)
    assert torch.equal(found.dense(), value.dense())
    held = sum(each.nbytes for each in tensors.values())
    assert held <= value.held - (4 * value.rows.nnz if kind is np.float32 else 0)  # shorter where that is exact


@pytest.mark.parametrize("wrong", [{"width": 2}, {"dtype": "object"}, {"dtype": "int8"}, {"lead": [3]}])
def test_a_damaged_file_is_an_error_that_is_known(wrong, rows) -> None:
    tensors: dict[str, torch.Tensor] = {}
    nest = written(rows, {}, tensors)
    with pytest.raises((ValueError, TypeError, KeyError, RuntimeError)):
        read({**nest, "sparse": nest["sparse"] | wrong}, {}, tensors.__getitem__).dense()


def test_another_number_or_place_is_another_instance(rows) -> None:
    changed, moved = rows.rows.copy(), rows.rows.copy()
    row = int(np.flatnonzero(np.diff(changed.indptr))[0])
    place = changed.indptr[row]
    changed.data[place] += 1e-12
    moved.indices[place] = next(c for c in range(30) if c not in moved[row].indices)
    for other in (changed, moved):
        for function in (row_numbers, lambda x: torch.tensor([list(m) for m in marks(x[0], [0] * 7)])):
            apart = function([rows]) != function([SparseRows(other)])
            assert apart.reshape(7, -1).any(dim=1).nonzero().flatten().tolist() == [row]

"""SparseRows: a tensor [..., d] that holds, of each row, only the numbers that are not zero.

It is a tensor to whoever reads, chooses, joins or multiplies rows: what leaves the rows whole gives sparse rows
again, and products go by scipy's compressed rows. Everything else that torch does with a tensor is done with
the dense one and gives a dense result. Nobody writes to one.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

aten = torch.ops.aten

PAIRS = 2**21  # inner products of sparse rows that are made at a time
SQUARED = 512  # rows whose numbers are squared at a time
FEW = 16  # rows that are multiplied one by one
DENSE, DENSE_NUMBERS = (
    32,
    2**22,
)  # rows, and numbers of them, that meet others with their zeros


class SparseRows(Tensor):
    """Rows [*lead, d] over a matrix of scipy; or turned, with the last two axes exchanged.

    >>> from scipy.sparse import csr_matrix
    >>> x = SparseRows(csr_matrix([[0.0, 2.0, 0.0], [1.0, 0.0, 0.0]]))
    >>> x[1:], x @ x.T
    (SparseRows((1, 3), 1 numbers, torch.float64), tensor([[4., 0.],
            [0., 1.]], dtype=torch.float64))
    """

    rows: Any  # scipy's compressed rows [r, d]
    lead: tuple[int, ...]  # the axes before the last one, whose product is r
    turned: bool

    @staticmethod
    def __new__(cls, rows: Any, lead: Sequence[int] | None = None, *, turned: bool = False) -> "SparseRows":
        """Over the memory of the matrix."""
        own = (rows.shape[0],) if lead is None else tuple(lead)
        d = rows.shape[1]
        shape = (*own[:-1], d, own[-1]) if turned else (*own, d)
        dtype = torch.from_numpy(rows.data[:0]).dtype
        made: SparseRows = Tensor._make_wrapper_subclass(cls, shape, dtype=dtype)
        made.rows, made.lead, made.turned = rows, own, turned
        return made

    @classmethod
    def of(cls, matrix: Any) -> "SparseRows":
        """Of a matrix of scipy or an array, in float64; one that has this form already is not copied."""
        from scipy.sparse import csr_matrix

        rows = csr_matrix(matrix, dtype=np.float64, copy=False)
        if not rows.has_canonical_format or not rows.data.all():
            rows = rows.copy()
            rows.sum_duplicates()
            rows.eliminate_zeros()
        return cls(rows)

    def dense(self) -> Tensor:
        """As an ordinary tensor, with its zeros."""
        whole = torch.from_numpy(self.rows.toarray()).reshape(*self.lead, self.rows.shape[1])
        return whole.transpose(-1, -2) if self.turned else whole

    def to_dense(self, *_: Any, **__: Any) -> Tensor:
        """With its zeros."""
        return self.dense()

    def numpy(self, *, force: bool = False) -> Any:  # noqa: ARG002
        """With its zeros, as an array."""
        return self.dense().numpy()

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return np.asarray(self.dense().numpy(), *args, **kwargs)

    def tolist(self) -> Any:
        """With its zeros."""
        return self.dense().tolist()

    def squares(self) -> Tensor:
        """The squared lengths of the rows [*lead]."""
        return torch.from_numpy(_lengths(self.rows)).reshape(self.lead)

    @property
    def held(self) -> int:
        """Bytes that are held."""
        return int(self.rows.data.nbytes + self.rows.indices.nbytes + self.rows.indptr.nbytes)

    @property
    def stored(self) -> int:
        """Numbers that are held of each row, on average: those that are not zero, with their places."""
        return -(-self.held // (max(1, self.rows.shape[0]) * self.element_size()))

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        return f"SparseRows({tuple(self.shape)}, {self.rows.nnz} numbers, {self.dtype})"

    def __deepcopy__(self, _: Any) -> "SparseRows":
        return SparseRows(self.rows.copy(), self.lead, turned=self.turned)

    def __reduce_ex__(self, _: Any) -> Any:
        return partial(SparseRows, turned=self.turned), (self.rows, self.lead)

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls,
        func: Any,
        types: Any,
        args: Any = (),
        kwargs: Any = None,
    ) -> Any:
        known, named = KNOWN.get(func), kwargs or {}
        found = NotImplemented if known is None else known(*args, **named)
        if found is not NotImplemented:
            return found
        for place, argument in enumerate(func._schema.arguments):
            written = argument.alias_info is not None and argument.alias_info.is_write
            if written and isinstance(args[place] if place < len(args) else None, SparseRows):
                raise TypeError(f"{func} writes to sparse rows, which are not written to. Use x.to_dense().")
        return func(*densified(args), **densified(named))


def densified(nest: Any) -> Any:
    """A nest of values, with its sparse rows dense."""
    return tree_map_only(SparseRows, SparseRows.dense, nest)


def parts(value: SparseRows) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors that sparse rows are made of, numbers in float32 where that is exact; and plain values."""
    rows = value.rows
    short = rows.data.astype(np.float32)
    data = short if np.array_equal(short.astype(rows.data.dtype), rows.data) else rows.data
    tensors = {name: torch.from_numpy(each) for name, each in _arrays(data, rows).items()}
    said = {"lead": list(value.lead), "width": rows.shape[1], "dtype": str(rows.data.dtype)}
    return tensors, said


def joined_parts(tensors: Mapping[str, Tensor], said: Mapping[str, Any]) -> SparseRows:
    """The sparse rows that are made of these; a TypeError, ValueError or KeyError where they are none."""
    from scipy.sparse import csr_matrix

    data, indices, indptr = (tensors[name].numpy() for name in ("data", "indices", "indptr"))
    shape = len(indptr) - 1, said["width"]
    kind = {"float32": np.float32, "float64": np.float64}[said["dtype"]]
    rows = csr_matrix((data.astype(kind, copy=False), indices, indptr), shape=shape, copy=False)
    rows.check_format(full_check=True)
    return SparseRows(rows, said["lead"])


def _arrays(data: Any, rows: Any) -> dict[str, Any]:
    return {"data": data, "indices": rows.indices, "indptr": rows.indptr}


def _lengths(rows: Any) -> Any:
    """The squared lengths [r] of the rows of a matrix."""
    found = np.zeros(rows.shape[0], dtype=rows.dtype)
    full = np.flatnonzero(np.diff(rows.indptr))  # a sum of none would be the next row's first number
    for some in (full[start : start + SQUARED] for start in range(0, len(full), SQUARED)):
        first, last = rows.indptr[some[0]], rows.indptr[some[-1] + 1]
        found[some] = np.add.reduceat(rows.data[first:last] ** 2, rows.indptr[some] - first)
    return found


def _chosen(x: SparseRows, places: Tensor) -> SparseRows:
    """The rows with these numbers [*lead]; consecutive ones by a slice, all of them without a copy."""
    flat = places.reshape(-1).numpy()
    first, n = (int(flat[0]), len(flat)) if len(flat) else (0, 0)
    if not bool((np.diff(flat) == 1).all()):
        return SparseRows(x.rows[flat], places.shape)
    return SparseRows(x.rows if n == x.rows.shape[0] else _between(x.rows, first, first + n), places.shape)


def _between(rows: Any, start: int, stop: int) -> Any:
    """Consecutive rows of a matrix, over its memory."""
    first, last = rows.indptr[start], rows.indptr[stop]
    parts = rows.data[first:last], rows.indices[first:last], rows.indptr[start : stop + 1] - first
    return type(rows)(parts, shape=(stop - start, rows.shape[1]), copy=False)


def _numbered(x: SparseRows) -> Tensor:
    """The number of each row [*lead]."""
    return torch.arange(x.rows.shape[0]).reshape(x.lead)


def _along(func: Any, x: SparseRows, dim: int = 0, *rest: Any, **named: Any) -> Any:
    """What chooses along one of the axes before the last."""
    more = func is aten.unsqueeze.default
    axis = dim % (x.ndim + more)
    if x.turned or axis >= len(x.lead) + more:
        return NotImplemented
    return _chosen(x, func(_numbered(x), axis, *rest, **named))


def _index(x: SparseRows, indices: Sequence[Tensor | None]) -> Any:
    if not isinstance(x, SparseRows) or x.turned or len(indices) > len(x.lead):
        return NotImplemented
    return _chosen(x, aten.index.Tensor(_numbered(x), indices))


def _view(x: SparseRows, size: Sequence[int]) -> Any:
    if x.turned or len(size) < 2 or size[-1] != x.rows.shape[1]:
        return NotImplemented
    return SparseRows(x.rows, _numbered(x).reshape(size[:-1]).shape)


def _transposed(x: SparseRows, one: int = 0, other: int = 1) -> Any:
    if {one % x.ndim, other % x.ndim} != {x.ndim - 1, x.ndim - 2}:
        return NotImplemented
    return SparseRows(x.rows, x.lead, turned=not x.turned)


def _permuted(x: SparseRows, dims: Sequence[int]) -> Any:
    axes = [axis % x.ndim for axis in dims]
    if axes == list(range(x.ndim)):
        return _same(x)
    return _transposed(x) if axes == [1, 0] else NotImplemented


def _same(x: SparseRows, **_: Any) -> SparseRows:
    return SparseRows(x.rows, x.lead, turned=x.turned)


def _converted(x: SparseRows, *, dtype: torch.dtype | None = None, **_: Any) -> Any:
    if dtype not in (None, torch.double, torch.float32):
        return NotImplemented
    kind = np.float32 if dtype is torch.float32 else np.float64 if dtype else x.rows.dtype
    return SparseRows(x.rows.astype(kind), x.lead, turned=x.turned)


def _cat(several: Sequence[Tensor], dim: int = 0) -> Any:
    if dim != 0 or not all(isinstance(each, SparseRows) and not each.turned for each in several):
        return NotImplemented
    from scipy.sparse import vstack

    first = several[0].shape
    rows = vstack([each.rows for each in several], format="csr")  # type: ignore[attr-defined]
    return SparseRows(rows, (sum(map(len, several)), *first[1:-1]))


def _mm(left: Tensor, right: Tensor) -> Any:
    """A product of matrices, of which at least one is sparse; two sparse ones by their rows' inner products."""
    if isinstance(left, SparseRows) and isinstance(right, SparseRows):
        return NotImplemented if left.turned or not right.turned else _inner(left.rows, right.rows)
    if not isinstance(left, SparseRows):
        return _mm(right.t(), left.t()).T
    dense = right.detach().cpu().numpy()
    if left.turned:
        return torch.from_numpy(left.rows.T @ dense)
    return torch.from_numpy(_times(left.rows, dense))


def _times(rows: Any, dense: Any) -> Any:
    """Rows [r, d] times a dense matrix [d, k]; of few rows each by itself, whose columns alone are read."""
    if rows.shape[0] > FEW:
        return rows @ np.ascontiguousarray(dense)
    found = np.empty((rows.shape[0], dense.shape[1]), dtype=np.result_type(rows.dtype, dense.dtype))
    for i, (start, stop) in enumerate(pairwise(rows.indptr.tolist())):
        found[i] = rows.data[start:stop] @ dense[rows.indices[start:stop]]
    return found


def _inner(left: Any, right: Any) -> Tensor:
    """Inner products [a, b] of the rows of two matrices; a few are faster with their zeros."""
    if left.shape[0] < right.shape[0]:
        return _inner(right, left).T
    if right.shape[0] <= DENSE and right.shape[0] * right.shape[1] <= DENSE_NUMBERS:
        both = np.unique(right.indices)  # the columns that both may have
        return torch.from_numpy(_times(left[:, both], right[:, both].toarray().T))
    found = torch.empty(left.shape[0], right.shape[0], dtype=torch.from_numpy(left.data[:0]).dtype)
    size, turned = max(1, PAIRS // max(1, right.shape[0])), right.T
    for start in range(0, left.shape[0], size):
        some = left if size >= left.shape[0] else _between(left, start, min(start + size, left.shape[0]))
        (some @ turned).toarray(out=found[start : start + size].numpy())
    return found


def _addmm(bias: Tensor, left: Tensor, right: Tensor, *, beta: float = 1, alpha: float = 1) -> Any:
    found = _mm(left, right) if beta == alpha == 1 and not isinstance(bias, SparseRows) else NotImplemented
    return found if found is NotImplemented else found + bias


def _bmm(left: Tensor, right: Tensor) -> Any:
    """The squared lengths of rows [b, 1, d], as their product with themselves; anything else is dense."""
    if not (isinstance(left, SparseRows) and isinstance(right, SparseRows)) or left.rows is not right.rows:
        return NotImplemented
    if left.turned or not right.turned or left.lead[-1] != 1:
        return NotImplemented
    return left.squares()[..., None]


KNOWN: dict[Any, Callable[..., Any]] = {
    **{
        each: partial(_along, each)
        for each in (aten.slice.Tensor, aten.select.int, aten.unsqueeze.default, aten.index_select.default)
    },
    **dict.fromkeys((aten.detach.default, aten.clone.default, aten.alias.default), _same),
    **dict.fromkeys((aten.t.default, aten.transpose.int), _transposed),
    **dict.fromkeys((aten.view.default, aten._unsafe_view.default, aten._reshape_alias.default), _view),
    aten.permute.default: _permuted,
    aten.index.Tensor: _index,
    aten._to_copy.default: _converted,
    aten.cat.default: _cat,
    aten.mm.default: _mm,
    aten.addmm.default: _addmm,
    aten.bmm.default: _bmm,
}

"""Embedding: each position has used one row of the table."""

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor, nn

from precedents.gradients.factors import Part
from precedents.gradients.layers._rule import Rule
from precedents.gradients.lookups import Lookup
from precedents.gradients.sites import Sites


def parts(module: nn.Embedding, grad: Tensor, rows: Tensor) -> Iterator[Part]:
    """What came back to a position belongs to the row that it used; the padding row gets nothing."""
    b = len(rows)
    rows, values = rows.reshape(b, -1), grad.reshape(b, -1, grad.shape[-1])
    if module.padding_idx is not None:
        values = values.masked_fill((rows == module.padding_idx)[..., None], 0.0)
    yield Lookup(module.weight, rows, values)


def sites(module: nn.Embedding, grad: Tensor, rows: Tensor) -> Iterator[Part]:
    """Position by position, in the shape of the tokens."""
    for part in parts(module, grad, rows):
        yield replace(Sites.of(part), shape=tuple(rows.shape[1:]))


embedding = Rule(
    (nn.Embedding,),
    parts,
    sites=sites,
    applies=lambda module: module.max_norm is None and not module.scale_grad_by_freq,
    broadcasts=True,
    example=lambda: (nn.Embedding(11, 3), (torch.randint(11, (4, 5)),)),
)

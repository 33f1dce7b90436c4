"""EmbeddingBag: each output is the sum, the mean or the largest of the rows that its bag names, weighed or not.

Bags have one length [b, t], or come one after the other [t] with the offsets at which they begin.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from precedents.data.inputs import Spans
from precedents.gradients.factors import Part
from precedents.gradients.layers._rule import Rule
from precedents.gradients.lookups import Lookup


def parts(module: nn.EmbeddingBag, grad: Tensor, rows: Tensor, *received: Tensor | None) -> Iterator[Part]:
    """What came back to a bag belongs, in shares, to all rows in it; the padding row gets nothing."""
    given = [each for each in received if each is not None]
    weights = next((each for each in given if each.is_floating_point()), None)
    starts = next((each for each in given if not each.is_floating_point()), None)
    if starts is not None and module.include_last_offset:
        starts = starts[:-1]
    rows, real, weights = bags(rows, starts, weights, module.padding_idx)
    if module.mode == "max":
        yield Lookup(module.weight, rows, _largest(module.weight.detach()[rows], real, grad))
        return
    shares = real.to(grad) if weights is None else real * weights.to(grad)  # [b, t]
    if module.mode == "mean":
        shares = shares / shares.sum(dim=1, keepdim=True).clamp(min=1)
    yield Lookup(module.weight, rows, shares[..., None] * grad[:, None])


def bags(
    rows: Tensor, starts: Tensor | None, weights: Tensor | None, padding: int | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """The rows that each bag names [b, t], where they are real ones, and their weights, if they have any."""
    real = torch.ones_like(rows, dtype=torch.bool)
    if starts is not None and rows.ndim == 1:  # all bags one after the other
        spans = Spans.of(torch.cat([starts, starts.new_tensor([len(rows)])]).diff())
        weights = None if weights is None else spans.laid_out(weights)
        rows, real = spans.laid_out(rows), spans.laid_out(real)
    return rows, real if padding is None else real & (rows != padding), weights


def _largest(values: Tensor, real: Tensor, grad: Tensor) -> Tensor:
    """What came back [b, e] at the positions [b, t, e] of the largest values; of an empty bag nothing."""
    if not values.shape[1]:
        return values
    best = values.masked_fill(~real[..., None], -torch.inf).argmax(dim=1, keepdim=True)
    return torch.zeros_like(values).scatter(1, best, grad[:, None]) * real[..., None]


def _adds_up(module: nn.EmbeddingBag) -> bool:
    return module.max_norm is None and not module.scale_grad_by_freq


embedding_bag = Rule(
    (nn.EmbeddingBag,),
    parts,
    applies=_adds_up,
    example=lambda: (nn.EmbeddingBag(11, 3), (torch.randint(11, (4, 5)),)),
)

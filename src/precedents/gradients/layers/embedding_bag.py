"""EmbeddingBag: each output is the sum or the mean of the rows that its bag names, weighed or not."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from precedents.gradients.factors import Lookup, Part
from precedents.gradients.layers._rule import Rule


def parts(module: nn.EmbeddingBag, grad: Tensor, rows: Tensor, *received: Tensor | None) -> Iterator[Part]:
    """What came back to a bag belongs, in shares, to all rows in it; the padding row gets nothing."""
    if rows.ndim != 2:
        raise NotImplementedError("EmbeddingBag with offsets")
    weights = next((each for each in received if each is not None), None)  # there are no offsets to mistake
    shares = grad.new_ones(rows.shape) if weights is None else weights.to(grad)  # [b, t]
    if module.padding_idx is not None:
        shares = shares.masked_fill(rows == module.padding_idx, 0.0)
    if module.mode == "mean":
        shares = shares / shares.sum(dim=1, keepdim=True).clamp(min=1)
    yield Lookup(module.weight, rows, shares[..., None] * grad[:, None])


def _adds_up(module: nn.EmbeddingBag) -> bool:
    return module.mode in ("sum", "mean") and module.max_norm is None and not module.scale_grad_by_freq


embedding_bag = Rule(
    (nn.EmbeddingBag,),
    parts,
    applies=_adds_up,
    example=lambda: (nn.EmbeddingBag(11, 3), (torch.randint(11, (4, 5)),)),
)

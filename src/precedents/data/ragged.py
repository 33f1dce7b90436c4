"""Instances of different lengths, which are filled up to the longest of a batch as an attention mask says."""

from collections.abc import Iterator

import torch
from torch import Tensor

from precedents.data.inputs import Inputs, mapped, taken

MASK = "attention_mask"


def by_length(inputs: Inputs, size: int) -> Iterator[tuple[Tensor, Inputs]]:
    """The places of some instances and these, without the padding that none of them needs; the longest first.

    There are no more than `size` of the longest; of shorter ones there are more.
    """
    ends, start = lengths(inputs), 0
    order, longest = ends.argsort(descending=True, stable=True), int(ends.max())
    while start < len(order):
        end = max(1, int(ends[order[start]]))
        places = order[start : start + size * longest // end]
        start += len(places)
        yield places.cpu(), shortened(taken(inputs, places.tolist()), end)


def lengths(inputs: Inputs) -> Tensor:
    """How long each instance is, up to its last token that the mask leaves."""
    mask = _mask(inputs)
    return ((mask != 0) * torch.arange(1, mask.shape[1] + 1, device=mask.device)).amax(dim=1)


def shortened(inputs: Inputs, end: int) -> Inputs:
    """With so many tokens, where there is an entry for each of the mask."""
    shape = _mask(inputs).shape
    return mapped(lambda leaf: leaf[:, :end] if leaf.shape[:2] == shape else leaf, inputs)


def _mask(inputs: Inputs) -> Tensor:
    mask = inputs[MASK] if isinstance(inputs, dict) else None
    assert isinstance(mask, Tensor)
    return mask

"""Attention and bags of embeddings by formulas, in one thread alone: what is faster has no second derivative.

Torch's own switch (`sdpa_kernel`) is one for the whole process: other threads would compute otherwise too.
"""

from inspect import signature
from types import FunctionType
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import (
    embedding,
    embedding_bag,
    multi_head_attention_forward,
    scaled_dot_product_attention,
)
from torch.overrides import TorchFunctionMode

from precedents.data.inputs import Collated, Inputs, leaves
from precedents.errors import NotApplicable
from precedents.gradients.layers.embedding_bag import bags


class FormulaOfAttention(TorchFunctionMode):
    """A context in which attention, and what else has no second derivative, is computed by its formula."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """What the function gives; by a formula where there is one."""
        return INSTEAD.get(func, func)(*args, **(kwargs or {}))


def refuse_nested(inputs: Inputs) -> None:
    """Refuses batches for which there is no formula."""
    if isinstance(inputs, Collated) and any(leaf.is_nested for leaf in leaves(inputs.arguments)):
        raise NotApplicable(
            "The inputs are nested tensors, for which torch has no second derivatives. Use a Fisher metric, as "
            "cosine:gradient/fisher, or let the collate_fn pad its batches."
        )


def formula(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, *rest: Any, **named: Any
) -> Any:
    """softmax(q k^T / sqrt d) v, with the arguments of torch's function."""
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        attn_mask = torch.zeros_like(attn_mask, dtype=query.dtype).masked_fill_(~attn_mask, -torch.inf)
    return torch.ops.aten._scaled_dot_product_attention_math(query, key, value, attn_mask, *rest, **named)[0]


def _bags(rows: Tensor, weight: Tensor, offsets: Tensor | None = None, **named: Any) -> Tensor:
    """The sum, mean or largest of the rows of each bag, with the arguments of torch's function."""
    mode, padding = named.get("mode", "mean"), named.get("padding_idx")
    if named.get("max_norm") is not None or named.get("scale_grad_by_freq"):
        return embedding_bag(rows, weight, offsets, **named)
    starts = offsets[:-1] if offsets is not None and named.get("include_last_offset") else offsets
    rows, real, weights = bags(rows, starts, named.get("per_sample_weights"), padding)
    values = embedding(rows, weight)  # [b, t, e]
    if mode == "max":
        found = values.masked_fill(~real[..., None], -torch.inf).max(dim=1).values
        return torch.where(real.any(dim=1, keepdim=True), found, 0.0)
    shares = real.to(values) if weights is None else real * weights
    total = (shares[..., None] * values).sum(dim=1)
    return total / real.sum(dim=1, keepdim=True).clamp(min=1) if mode == "mean" else total


def formula_of_bags(*given: Any, **named: Any) -> Tensor:
    """`embedding_bag` by its formula, with arguments by position or by name."""
    known = {**dict(zip(ARGUMENTS, given, strict=False)), **named}
    return _bags(known.pop("input"), known.pop("weight"), **known)


ARGUMENTS = list(signature(embedding_bag).parameters)


def _within(function: Any) -> Any:
    """A function of torch that calls attention itself, with the formula in its place."""
    names = {"scaled_dot_product_attention": formula, "has_torch_function": lambda _: False}
    return FunctionType(
        function.__code__, {**function.__globals__, **names}, function.__name__, function.__defaults__
    )


INSTEAD = {
    scaled_dot_product_attention: formula,
    embedding_bag: formula_of_bags,
    multi_head_attention_forward: _within(multi_head_attention_forward),
}

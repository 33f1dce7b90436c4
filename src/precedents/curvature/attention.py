"""Attention by its formula, in one thread alone: the kinds that are faster have no second derivative.

Torch's own switch (`sdpa_kernel`) is one for the whole process: other threads would compute otherwise too.
"""

from types import FunctionType
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import multi_head_attention_forward, scaled_dot_product_attention
from torch.overrides import TorchFunctionMode


class FormulaOfAttention(TorchFunctionMode):
    """A context in which attention is computed by its formula."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """What the function gives; of attention, by the formula."""
        return INSTEAD.get(func, func)(*args, **(kwargs or {}))


def formula(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, *rest: Any, **named: Any
) -> Any:
    """softmax(q k^T / sqrt d) v, with the arguments of torch's function."""
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        attn_mask = torch.zeros_like(attn_mask, dtype=query.dtype).masked_fill_(~attn_mask, -torch.inf)
    return torch.ops.aten._scaled_dot_product_attention_math(query, key, value, attn_mask, *rest, **named)[0]


def _within(function: Any) -> Any:
    """A function of torch that calls attention itself, with the formula in its place."""
    names = {"scaled_dot_product_attention": formula, "has_torch_function": lambda _: False}
    return FunctionType(
        function.__code__, {**function.__globals__, **names}, function.__name__, function.__defaults__
    )


INSTEAD = {
    scaled_dot_product_attention: formula,
    multi_head_attention_forward: _within(multi_head_attention_forward),
}

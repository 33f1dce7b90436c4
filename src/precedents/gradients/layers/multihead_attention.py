"""MultiheadAttention: softmax(q k^T / sqrt d) v in each head, between linear projections.

The layer is rewritten with its projections in the open: their gradients are those of Linear layers.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, pad, scaled_dot_product_attention
from torch.nn.modules.linear import NonDynamicallyQuantizableLinear

from precedents.gradients.factors import Dense, Outer, Part, trainable
from precedents.gradients.layers._rule import EVERYTHING, Rule
from precedents.gradients.recording import Backs, Recorder


@dataclass(frozen=True)
class Asked:
    """What attention is asked for besides, in the order of nn.MultiheadAttention."""

    key_padding_mask: Tensor | None = None
    need_weights: bool = True
    attn_mask: Tensor | None = None
    average_attn_weights: bool = True
    is_causal: bool = False


class Attention(nn.MultiheadAttention):
    """The same attention, with the same attributes and parameters, that tells of its projections."""

    def __init__(self, module: nn.MultiheadAttention, recorder: Recorder) -> None:
        nn.Module.__init__(self)
        self.__dict__.update(module.__dict__)
        self.recorder = recorder

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, *rest: Any, **named: Any
    ) -> tuple[Tensor, Tensor | None]:
        """What the layer itself returns; it is called as nn.MultiheadAttention is."""
        asked = Asked(*rest, **named)
        if query.ndim != 3:
            raise NotImplementedError("MultiheadAttention without a batch axis")
        if not self.batch_first:
            swapped = {id(x): x.transpose(0, 1) for x in (query, key, value)}  # one tensor stays one
            query, key, value = swapped[id(query)], swapped[id(key)], swapped[id(value)]
        q, k, v = self._projected(query, key, value)  # [b, t, e], [b, s, e], [b, s, e]
        k, v = self._lengthened(k, self.bias_k), self._lengthened(v, self.bias_v)
        q, k, v = (x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for x in (q, k, v))  # [b, h, ., d]
        causal = (
            asked.is_causal and asked.key_padding_mask is None and not asked.need_weights
        )  # as torch reads this hint
        mask = None if causal else self._mask(asked.attn_mask, asked.key_padding_mask, q, k)
        weights = None
        if asked.need_weights:
            scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-2, -1)  # [b, h, t, s]
            weights = (scores if mask is None else scores + mask).softmax(dim=-1)
            attended = weights @ v
            weights = weights.mean(dim=1) if asked.average_attn_weights else weights
        else:
            attended = scaled_dot_product_attention(q, k, v, mask, is_causal=causal)
        output = self._linear(attended.transpose(1, 2).flatten(2), self.out_proj.weight, self.out_proj.bias)
        return output if self.batch_first else output.transpose(0, 1), weights

    def _projected(self, query: Tensor, key: Tensor, value: Tensor) -> Sequence[Tensor]:
        """Queries, keys and values."""
        packed, bias = self.in_proj_weight, self.in_proj_bias
        if packed is not None and query is key is value:
            return self._linear(query, packed, bias).chunk(3, dim=-1)
        owned = [self.q_proj_weight, self.k_proj_weight, self.v_proj_weight] if packed is None else [packed]
        weights = owned if packed is None else packed.chunk(3)
        biases = [None] * 3 if bias is None else bias.chunk(3)
        received = [query, key, value]
        outputs = [linear(x, w, b) for x, w, b in zip(received, weights, biases, strict=True)]
        if any(map(trainable, [*owned, bias])):
            self.recorder.catch(outputs, partial(_several, owned, bias, received, outputs))
        return outputs

    def _linear(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        output = linear(x.flatten(0, 1), weight, bias)  # no view of another, so that it may be changed in place
        if trainable(weight) or trainable(bias):
            self.recorder.catch([output], partial(_several, [weight], bias, [x], [output]))
        return output.unflatten(0, x.shape[:2])

    def _lengthened(self, x: Tensor, bias: Tensor | None) -> Tensor:
        """[b, s, e] with one more position for a bias, and one of zeros, where the layer has them."""
        if bias is not None:
            row = bias.expand(len(x), 1, -1)
            self.recorder.catch([row], partial(_one_row, bias))
            x = torch.cat([x, row], dim=1)
        return pad(x, (0, 0, 0, 1)) if self.add_zero_attn else x

    def _mask(self, mask: Tensor | None, padding: Tensor | None, q: Tensor, k: Tensor) -> Tensor | None:
        """What is added to the scores, with axes that broadcast to [b, h, t, s]."""
        summands = []
        if mask is not None:
            heads = (len(q), self.num_heads) if mask.ndim == 3 else (1, 1)
            summands.append(_additive(mask, q).reshape(*heads, *mask.shape[-2:]))
        if padding is not None:
            summands.append(_additive(padding, q)[:, None, None])
        if not summands:
            return None
        total = summands[0] if len(summands) == 1 else summands[0] + summands[1]
        return pad(total, (0, k.shape[2] - total.shape[3]))  # positions that were added are seen by all


def _additive(mask: Tensor, like: Tensor) -> Tensor:
    """A mask of booleans as numbers to add."""
    if mask.dtype != torch.bool:
        return mask
    return torch.zeros_like(mask, dtype=like.dtype).masked_fill_(mask, -torch.inf)


def _several(
    weights: Sequence[Tensor], bias: Tensor | None, received: list[Tensor], outputs: list[Tensor], backs: Backs
) -> Iterator[Part]:
    """The gradients of projections that have a weight each, or that share one, stacked; and of their bias."""
    caught = iter(backs)
    found = [next(caught) if output.requires_grad else None for output in outputs]
    full = [
        (torch.zeros_like(output) if back is None else back).reshape(*x.shape[:2], -1)  # [b, t, .]
        for back, output, x in zip(found, outputs, received, strict=True)
    ]
    received = [x.detach() for x in received]
    if len(weights) == len(full):
        for weight, back, x in zip(weights, full, received, strict=True):
            if trainable(weight):
                yield Outer(weight, back, x)
    elif trainable(weights[0]):
        formed = [torch.bmm(back.transpose(1, 2), x) for back, x in zip(full, received, strict=True)]
        yield Dense(weights[0], torch.cat(formed, dim=1))
    if bias is not None and trainable(bias):
        yield Dense(bias, torch.cat([back.sum(dim=1) for back in full], dim=1))


def _one_row(bias: Tensor, backs: Backs) -> Iterator[Part]:
    if backs[0] is not None:
        yield Dense(bias, backs[0][:, None])


def _is_plain(module: nn.MultiheadAttention) -> bool:
    """Whether its parameters are its own and nothing is dropped at random."""
    names = {"in_proj_weight", "in_proj_bias", "q_proj_weight", "k_proj_weight", "v_proj_weight"}
    return (
        set(module._parameters) <= names | {"bias_k", "bias_v"}
        and set(module._modules) == {"out_proj"}
        and type(module.out_proj) is NonDynamicallyQuantizableLinear
        and set(module.out_proj._parameters) == {"weight", "bias"}
        and not (module.training and module.dropout)
    )


multihead_attention = Rule(
    (nn.MultiheadAttention,),
    rewritten=Attention,
    applies=_is_plain,
    covers=EVERYTHING,
    example=lambda: (nn.MultiheadAttention(6, 2, batch_first=True), (torch.randn(4, 5, 6),) * 3),
)

from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from gradients.single import Alone, B, Inside, frozen, normal, ruled, slow, stirred
from precedents.gradients.layers.multihead_attention import multihead_attention
from precedents.gradients.recording import Recorder

NAMES = [
    "in_proj_weight",
    "in_proj_bias",
    "q_proj_weight",
    "k_proj_weight",
    "v_proj_weight",
    "bias_k",
    "bias_v",
]


@dataclass(frozen=True)
class Call:
    """How the layer is called."""

    layout: str = "one"  # one tensor as query, key and value; or as key and value; or three
    mask: str = ""
    boolean: bool = True
    padded: bool = False
    causal: bool = False
    need_weights: bool = False
    average: bool = True


class Attends(nn.Module):
    """Attention between sequences [b, t, e], with the settings of a call; returns all that it can."""

    def __init__(self, attention: nn.MultiheadAttention, call: Call) -> None:
        super().__init__()
        self.attention, self.call = attention, call

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        if self.call.layout != "three":
            value = key
        if self.call.layout == "one":
            key = value = query
        (b, t), s = query.shape[:2], key.shape[1]
        padding = self.given(key[:, :, 0] > 0.5) if self.call.padded else None
        if not self.attention.batch_first:
            swapped = {x: x.transpose(0, 1) for x in (query, key, value)}
            query, key, value = swapped[query], swapped[key], swapped[value]
        output, weights = self.attention(
            query,
            key,
            value,
            key_padding_mask=padding,
            need_weights=self.call.need_weights,
            attn_mask=self.mask(b, t, s),
            average_attn_weights=self.call.average,
            is_causal=self.call.causal,
        )
        output = output if self.attention.batch_first else output.transpose(0, 1)
        seen = [output.flatten(1)] if weights is None else [output.flatten(1), weights.flatten(1)]
        return torch.cat(seen, dim=1)

    def mask(self, b: int, t: int, s: int) -> Tensor | None:
        """None, of all instances, or of each instance and head; every position sees the first."""
        if self.call.causal:
            return self.given(torch.ones(t, s, dtype=torch.bool).triu(1))
        if not self.call.mask:
            return None
        heads = self.attention.num_heads
        shape = (t, s) if self.call.mask == "common" else (heads, t, s)
        hidden = torch.rand(shape, generator=torch.Generator().manual_seed(0)) < 0.4
        return self.given(hidden if self.call.mask == "common" else hidden.repeat(b, 1, 1))

    def given(self, hidden: Tensor) -> Tensor:
        hidden = hidden.clone()
        hidden[..., 0] = False
        return hidden if self.call.boolean else torch.where(hidden, -1.5, 0.25).double()


@st.composite
def worlds(draw) -> tuple[Attends, tuple[Tensor, Tensor, Tensor]]:
    """A layer of any settings with a call of any settings, and what it receives."""
    heads, t, s = (draw(st.integers(1, 3)) for _ in range(3))
    e = heads * draw(st.integers(1, 3))
    layout = draw(st.sampled_from(["one", "two", "three"]))
    other = {} if layout == "one" else {"kdim": draw(st.none() | st.integers(1, 3))}
    other |= (
        {"vdim": other["kdim"] if layout == "two" else draw(st.none() | st.integers(1, 3))} if other else {}
    )
    flags = {name: draw(st.booleans()) for name in ("bias", "add_bias_kv", "add_zero_attn", "batch_first")}
    attention = nn.MultiheadAttention(e, heads, dropout=0.5, **flags, **other)
    call = Call(
        layout,
        draw(st.sampled_from(["", "common", "each"])),
        *(draw(st.booleans()) for _ in range(5)),
    )
    received = normal(B, t, e), normal(B, s, attention.kdim), normal(B, s, attention.vdim)
    return stirred(Attends(attention, call)), received


@settings(max_examples=80)
@given(worlds())
def test_the_rewritten_layer_returns_what_the_layer_returns(drawn) -> None:
    world, received = drawn
    expected = world(*received)
    world.attention = multihead_attention.rewritten(world.attention, Recorder())
    torch.testing.assert_close(world(*received), expected, rtol=1e-9, atol=1e-12)


@settings(max_examples=60)
@given(worlds(), st.sampled_from(["", *NAMES, "weight", "bias"]))
def test_multihead_attention(drawn, freeze) -> None:
    world, received = drawn
    frozen(world, freeze)
    for model in (Alone(world, *received), Inside(world, *received)):
        ruled(model, received)


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
def test_the_rewritten_layer_gives_weights_of_the_same_shape(need_weights, average, batch_first) -> None:
    layer, x = stirred(nn.MultiheadAttention(6, 2, batch_first=batch_first)), normal(3, 4, 6)
    rewritten = multihead_attention.rewritten(layer, Recorder())
    call = {"need_weights": need_weights, "average_attn_weights": average}
    (output, weights), (expected, theirs) = rewritten(x, x, x, **call), layer(x, x, x, **call)
    torch.testing.assert_close(output, expected, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(weights, theirs, rtol=1e-9, atol=1e-12)


def test_the_rewritten_layer_shares_parameters_and_keeps_attributes() -> None:
    layer = nn.MultiheadAttention(6, 2, kdim=3, add_bias_kv=True)
    rewritten = multihead_attention.rewritten(layer, Recorder())
    assert dict(rewritten.named_parameters()).keys() == dict(layer.named_parameters()).keys()
    assert all(a is b for a, b in zip(rewritten.parameters(), layer.parameters(), strict=True))
    assert all(getattr(rewritten, name) is value for name, value in vars(layer).items())
    assert not hasattr(layer, "recorder")


class Biased(nn.Module):
    """A mask that is learned and depends on the instance, as that of relative positions may."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(6, 2, batch_first=True)
        self.scores = nn.Linear(6, 2 * 4)

    def forward(self, x: Tensor) -> Tensor:
        mask = self.scores(x).unflatten(2, (2, 4)).transpose(1, 2).flatten(0, 1)  # [b h, t, s]
        return self.attention(x, x, x, attn_mask=mask)[0]


def test_a_learned_mask() -> None:
    x = normal(B, 4, 6)
    ruled(Alone(stirred(Biased()), x), x)


def test_a_wide_projection_is_one_outer_product() -> None:
    x = normal(B, 1, 30)
    plan = ruled(
        Alone(Attends(stirred(nn.MultiheadAttention(30, 2, batch_first=True)), Call()), *[x] * 3), (x, x, x)
    )
    names = {name for name, p in plan.model.parameters.items() if id(p) in plan.factored}
    assert {"layer.attention.in_proj_weight", "layer.attention.out_proj.weight"} <= names


class Unbatched(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(6, 2)

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([self.attention(each, each, each)[0] for each in x])


def test_sequences_without_a_batch_axis_are_slow_and_right() -> None:
    x = normal(B, 4, 6)
    assert "without a batch axis" in slow(Alone(stirred(Unbatched()), x), x)[1]

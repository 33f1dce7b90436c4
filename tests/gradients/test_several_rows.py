"""Layers with several rows for each instance, and tables that all instances look up together."""

import warnings
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor, nn

import precedents as pr
from gradients.single import B, agree, factored, normal, ruled, slow, stirred
from precedents.classifier.classifier import Classifier
from precedents.gradients.located import located
from precedents.gradients.search import SlowGradientsWarning

MORE = 7  # instances, of which two are tried
SMALL: dict[str, Any] = {
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "hidden_size": 16,
    "vocab_size": 40,
    "num_labels": 3,
}


def tokens(b: int = MORE, t: int = 5) -> Tensor:
    return torch.randint(3, 40, (b, t))


class InARow(nn.Module):
    """All tokens in a row, [b t, width]."""

    def __init__(self, words: int = 40, width: int = 6) -> None:
        super().__init__()
        self.words, self.body = nn.Embedding(words, width), nn.Linear(width, width)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 3)

    def forward(self, tokens: Tensor) -> Tensor:
        b, t = tokens.shape
        x = self.words(tokens)
        x = self.norm(self.body(x.reshape(b * t, -1)).tanh()).view(b, t, -1)
        return self.head(x.mean(dim=1))


class Frames(nn.Module):
    """A small network for each frame of a video [b, t, 3, h, w]."""

    def __init__(self, kernel: int, channels: int) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, channels, kernel), nn.BatchNorm2d(channels)
        self.head = nn.Linear(channels, 3)

    def forward(self, x: Tensor) -> Tensor:
        each = self.norm(self.conv(x.flatten(0, 1))).relu().mean(dim=(2, 3))
        return self.head(each.view(*x.shape[:2], -1).mean(dim=1))


class Windows(nn.Module):
    """Attention within windows [b w, n, width], by layers of torch."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.stem, self.layer, self.head = nn.Linear(3, 6), layer, nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        windows = self.layer(self.stem(x).flatten(0, 1))
        return self.head(windows.view(*x.shape[:2], -1, 6).mean(dim=(1, 2)))


@pytest.mark.parametrize("b", [1, 2, MORE])
@pytest.mark.parametrize("t", [2, 5])
def test_tokens_in_a_row(b, t) -> None:
    agree(stirred(InARow()), tokens(b, t))


def test_tokens_in_a_row_have_rules() -> None:
    ruled(stirred(InARow()), tokens())


@pytest.mark.parametrize(("kernel", "channels"), [(1, 4), (3, 4), (3, 4000)])
def test_frames(kernel, channels) -> None:
    ruled(stirred(Frames(kernel, channels)), normal(3, 2, 3, 5, 5))


@pytest.mark.parametrize("layer", [nn.LayerNorm(6), nn.TransformerEncoderLayer(6, 2, 5, batch_first=True)])
def test_windows(layer) -> None:
    ruled(stirred(Windows(layer)), normal(MORE, 4, 5, 3))


def test_rows_in_any_order_of_instances_are_not_mistaken_for_theirs() -> None:
    class PositionsFirst(InARow):
        def forward(self, tokens: Tensor) -> Tensor:
            x = self.words(tokens.T)  # [t, b, width]
            x = self.norm(self.body(x.reshape(tokens.numel(), -1)).tanh()).view(x.shape)
            return self.head(x.mean(dim=0))

    plan, message = slow(stirred(PositionsFirst()), tokens())
    assert set(plan.rest) == {"body.weight", "body.bias", "norm.weight", "norm.bias"}
    assert "vmap over the whole model for body.weight and 3 more" in message


class Distances(nn.Module):
    """A bias of attention that is looked up as [t, t], once for all instances."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.bias = nn.Embedding(40, 6), nn.Embedding(9, 1)
        self.mix, self.head = nn.Linear(6, 6), nn.Linear(6, 3)

    def forward(self, tokens: Tensor) -> Tensor:
        x, places = self.words(tokens), torch.arange(tokens.shape[1])
        bias = self.bias((places[:, None] - places[None]).abs())[..., 0]
        x = (self.mix(x) @ x.transpose(1, 2) + bias).softmax(dim=2) @ x
        return self.head(x.tanh().mean(dim=1))


@pytest.mark.parametrize("t", [2, 4, 5])
def test_a_table_for_all_instances_alone_is_slow(t) -> None:
    plan, message = slow(stirred(Distances()), tokens(MORE, t))
    assert plan.rest == ("bias.weight",)
    assert "bias.weight, used outside of a layer or by all instances together" in message


def test_shares_have_what_no_rule_gives() -> None:
    x = tokens()
    classifier = Classifier.of(stirred(Distances()), pr.Examples.of((x, torch.arange(MORE) % 3)))
    with pytest.warns(SlowGradientsWarning):
        found = located(classifier, pr.Examples.of((x, torch.arange(MORE) % 3)).take([2]))
    formed = torch.cat([each.formed().flatten() for each in found.sites.values()]) * found.length
    torch.testing.assert_close(formed, found.rows.dense()[0], rtol=0, atol=1e-12)


class Headed(nn.Module):
    """The logits of an encoder of `transformers`."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder, self.head = encoder, nn.Linear(16, 3)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.encoder(input_ids=tokens).last_hidden_state.mean(dim=1))


class Logits(nn.Module):
    """What a classifier of `transformers` returns, as a tensor."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> Tensor:
        return self.model(x).logits


def opt() -> Any:
    config = transformers.OPTConfig(
        **SMALL, ffn_dim=20, word_embed_proj_dim=16, pad_token_id=1, max_position_embeddings=40
    )
    return Logits(transformers.OPTForSequenceClassification(config))


def test_opt_has_rules() -> None:
    plan = ruled(stirred(opt()), tokens())
    assert "model.model.decoder.embed_positions.weight" in factored(plan)


def test_mpnet_and_t5_are_slow_for_a_bias_alone() -> None:
    config = transformers.MPNetConfig(**SMALL, intermediate_size=20)
    plan, _ = slow(stirred(Logits(transformers.MPNetForSequenceClassification(config))), tokens())
    assert plan.rest == ("model.mpnet.encoder.relative_attention_bias.weight",)
    config = transformers.T5Config(d_model=16, d_kv=8, d_ff=20, num_layers=2, num_heads=2, vocab_size=40)
    plan, message = slow(stirred(Headed(transformers.T5EncoderModel(config))), tokens(), within=1e-7)
    assert [name.rpartition(".")[0].rpartition(".")[2] for name in plan.rest] == ["relative_attention_bias"]
    assert "vmap over the whole model" in message


def test_swin_is_slow_for_its_tables_alone() -> None:
    config = transformers.SwinConfig(
        image_size=16, patch_size=2, embed_dim=8, depths=[1, 1], num_heads=[2, 2], window_size=4, num_labels=3
    )
    model = stirred(Logits(transformers.SwinForImageClassification(config)))
    plan, _ = slow(model, normal(3, 3, 16, 16))
    assert len(plan.rest) == 2
    assert all(name.endswith("relative_position_bias_table") for name in plan.rest)


class Scaled(nn.Embedding):
    """A layer that derives from one with a rule, and does something else besides."""

    def forward(self, tokens: Tensor) -> Tensor:
        return 3 * super().forward(tokens + 2)


class ChannelsFirst(nn.LayerNorm):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.transpose(1, 2)).transpose(1, 2)


class Halved(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x / 2, self.weight, self.bias)


def test_layers_that_derive_from_others_have_their_rules() -> None:
    model = nn.Sequential(
        Scaled(42, 6), ChannelsFirst(5), nn.Tanh(), Halved(6, 4), nn.Flatten(), nn.Linear(20, 3)
    )
    plan = ruled(stirred(model), tokens())
    assert {"0.weight", "3.weight"} <= {*factored(plan), "3.weight"}
    assert set(plan.recording.copies.values()) >= {()}


def test_a_large_model_with_a_table_for_all_fits_a_budget() -> None:
    class Large(Distances):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(200_000, 6)

    torch.manual_seed(0)
    model, train = stirred(Large()), (torch.randint(200_000, (30, 5)), torch.arange(30) % 3)
    with pytest.warns(SlowGradientsWarning, match="for bias.weight"):
        less = pr.Explainer(model, train, "dot_grad", memory="60 MB")
    ours = less.scores(train[0][:B], labels=train[1][:B])
    theirs = _products(model, train, B)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-8 * float(theirs.abs().max()))


def _products(model: nn.Module, train: tuple[Tensor, Tensor], m: int) -> Tensor:
    """Inner products of gradients by plain autograd."""
    from gradients.single import one_at_a_time

    rows = one_at_a_time(model, *train)
    return rows[:m] @ rows.T


def test_a_large_model_in_a_row_has_rules() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plan = ruled(stirred(InARow(words=200_000)), tokens())
    assert {"words.weight"} == factored(plan)


def test_a_parameter_that_is_not_used_is_not_slow() -> None:
    model = InARow()
    model.idle = nn.Parameter(torch.ones(2))
    ruled(stirred(model), tokens())

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from gradients.single import Alone, B, Inside, agree, frozen, normal, ruled, stirred


class Reader(nn.Module):
    """Tokens, a transformer encoder that does not look at padding, and a head."""

    def __init__(
        self, layers: int = 2, first: bool = False, activation: str = "relu", bias: bool = True
    ) -> None:
        super().__init__()
        self.words = nn.Embedding(9, 6, padding_idx=0)
        layer = nn.TransformerEncoderLayer(
            6, 2, 7, norm_first=first, activation=activation, bias=bias, batch_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, layers, nn.LayerNorm(6), enable_nested_tensor=False)
        self.head = nn.Linear(6, 3)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.encoder(self.words(tokens), src_key_padding_mask=tokens == 0).mean(dim=1))


@pytest.fixture
def tokens() -> Tensor:
    tokens = torch.randint(1, 9, (B, 5))
    tokens[1, 3:], tokens[2, 1:] = 0, 0
    return tokens


@settings(max_examples=10)
@given(st.integers(1, 2), st.booleans(), st.sampled_from(["relu", "gelu"]), st.booleans())
def test_an_encoder(layers, first, activation, bias) -> None:
    ruled(
        stirred(Reader(layers, first, activation, bias)),
        torch.randint(9, (B, 5)).index_fill(1, torch.tensor([0]), 1),
    )


def test_an_encoder_with_padding(tokens) -> None:
    ruled(stirred(Reader()), tokens)


@pytest.mark.parametrize("name", ["weight", "bias", "in_proj_weight", "in_proj_bias"])
def test_an_encoder_with_frozen_parameters(name, tokens) -> None:
    ruled(frozen(stirred(Reader()), name), tokens)


@pytest.mark.parametrize("part", ["words", "encoder", "encoder.layers.0", "encoder.layers.1.self_attn", "head"])
def test_an_encoder_with_a_frozen_part(part, tokens) -> None:
    model = stirred(Reader())
    model.get_submodule(part).requires_grad_(False)
    ruled(model, tokens)


class Causal(nn.Module):
    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.encoder(x, mask=nn.Transformer.generate_square_subsequent_mask(x.shape[1], dtype=x.dtype))


def test_a_causal_encoder() -> None:
    x = normal(B, 4, 6)
    ruled(Inside(stirred(Causal(nn.TransformerEncoderLayer(6, 2, 7, batch_first=True))), x), x)


@pytest.mark.parametrize("first", [False, True])
def test_a_decoder(first) -> None:
    layer = nn.TransformerDecoderLayer(6, 2, 7, norm_first=first, batch_first=True)
    inputs = normal(B, 3, 6), normal(B, 5, 6)
    ruled(Inside(stirred(layer), *inputs), inputs)
    ruled(Inside(stirred(nn.TransformerDecoder(layer, 2)), *inputs), inputs)


def test_a_whole_transformer() -> None:
    inputs = normal(B, 5, 6), normal(B, 3, 6)
    ruled(Inside(stirred(nn.Transformer(6, 2, 1, 1, 7, batch_first=True)), *inputs), inputs)


class TimeFirst(nn.Module):
    """Layers as torch has them unless told otherwise: the instances are along the second axis."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x.transpose(0, 1)).transpose(0, 1)


@pytest.mark.parametrize("t", [1, 3, B])
def test_an_encoder_with_the_batch_as_second_axis(t) -> None:
    x = normal(B, t, 6)
    ruled(Inside(stirred(TimeFirst(nn.TransformerEncoderLayer(6, 2, 7))), x), x)


@pytest.mark.parametrize("layer", [nn.LayerNorm(6), nn.RMSNorm(6), nn.Linear(6, 5), nn.PReLU()])
def test_a_layer_with_the_batch_as_second_axis(layer) -> None:
    x = normal(B, 3, 6)
    ruled(Inside(stirred(TimeFirst(nn.Linear(6, 6), nn.Tanh(), layer)), x), x)


def test_words_with_the_batch_as_second_axis(tokens) -> None:
    model = TimeFirst(nn.Embedding(9, 6, padding_idx=0), nn.TransformerEncoderLayer(6, 2, 7), nn.LayerNorm(6))
    ruled(Alone(stirred(model), tokens), tokens)


class Placed(TimeFirst):
    """With positions of its own."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__(*layers)
        self.positions = nn.Parameter(torch.zeros(7, 1, 6))

    def forward(self, x: Tensor) -> Tensor:
        x = x.transpose(0, 1)
        return self.layers(x + self.positions[: len(x)]).transpose(0, 1)


@pytest.mark.parametrize("t", [3, B])
def test_positions_with_the_batch_as_second_axis(t) -> None:
    x = normal(B, t, 6)
    ruled(Inside(stirred(Placed(nn.TransformerEncoderLayer(6, 2, 7))), x), x)


class Remembers(nn.Module):
    """A recurrent layer between others, all with the instances along the second axis."""

    def __init__(self, kind: type[nn.Module]) -> None:
        super().__init__()
        self.before, self.memory, self.norm = nn.Linear(6, 5), kind(5, 4, bidirectional=True), nn.LayerNorm(8)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.memory(self.before(x.transpose(0, 1)))[0]).mean(dim=0)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_a_recurrent_layer_with_the_batch_as_second_axis(kind) -> None:
    x = normal(B, 3, 6)
    ruled(Inside(stirred(Remembers(kind)), x), x)


@pytest.mark.filterwarnings("ignore")
def test_as_many_positions_as_instances_are_tried_are_slow_and_right() -> None:
    x = normal(B, 2, 6)
    agree(Inside(stirred(TimeFirst(nn.TransformerEncoderLayer(6, 2, 7))), x), x)

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from gradients.single import CLASSES, B, agree, frozen, ruled, stirred

KINDS = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}
STEPS = 5


class Reader(nn.Module):
    """Token numbers and lengths through a recurrent layer; every one of its outputs is used."""

    def __init__(self, layer: nn.Module, packed: bool = False, started: bool = False) -> None:
        super().__init__()
        self.table = nn.Embedding(20, layer.input_size)
        self.layer, self.packed, self.started = layer, packed, started
        width = layer.hidden_size * (2 if layer.bidirectional else 1)
        self.last, self.mean = nn.Linear(width, CLASSES), nn.Linear(width, CLASSES)

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        first = self.layer.batch_first
        x = self.table(tokens) if first else self.table(tokens).transpose(0, 1)
        state = None
        if self.started:
            both = 2 if self.layer.bidirectional else 1
            state = x.new_full((self.layer.num_layers * both, len(tokens), self.layer.hidden_size), 0.3)
            state = (state, -state) if isinstance(self.layer, nn.LSTM) else state
        if self.packed:
            x = pack_padded_sequence(x, lengths, batch_first=first, enforce_sorted=False)
        output, end = self.layer(x, state)
        if self.packed:
            output, _ = pad_packed_sequence(output, batch_first=first, total_length=STEPS)
        end = end[0] + 0.3 * end[1] if isinstance(end, tuple) else end
        directions = end[-2:] if self.layer.bidirectional else end[-1:]
        return self.last(torch.cat(list(directions), dim=1)) + self.mean(output.mean(dim=1 if first else 0))


def asked() -> tuple[Tensor, Tensor]:
    return torch.randint(0, 20, (B, STEPS)), torch.randint(1, STEPS + 1, (B,))


@settings(max_examples=40)
@given(
    kind=st.sampled_from(list(KINDS)),
    layers=st.integers(1, 3),
    both=st.booleans(),
    bias=st.booleans(),
    first=st.booleans(),
    packed=st.booleans(),
    started=st.booleans(),
)
def test_recurrent(kind, layers, both, bias, first, packed, started) -> None:
    layer = KINDS[kind](3, 4, layers, bias=bias, batch_first=first, bidirectional=both)
    ruled(stirred(Reader(layer, packed, started)), asked())


def test_rnn_with_relu() -> None:
    ruled(stirred(Reader(nn.RNN(3, 4, nonlinearity="relu", batch_first=True))), asked())


@pytest.mark.parametrize("name", ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"])
@pytest.mark.parametrize("kind", KINDS)
def test_frozen_weights(kind, name) -> None:
    ruled(frozen(stirred(Reader(KINDS[kind](3, 4, batch_first=True))), name), asked())


def test_the_same_layer_called_twice() -> None:
    class Twice(Reader):
        def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
            return super().forward(tokens, lengths) + 0.5 * super().forward(tokens.flip(1), lengths)

    ruled(stirred(Twice(nn.GRU(3, 4, batch_first=True))), asked())


@pytest.mark.filterwarnings("ignore")
def test_projections_take_a_slower_fallback_and_are_right() -> None:
    class Projected(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.head = nn.LSTM(3, 4, proj_size=2, batch_first=True), nn.Linear(2, CLASSES)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.layer(x)[0].mean(dim=1))

    agree(stirred(Projected()), torch.randn(B, STEPS, 3, dtype=torch.double))

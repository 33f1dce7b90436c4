"""LSTM, GRU and RNN, unrolled: the gradient of a weight is the sum over steps of what came back to the gates
times what the step received. Layers, both directions and packed sequences.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from precedents.gradients.factors import Dense, Outer, Part, trainable
from precedents.gradients.layers._lstm_scan import LSTMScan
from precedents.gradients.layers._rule import EVERYTHING, Rule
from precedents.gradients.recording import Recorder

HiddenState = Tensor | tuple[Tensor, Tensor] | None


class Unrolled:
    """Computes what the recurrent module computes, from the same parameters, and records the gates."""

    def __init__(self, module: nn.LSTM | nn.GRU | nn.RNN, recorder: Recorder) -> None:
        self.module, self.recorder = module, recorder
        self.directions = 2 if module.bidirectional else 1

    def __call__(self, input: Any, hx: HiddenState = None) -> tuple[Any, Any]:
        """As the module it stands for."""
        module = self.module
        packed = isinstance(input, PackedSequence)
        x, lengths = pad_packed_sequence(input) if packed else (input, None)
        if not packed and module.batch_first:
            x = x.transpose(0, 1)  # [t, b, i]
        valid = None
        if lengths is not None:
            valid = (torch.arange(len(x))[:, None] < lengths)[:, :, None].to(x.device)  # [t, b, 1]
        states = _states(module, hx, x, self.directions)
        ends: list[tuple[Tensor, ...]] = []
        for layer in range(module.num_layers):
            own = slice(layer * self.directions, (layer + 1) * self.directions)
            x, end = self._layer(layer, x, [state[own] for state in states], valid)
            ends.append(end)
        last = [torch.cat(each) for each in zip(*ends, strict=True)]
        output: Any = x if packed or not module.batch_first else x.transpose(0, 1)
        if packed:
            output = pack_padded_sequence(x, lengths, enforce_sorted=False)  # type: ignore[arg-type]
        return output, tuple(last) if isinstance(module, nn.LSTM) else last[0]

    def _layer(
        self, layer: int, x: Tensor, states: list[Tensor], valid: Tensor | None
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Outputs [t, b, directions * h] and the last states [directions, b, h] of one layer."""
        both = range(self.directions)
        towards = torch.stack([x.flip(0) if d else x for d in both], dim=1)  # [t, d, b, i], in scanning order
        seen = None if valid is None else torch.stack([valid.flip(0) if d else valid for d in both], dim=1)
        weights = [self._weights(layer, d) for d in both]
        into, across = (torch.stack([w[k].T for w in weights]) for k in (0, 1))  # [d, i, g], [d, h, g]
        pre = torch.matmul(towards, into)  # [t, d, b, g]
        shifts: list[Tensor | None] = [None, None]
        if len(weights[0]) == 4:
            shifts = [torch.stack([w[k] for w in weights])[:, None] for k in (2, 3)]  # [d, 1, g]
        scan = {nn.LSTM: _lstm, nn.GRU: _gru, nn.RNN: _rnn}[type(self.module)]
        if shifts[0] is not None and shifts[1] is not None and scan is not _gru:
            shifts = [shifts[0] + shifts[1], None]  # both are added to the same gates
        pre = pre if shifts[0] is None else pre.add_(shifts[0])
        hiddens, ends, gates = scan(self.module, pre, across, shifts[1], states, seen)
        before = torch.cat([states[0][None], hiddens[:-1]]).detach()
        self.recorder.catch(gates, partial(_parts, weights, towards.detach(), before), steps=len(x))
        outputs = torch.cat([hiddens[:, k].flip(0) if k else hiddens[:, k] for k in both], dim=-1)
        if valid is not None:
            outputs = torch.where(valid, outputs, 0.0)
        return outputs, (hiddens[-1], *ends)

    def _weights(self, layer: int, direction: int) -> list[nn.Parameter]:
        suffix = f"l{layer}" + ("_reverse" if direction else "")
        names = ["weight_ih", "weight_hh", "bias_ih", "bias_hh"]
        return [getattr(self.module, f"{name}_{suffix}") for name in names[: 4 if self.module.bias else 2]]


def _states(module: nn.LSTM | nn.GRU | nn.RNN, hx: HiddenState, x: Tensor, directions: int) -> list[Tensor]:
    """The first hidden states [layers * directions, b, h], and cells for the LSTM."""
    if hx is None:
        zeros = x.new_zeros(module.num_layers * directions, x.shape[1], module.hidden_size)
        return [zeros, zeros] if isinstance(module, nn.LSTM) else [zeros]
    return list(hx) if isinstance(hx, tuple) else [hx]


Scanned = tuple[Tensor, tuple[Tensor, ...], list[Tensor]]  # hiddens, other last states, gates to catch


def _lstm(
    _: Any, pre: Tensor, across: Tensor, __: Tensor | None, states: list[Tensor], valid: Tensor | None
) -> Scanned:
    hiddens, cell = LSTMScan.apply(pre, across, *states, valid)  # type: ignore[no-untyped-call]
    return hiddens, (cell,), [pre]


def _rnn(
    module: Any, pre: Tensor, across: Tensor, _: Tensor | None, states: list[Tensor], valid: Tensor | None
) -> Scanned:
    bend = torch.tanh if module.nonlinearity == "tanh" else torch.relu
    hidden, hiddens = states[0], []
    for t, gate in enumerate(pre):
        new = bend(torch.baddbmm(gate, hidden, across))
        hidden = new if valid is None else torch.where(valid[t], new, hidden)
        hiddens.append(hidden)
    return torch.stack(hiddens), (), [pre]


def _gru(
    module: Any, pre: Tensor, across: Tensor, shift: Tensor | None, states: list[Tensor], valid: Tensor | None
) -> Scanned:
    h = module.hidden_size
    hidden, hiddens, recurrent = states[0], [], []
    for t, gate in enumerate(pre):
        own = torch.bmm(hidden, across)
        own = own if shift is None else own + shift
        recurrent.append(own)
        r, z = (gate[..., : 2 * h] + own[..., : 2 * h]).sigmoid().split(h, dim=-1)
        new = torch.tanh(gate[..., 2 * h :] + r * own[..., 2 * h :])
        new = new + z * (hidden - new)
        hidden = new if valid is None else torch.where(valid[t], new, hidden)
        hiddens.append(hidden)
    return torch.stack(hiddens), (), [pre, *recurrent]


def _parts(
    weights: list[list[nn.Parameter]], received: Tensor, before: Tensor, backs: Sequence[Tensor | None]
) -> Iterator[Part]:
    """For each direction a layer's weights and biases; a GRU's recurrent gates come back on their own."""
    first, *rest = backs
    if first is None:
        return
    into = first.permute(1, 2, 0, 3)  # [d, b, t, g]
    over = into
    if rest:
        each = [torch.zeros_like(first[0]) if back is None else back for back in rest]
        over = torch.stack(each, dim=2)
    received, before = (x.permute(1, 2, 0, 3) for x in (received, before))
    total = into.sum(dim=2)
    totals = (total, total if over is into else over.sum(dim=2))
    for d, own in enumerate(weights):
        for k, (left, right) in enumerate(((into[d], received[d]), (over[d], before[d]))):
            if trainable(own[k]):
                yield Outer(own[k], left, right)
            if len(own) == 4 and trainable(own[k + 2]):
                yield Dense(own[k + 2], totals[k][d])


def _unrolled(module: Any, recorder: Recorder) -> nn.Module:
    """The module itself, with another forward: it keeps its type and what others read from it."""
    module.forward = Unrolled(module, recorder)
    return cast("nn.Module", module)


def _is_plain(module: Any) -> bool:
    return not getattr(module, "proj_size", 0)


recurrent = Rule(
    (nn.LSTM, nn.GRU, nn.RNN),
    rewritten=_unrolled,
    applies=_is_plain,
    covers=EVERYTHING,
    example=lambda: (nn.LSTM(3, 2, batch_first=True), (torch.randn(4, 5, 3),)),
)

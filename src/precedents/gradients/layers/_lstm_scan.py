"""The LSTM's recurrence, forward and back, for both directions at once.

Gates come as pre-activations, so that what comes back to them is the gradient that every weight needs.
"""

from typing import Any

import torch
from torch import Tensor

from precedents.runtime.buffers import BUFFERS


class LSTMScan(torch.autograd.Function):
    """From pre-activations [t, d, b, 4h] and states [d, b, h] to hiddens [t, d, b, h] and the last cell."""

    @staticmethod
    def forward(
        ctx: Any, pre: Tensor, weight: Tensor, hidden: Tensor, cell: Tensor, valid: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """`weight` is [d, h, 4h]; `valid` [t, 1, b, 1] says where sequences have not ended."""
        steps, h = len(pre), hidden.shape[-1]
        gates = BUFFERS.like(pre)
        cells = BUFFERS.like(pre, steps + 1, *cell.shape)
        bent = BUFFERS.like(pre, steps, *cell.shape)  # tanh of the cells
        hiddens = BUFFERS.like(pre, steps + 1, *hidden.shape)
        cells[0], hiddens[0] = cell, hidden
        before, gate, cells_at, bent_at, hiddens_at = map(_steps, (pre, gates, cells, bent, hiddens))
        i, f, g, o = map(_steps, gates.split(h, dim=-1))
        for t in range(steps):
            torch.baddbmm(before[t], hiddens_at[t], weight, out=gate[t])
            bent_at[t].copy_(g[t]).tanh_()  # several times as fast as where the gate lies
            gate[t].sigmoid_()
            g[t].copy_(bent_at[t])
            torch.mul(f[t], cells_at[t], out=cells_at[t + 1]).addcmul_(i[t], g[t])
            torch.tanh(cells_at[t + 1], out=bent_at[t])
            torch.mul(o[t], bent_at[t], out=hiddens_at[t + 1])
            if valid is not None:
                for states in (cells_at, hiddens_at):
                    torch.where(valid[t], states[t + 1], states[t], out=states[t + 1])
        ctx.save_for_backward(gates, cells, bent, weight, valid)
        return hiddens[1:], cells[-1].clone()

    @staticmethod
    def backward(ctx: Any, d_hiddens: Tensor, d_cell: Tensor) -> tuple[Tensor | None, ...]:
        """The gradients of the pre-activations and of the first states."""
        gates, cells, bent, weight, valid = ctx.saved_tensors
        steps, h = len(gates), bent.shape[-1]
        slopes, bend = _slopes(gates, cells[:-1], bent)
        d_pre = BUFFERS.like(gates)
        d_hidden, d_cell = torch.zeros_like(d_cell), d_cell.clone()
        back = weight.transpose(1, 2)
        back_at, bend_at, received, forget = map(_steps, (d_pre, bend, d_hiddens, gates[..., h : 2 * h]))
        slope = [_steps(slopes[..., k, :]) for k in range(4)]
        place = [_steps(each) for each in d_pre.split(h, dim=-1)]
        for t in range(steps - 1, -1, -1):
            d_hidden = d_hidden + received[t]
            d_new = torch.addcmul(d_cell, d_hidden, bend_at[t])
            for k, came in enumerate((d_new, d_new, d_new, d_hidden)):
                torch.mul(came, slope[k][t], out=place[k][t])
            if valid is None:
                d_hidden, d_cell = torch.bmm(back_at[t], back), d_new.mul_(forget[t])
            else:
                back_at[t].mul_(valid[t])
                d_hidden = torch.where(valid[t], 0.0, d_hidden) + torch.bmm(back_at[t], back)
                d_cell = torch.where(valid[t], d_new * forget[t], d_cell)
        return d_pre, None, d_hidden, d_cell, None


def _steps(values: Tensor) -> tuple[Tensor, ...]:
    """All steps at once: taking them one by one costs as much as a small operation."""
    return values.unbind()


def _slopes(gates: Tensor, cells: Tensor, bent: Tensor) -> tuple[Tensor, Tensor]:
    """How a step's new cell changes with its pre-activations [t, d, b, 4, h], and its hidden with its cell.

    The last of the four is how the hidden state changes with its own gate. All steps at once, to go back later.
    """
    h = bent.shape[-1]
    i, _, g, o = gates.split(h, dim=-1)
    slopes = torch.addcmul(gates, gates, gates, value=-1, out=BUFFERS.like(gates)).unflatten(-1, (4, h))
    slopes[..., 0, :] *= g
    slopes[..., 1, :] *= cells
    torch.addcmul(i, g * g, i, value=-1, out=slopes[..., 2, :])
    slopes[..., 3, :] *= bent
    return slopes, torch.addcmul(o, bent * bent, o, value=-1)

"""The LSTM's recurrence, forward and back, for both directions at once.

Gates come as pre-activations, so that what comes back to them is the gradient that every weight needs.
"""

from typing import Any

import torch
from torch import Tensor

from precedents.runtime.memory import ROOMS


class LSTMScan(torch.autograd.Function):
    """From pre-activations [t, d, b, 4h] and states [d, b, h] to hiddens [t, d, b, h] and the last cell."""

    @staticmethod
    def forward(
        ctx: Any, pre: Tensor, weight: Tensor, hidden: Tensor, cell: Tensor, valid: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """`weight` is [d, h, 4h]; `valid` [t, 1, b, 1] says where sequences have not ended."""
        steps, h = len(pre), hidden.shape[-1]
        gates = ROOMS.like(pre)
        cells = ROOMS.like(pre, steps + 1, *cell.shape)
        bent = ROOMS.like(pre, steps, *cell.shape)  # tanh of the cells
        hiddens = ROOMS.like(pre, steps + 1, *hidden.shape)
        cells[0], hiddens[0] = cell, hidden
        for t in range(steps):
            gate = torch.baddbmm(pre[t], hiddens[t], weight, out=gates[t])
            new = gate[..., 2 * h : 3 * h].tanh()
            gate.sigmoid_()[..., 2 * h : 3 * h] = new
            i, f, g, o = gate.split(h, dim=-1)
            torch.mul(f, cells[t], out=cells[t + 1]).addcmul_(i, g)
            torch.tanh(cells[t + 1], out=bent[t])
            torch.mul(o, bent[t], out=hiddens[t + 1])
            if valid is not None:
                torch.where(valid[t], cells[t + 1], cells[t], out=cells[t + 1])
                torch.where(valid[t], hiddens[t + 1], hiddens[t], out=hiddens[t + 1])
        ctx.save_for_backward(gates, cells, bent, weight, valid)
        return hiddens[1:], cells[-1].clone()

    @staticmethod
    def backward(ctx: Any, d_hiddens: Tensor, d_cell: Tensor) -> tuple[Tensor | None, ...]:
        """The gradients of the pre-activations and of the first states."""
        gates, cells, bent, weight, valid = ctx.saved_tensors
        steps, h = len(gates), bent.shape[-1]
        slopes, bend = _slopes(gates, cells[:-1], bent)
        d_pre = ROOMS.like(gates)
        d_hidden, d_cell = torch.zeros_like(d_cell), d_cell.clone()
        back = weight.transpose(1, 2)
        forget = gates[..., h : 2 * h]
        places = d_pre.unflatten(-1, (4, h))
        for t in range(steps - 1, -1, -1):
            d_hidden = d_hidden + d_hiddens[t]
            d_new = torch.addcmul(d_cell, d_hidden, bend[t])
            torch.mul(d_new[..., None, :], slopes[t, ..., :3, :], out=places[t, ..., :3, :])
            torch.mul(d_hidden, slopes[t, ..., 3, :], out=places[t, ..., 3, :])
            if valid is None:
                d_hidden, d_cell = torch.bmm(d_pre[t], back), d_new.mul_(forget[t])
            else:
                d_pre[t].mul_(valid[t])
                d_hidden = torch.where(valid[t], 0.0, d_hidden) + torch.bmm(d_pre[t], back)
                d_cell = torch.where(valid[t], d_new * forget[t], d_cell)
        return d_pre, None, d_hidden, d_cell, None


def _slopes(gates: Tensor, cells: Tensor, bent: Tensor) -> tuple[Tensor, Tensor]:
    """How a step's new cell changes with its pre-activations [t, d, b, 4, h], and its hidden with its cell.

    The last of the four is how the hidden state changes with its own gate. All steps at once, to go back later.
    """
    h = bent.shape[-1]
    i, _, g, o = gates.split(h, dim=-1)
    slopes = torch.addcmul(gates, gates, gates, value=-1, out=ROOMS.like(gates)).unflatten(-1, (4, h))
    slopes[..., 0, :] *= g
    slopes[..., 1, :] *= cells
    torch.addcmul(i, g * g, i, value=-1, out=slopes[..., 2, :])
    slopes[..., 3, :] *= bent
    return slopes, torch.addcmul(o, bent * bent, o, value=-1)

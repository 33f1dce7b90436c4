"""The LSTM's recurrence, forward and back, for both directions at once.

Gates come as pre-activations, so that what comes back to them is the gradient that every weight needs.
tanh(x) = 2 sigmoid(2x) - 1 lets one sigmoid serve all four gates.
"""

from typing import Any

import torch
from torch import Tensor


class LSTMScan(torch.autograd.Function):
    """From pre-activations [t, d, b, 4h] and states [d, b, h] to hiddens [t, d, b, h] and the last cell."""

    @staticmethod
    def forward(
        ctx: Any, pre: Tensor, weight: Tensor, hidden: Tensor, cell: Tensor, valid: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """`weight` is [d, h, 4h]; `valid` [t, 1, b, 1] says where sequences have not ended."""
        steps, h = len(pre), hidden.shape[-1]
        doubled = pre.new_ones(4 * h)
        doubled[2 * h : 3 * h] = 2
        gates, weight2 = pre * doubled, weight * doubled
        cells = pre.new_empty(steps + 1, *cell.shape)
        bent = pre.new_empty(steps, *cell.shape)  # tanh of the cells
        hiddens = pre.new_empty(steps + 1, *hidden.shape)
        cells[0], hiddens[0] = cell, hidden
        for t in range(steps):
            gate = gates[t].baddbmm_(hiddens[t], weight2).sigmoid_()
            gate[..., 2 * h : 3 * h].mul_(2).sub_(1)
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
        h = bent.shape[-1]
        i, f, g, o = gates.split(h, dim=-1)
        slopes = torch.cat([i * (1 - i) * g, f * (1 - f) * cells[:-1], i * (1 - g * g)], dim=-1)
        slope_o = o * (1 - o) * bent
        through = o * (1 - bent * bent)
        d_pre = torch.empty_like(gates)
        d_hidden, d_cell = torch.zeros_like(d_cell), d_cell.clone()
        back = weight.transpose(1, 2)
        for t in range(len(gates) - 1, -1, -1):
            d_hidden = d_hidden + d_hiddens[t]
            d_new = torch.addcmul(d_cell, d_hidden, through[t])
            torch.mul(d_new.repeat(1, 1, 3), slopes[t], out=d_pre[t, ..., : 3 * h])
            torch.mul(d_hidden, slope_o[t], out=d_pre[t, ..., 3 * h :])
            if valid is None:
                d_hidden, d_cell = torch.bmm(d_pre[t], back), d_new * f[t]
            else:
                d_pre[t].mul_(valid[t])
                d_hidden = torch.where(valid[t], 0.0, d_hidden) + torch.bmm(d_pre[t], back)
                d_cell = torch.where(valid[t], d_new * f[t], d_cell)
        return d_pre, None, d_hidden, d_cell, None

"""Convolutions in one, two and three dimensions, with stride, padding, dilation and groups.

The weight gradient of each instance comes from one backward convolution in which every instance is a
group of its own: it costs what the ordinary one costs. For few input channels, patches are faster. Where each
channel is a group, the channels stay last if they are: such convolutions are several times faster so.
"""

from collections.abc import Iterator
from math import prod

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from precedents.gradients.factors import Dense, Outer, Part, trainable
from precedents.gradients.layers._rule import Rule
from precedents.runtime.buffers import BUFFERS

FEW = 4  # input channels up to which patches are faster
Conv = nn.Conv1d | nn.Conv2d | nn.Conv3d


def parts(module: Conv, grad: Tensor, x: Tensor) -> Iterator[Part]:
    """A sum over positions: of outer products for kernels of size one, of patches otherwise."""
    if trainable(module.weight):
        if _is_pointwise(module):
            yield Outer(module.weight, grad.flatten(2).transpose(1, 2), x.flatten(2).transpose(1, 2))
        else:
            yield Dense(module.weight, weight_gradients(module, grad, x))
    if module.bias is not None and trainable(module.bias):
        yield Dense(module.bias, grad.flatten(2).sum(dim=2))


def _is_pointwise(module: Conv) -> bool:
    return (
        set(module.kernel_size) == {1}
        and set(module.stride) == {1}
        and module.groups == 1
        and module.padding in ((0,) * len(module.kernel_size), "valid", "same")
    )


def weight_gradients(module: Conv, grad: Tensor, x: Tensor) -> Tensor:
    """[b, out, in / groups, *kernel]."""
    b, spatial = len(x), len(module.kernel_size)
    if _is_pointwise(module):
        return torch.bmm(grad.flatten(2), x.flatten(2).transpose(1, 2)).reshape(b, *module.weight.shape)
    padding = module.padding
    few = module.groups == 1 and module.in_channels <= FEW
    if few or module.padding_mode != "zeros" or isinstance(padding, str):
        mode = "constant" if module.padding_mode == "zeros" else module.padding_mode
        x, padding = pad(x, module._reversed_padding_repeated_twice, mode=mode), (0,) * spatial
    if few:
        patches = _patches(module, BUFFERS.copy(x), grad.shape[2:])
        return torch.bmm(grad.flatten(2), patches.transpose(1, 2)).reshape(b, *module.weight.shape)
    weight = module.weight.new_empty(()).expand(b * module.out_channels, *module.weight.shape[1:])
    depthwise = module.in_channels == module.groups
    _, gradients, _ = torch.ops.aten.convolution_backward(
        _side_by_side(grad, depthwise),
        _side_by_side(x, depthwise),
        weight,
        None,
        module.stride,
        padding,
        module.dilation,
        False,
        [0] * spatial,
        b * module.groups,
        [False, True, False],
    )
    return gradients.reshape(b, *module.weight.shape)


def _side_by_side(values: Tensor, last: bool) -> Tensor:
    """Instances [b, c, ...] as the channels [1, b c, ...] of one; `last` keeps channels last that are so."""
    if last and values.ndim == 4 and not values.is_contiguous():
        beside = BUFFERS.copy(values.permute(2, 3, 0, 1))  # [h, w, b, c]
        return beside.reshape(1, *values.shape[2:], -1).permute(0, 3, 1, 2)
    return BUFFERS.copy(values).reshape(1, -1, *values.shape[2:])


def _patches(module: Conv, x: Tensor, out: tuple[int, ...]) -> Tensor:
    """What each entry of the kernel met at each position of the output [b, in x kernel, positions]."""
    b, channels = x.shape[:2]
    steps = x.stride()[2:]
    over = [step * d for step, d in zip(steps, module.dilation, strict=True)]
    along = [step * s for step, s in zip(steps, module.stride, strict=True)]
    view = x.as_strided((b, channels, *module.kernel_size, *out), (*x.stride()[:2], *over, *along))
    return BUFFERS.copy(view).reshape(b, -1, prod(out))


conv = Rule(
    (nn.Conv1d, nn.Conv2d, nn.Conv3d),
    parts,
    applies=lambda module: module.weight.ndim > 2,
    example=lambda: (nn.Conv2d(2, 3, 3), (torch.randn(4, 2, 6, 5),)),
)

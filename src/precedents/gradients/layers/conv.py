"""Convolutions in one, two and three dimensions, with stride, padding, dilation and groups.

A kernel of size one is multiplied like a matrix. A large kernel, and one of few input channels, meets patches
of its input, which are laid out and multiplied, or not even laid out (`gradients/patches.py`). The gradients
of other kernels come from one backward convolution in which every instance is a group of its own: for few
numbers it costs what the ordinary one costs, for many much more. Where each channel is a group, the channels
stay last if they are: such convolutions are several times faster so. But for large kernels it is ten times
faster to convolve the input with what came back. The layer's sizes alone decide.
"""

from collections.abc import Iterator, Sequence
from math import prod

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from precedents.gradients.factors import Dense, Outer, Part, trainable
from precedents.gradients.layers._rule import Rule
from precedents.gradients.patches import Patched, Window, laid_out
from precedents.gradients.sites import Sites
from precedents.runtime.buffers import BUFFERS

FEW = 4  # input channels up to which patches are faster,
MANY = 2**15  # and numbers of a kernel from which on they are
LARGE = 16  # entries of a depthwise kernel beyond which the input is convolved with what came back,
POSITIONS = 4096  # at so many positions at most: they are summed one after the other
Conv = nn.Conv1d | nn.Conv2d | nn.Conv3d


def parts(module: Conv, grad: Tensor, x: Tensor) -> Sequence[Part]:
    """A sum over positions: of outer products for kernels of size one, of patches otherwise."""
    found = [weight_part(module, grad, x)] if module.weight.requires_grad else []
    if module.bias is not None and module.bias.requires_grad:
        found.append(Dense(module.bias, grad.flatten(2).sum(dim=2)))
    return found


def weight_part(module: Conv, grad: Tensor, x: Tensor) -> Part:
    """The gradients of the weight, formed or as what they are made of."""
    if _is_pointwise(module):
        met = x[(slice(None), slice(None), *(slice(None, None, s) for s in module.stride))]
        return Outer(module.weight, grad.flatten(2).transpose(1, 2), met.flatten(2).transpose(1, 2))
    around = _around(module)
    if module.padding_mode != "zeros":
        x = pad(x, module._reversed_padding_repeated_twice, mode=module.padding_mode)
        around = [(0, 0)] * len(around)
    if module.groups == 1 and (module.in_channels <= FEW or module.weight.numel() >= MANY):
        before, after = zip(*around, strict=True)
        window = Window(module.kernel_size, module.stride, module.dilation, before, after)
        return Patched.of(module.weight, grad, x, window)
    depthwise = module.in_channels == module.groups == module.out_channels
    large = prod(module.kernel_size) > LARGE and prod(grad.shape[2:]) <= POSITIONS
    formed = _by_correlation if depthwise and large else _by_groups
    return Dense(module.weight, formed(module, grad, *_evenly(x, around)))


def sites(module: Conv, grad: Tensor, x: Tensor) -> Iterator[Part]:
    """Position by position of the output, with what the kernel met there; group by group."""
    g, shape = module.groups, tuple(grad.shape[2:])
    back = grad.flatten(2).transpose(1, 2)  # [b, t, o]
    if trainable(module.weight):
        around = _around(module)
        if module.padding_mode != "zeros":
            x = pad(x, module._reversed_padding_repeated_twice, mode=module.padding_mode)
            around = [(0, 0)] * len(around)
        before, after = zip(*around, strict=True)
        window = Window(module.kernel_size, module.stride, module.dilation, before, after)
        met = laid_out(x, window, shape).transpose(1, 2)  # [b, t, c x kernel]
        yield Sites(module.weight, back.unflatten(2, (g, -1)), met.unflatten(2, (g, -1)), shape)
    if module.bias is not None and trainable(module.bias):
        yield Sites.at(module.bias, back, None, shape)


def _is_pointwise(module: Conv) -> bool:
    return (
        set(module.kernel_size) == {1}
        and module.groups == 1
        and module.padding in ((0,) * len(module.kernel_size), "valid", "same")
    )


def _around(module: Conv) -> list[tuple[int, int]]:
    """How many places are padded before and after each axis."""
    reversed_ = module._reversed_padding_repeated_twice
    return [(reversed_[i], reversed_[i + 1]) for i in range(len(reversed_) - 2, -1, -2)]


def _evenly(x: Tensor, around: list[tuple[int, int]]) -> tuple[Tensor, list[int]]:
    """The input and the padding along each axis, where both sides have as much; else it is there already."""
    if all(before == after for before, after in around):
        return x, [before for before, _ in around]
    return pad(x, [n for pair in reversed(around) for n in pair]), [0] * len(around)


def _by_correlation(module: Conv, grad: Tensor, x: Tensor, padding: list[int]) -> Tensor:
    """[b, out, 1, *kernel]: what came back steps over the input by the dilation, its entries by the stride."""
    b, groups = len(x), len(x) * module.groups
    kernel = _side_by_side(grad, last=False).transpose(0, 1)  # [b groups, 1, *positions]
    over = _side_by_side(x, last=False)
    none = [0] * len(padding)
    gradients = torch.convolution(
        over, kernel, None, module.dilation, padding, module.stride, False, none, groups
    )
    met = (slice(None), slice(None), *map(slice, module.kernel_size))
    return gradients[met].reshape(b, *module.weight.shape)


def _by_groups(module: Conv, grad: Tensor, x: Tensor, padding: list[int]) -> Tensor:
    """[b, out, in / groups, *kernel]."""
    b = len(x)
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
        [0] * len(padding),
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


conv = Rule(
    (nn.Conv1d, nn.Conv2d, nn.Conv3d),
    parts,
    sites=sites,
    applies=lambda module: module.weight.ndim > 2,
    example=lambda: (nn.Conv2d(2, 3, 3), (torch.randn(4, 2, 6, 5),)),
)

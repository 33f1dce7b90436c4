"""Transposed convolutions in one, two and three dimensions: y = W^T * x, with all their settings.

A large kernel meets patches of what comes back, which are laid out and multiplied, or not even laid out. The
gradients of others come from one backward convolution in which every instance is a group of its own.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from precedents.gradients.factors import Dense, Outer, Part, trainable
from precedents.gradients.layers._rule import Rule
from precedents.gradients.layers.conv import MANY
from precedents.gradients.patches import Patched, Window

ConvTranspose = nn.ConvTranspose1d | nn.ConvTranspose2d | nn.ConvTranspose3d


def parts(module: ConvTranspose, grad: Tensor, x: Tensor, *_: Any) -> Iterator[Part]:
    """A sum over positions: of outer products for kernels of size one, of patches otherwise."""
    if trainable(module.weight):
        if _is_pointwise(module) and grad.shape[2:] == x.shape[2:]:
            yield Outer(module.weight, x.flatten(2).transpose(1, 2), grad.flatten(2).transpose(1, 2))
        elif module.groups == 1 and module.weight.numel() >= MANY:
            yield Patched.of(module.weight, x, grad, _window(module, grad, x))
        else:
            yield Dense(module.weight, _weight_gradients(module, grad, x))
    if module.bias is not None and trainable(module.bias):
        yield Dense(module.bias, grad.flatten(2).sum(dim=2))


def _is_pointwise(module: ConvTranspose) -> bool:
    return {*module.kernel_size, *module.stride, module.groups} == {1} and set(module.padding) == {0}


def _window(module: ConvTranspose, grad: Tensor, x: Tensor) -> Window:
    """Where the kernel meets what comes back: it has zeros where the padding has cut the output."""
    kernel, stride, dilation, before = module.kernel_size, module.stride, module.dilation, module.padding
    assert not isinstance(before, str)
    spans = (
        (short - 1) * s + d * (k - 1) + 1
        for short, k, s, d in zip(x.shape[2:], kernel, stride, dilation, strict=True)
    )
    after = (max(0, span - b - int(long)) for span, b, long in zip(spans, before, grad.shape[2:], strict=True))
    return Window(kernel, stride, dilation, before, tuple(after))


def _weight_gradients(module: ConvTranspose, grad: Tensor, x: Tensor) -> Tensor:
    """[b, in, out / groups, *kernel]."""
    b = len(x)
    weight = module.weight.new_empty(()).expand(b * module.in_channels, *module.weight.shape[1:])
    _, gradients, _ = torch.ops.aten.convolution_backward(
        grad.reshape(1, -1, *grad.shape[2:]),
        x.reshape(1, -1, *x.shape[2:]),
        weight,
        None,
        module.stride,
        module.padding,
        module.dilation,
        True,
        _output_padding(module, grad, x),
        b * module.groups,
        [False, True, False],
    )
    return gradients.reshape(b, *module.weight.shape)


def _output_padding(module: ConvTranspose, grad: Tensor, x: Tensor) -> list[int]:
    """What the output is longer by than the shortest possible; a call may say it by its `output_size`."""
    lengths = zip(grad.shape[2:], x.shape[2:], strict=True)
    settings = zip(module.kernel_size, module.stride, module.padding, module.dilation, strict=True)
    return [
        int(long) - ((short - 1) * stride - 2 * padding + dilation * (kernel - 1) + 1)  # type: ignore[operator]
        for (long, short), (kernel, stride, padding, dilation) in zip(lengths, settings, strict=True)
    ]


conv_transpose = Rule(
    (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d),
    parts,
    example=lambda: (nn.ConvTranspose2d(2, 3, 3), (torch.randn(4, 2, 4, 3),)),
)

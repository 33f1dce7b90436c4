"""A convolution with the BatchNorm after it: all gradients come from those of the weight that both make."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from precedents.gradients.factors import Dense, Part, trainable
from precedents.gradients.folding import Folded
from precedents.gradients.layers._rule import EVERYTHING, Rule
from precedents.gradients.layers.conv import weight_part


def parts(module: Folded, grad: Tensor, x: Tensor) -> Iterator[Part]:
    """The merged weight is s W: its gradient is s times W's, and its product with W is a part of gamma's."""
    conv, norm = module.conv, module.norm
    total = grad.flatten(2).sum(dim=2)  # [b, o]
    merged = weight_part(conv, grad, x).formed()  # [b, o, ...]
    if trainable(norm.weight):
        met = (merged * conv.weight).flatten(2).sum(dim=2)
        yield Dense(norm.weight, met.addcmul_(total, module.offset).mul_(module.root))
    if trainable(conv.weight):
        yield Dense(conv.weight, merged.mul_(module.beside(module.scale)))
    if trainable(conv.bias):
        yield Dense(conv.bias, total * module.scale)
    if trainable(norm.bias):
        yield Dense(norm.bias, total)


folded = Rule(
    (Folded,),
    parts,
    covers=EVERYTHING,
    example=lambda: (Folded(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3)), (torch.randn(4, 2, 6, 5),)),
)

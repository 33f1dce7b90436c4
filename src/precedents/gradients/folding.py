"""Folding: a convolution and the BatchNorm after it are one convolution in eval mode.

s (W x + c - mean) + beta with s = gamma / sqrt(var + eps) has the weight s W and the shift s (c - mean) + beta.
What is saved are the passes of the normalization over all positions, forward, back and for its gradients.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from math import prod
from typing import Any

from torch import Tensor, nn

from precedents.classifier.classifier import Classifier

CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
WORTH = 2  # what a position costs that is not folded, by what a number of a channel's weight costs that is

Pairs = Mapping[str, str]  # the name of a normalization by that of the convolution before it
Calls = list[tuple[Tensor, Any]]  # a tensor and the node of the graph that made it, for each call of a layer


class Folded(nn.Module):
    """Computes a convolution and the normalization after it from the parameters of both."""

    conv: Any
    norm: Any

    def __init__(self, conv: nn.Module, norm: nn.Module) -> None:
        super().__init__()
        self.conv, self.norm = conv, norm

    @property
    def root(self) -> Tensor:
        """1 / sqrt(var + eps) for each channel."""
        root: Tensor = (self.norm.running_var + self.norm.eps).rsqrt()
        return root

    @property
    def scale(self) -> Tensor:
        """What each channel is multiplied by: s."""
        return self.root if self.norm.weight is None else self.root * self.norm.weight

    @property
    def offset(self) -> Tensor:
        """What is added to each channel before: c - mean."""
        mean: Tensor = self.norm.running_mean
        return -mean if self.conv.bias is None else self.conv.bias - mean

    def forward(self, x: Tensor) -> Tensor:
        """What the normalization would return."""
        weight, shift = self.conv.weight * self.beside(self.scale), self.scale * self.offset
        shift = shift if self.norm.bias is None else shift + self.norm.bias
        result: Tensor = self.conv._conv_forward(x, weight, shift)
        return result

    def beside(self, channels: Tensor) -> Tensor:
        """Numbers of the channels [o] as they stand beside the weight [o, ...]."""
        return channels.reshape(-1, *(1,) * (self.conv.weight.ndim - 1))


def foldable(module: nn.Module, logits: Callable[[], Tensor]) -> tuple[Tensor, Pairs]:
    """The logits, and where a normalization alone sees what a convolution returns, and folding pays.

    Both must be called once, and the graph of the logits must lead to the convolution by one way only.
    """
    calls: dict[str, Calls] = {}
    layers = {name: layer for name, layer in module.named_modules() if name and _is_plain(layer)}
    handles = [
        layer.register_forward_hook(partial(_note, calls.setdefault(name, [])), with_kwargs=True)
        for name, layer in layers.items()
    ]
    try:
        found = logits()
    finally:
        for handle in handles:
            handle.remove()
    once = {name: each[0] for name, each in calls.items() if len(each) == 1 and each[0][1] is not None}
    makers = {id(once[name][0]): name for name in once if type(layers[name]) in CONVOLUTIONS}
    ways = _ways(found) if makers else Counter[Any]()
    pairs = {}
    for name, (received, node) in once.items():
        maker = makers.get(id(received))
        if type(layers[name]) in NORMS and maker is not None:
            unchanged = node is once[maker][1] and ways[node] == 1
            if unchanged and _pays(layers[maker], received):
                pairs[maker] = name
    return found, pairs


def folded(model: Classifier, pairs: Pairs) -> nn.Module:
    """A clone of the model's module with these pairs folded."""
    clone = model.clones.fresh()
    for first, second in pairs.items():
        conv, norm = clone.get_submodule(first), clone.get_submodule(second)
        substitute(clone, norm, nn.Identity())
        substitute(clone, conv, Folded(conv, norm))
    return clone


def substitute(clone: nn.Module, old: nn.Module, new: nn.Module) -> None:
    """Puts a module in every place of another."""
    for parent in list(clone.modules()):
        for name, child in parent._modules.items():
            if child is old:
                setattr(parent, name, new)


def _is_plain(layer: Any) -> bool:
    """Whether it is a convolution or a normalization that computes what its type says, as a fixed map."""
    fixed = type(layer) in NORMS and not layer.training and layer.running_mean is not None
    hooks = (
        layer._forward_hooks or layer._forward_pre_hooks or layer._backward_hooks or layer._backward_pre_hooks
    )
    return (fixed or type(layer) in CONVOLUTIONS) and not hooks and "forward" not in layer.__dict__


def _note(
    calls: Calls, layer: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Tensor
) -> None:
    """What a convolution returns, and what a normalization receives."""
    tensor = output if type(layer) in CONVOLUTIONS else next(iter([*args, *kwargs.values()]))
    calls.append((tensor, tensor.grad_fn))


def _ways(logits: Tensor) -> Counter[Any]:
    """How many edges of the graph lead to each node."""
    ways: Counter[Any] = Counter()
    waiting: list[Any] = [logits.grad_fn] if logits.requires_grad else []
    while waiting:
        for before, _ in waiting.pop().next_functions:
            if before is not None:
                if before not in ways:
                    waiting.append(before)
                ways[before] += 1
    return ways


def _pays(conv: Any, returned: Tensor) -> bool:
    return prod(conv.weight.shape[1:]) <= WORTH * prod(returned.shape[2:])

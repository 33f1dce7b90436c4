"""A clone that shares its tensors: for hooks and changed layers that the module itself must not see."""

from copy import deepcopy

from torch import nn


def sharing_clone(module: nn.Module) -> nn.Module:
    """A copy of the module, layer by layer, with the very parameters and buffers of the original."""
    shared = [*module.parameters(), *module.buffers()]
    return deepcopy(module, {id(tensor): tensor for tensor in shared})

"""One precision for a whole model: float32 for what is in half, float64 for what has some of it.

Products of float16 and bfloat16 kill the process on some machines, and gradients of several precisions are no
rows of one matrix. So parameters and buffers are widened, with the same values; what a forward casts to a lower
precision is widened as well, and autocast does nothing: `x.half()`, `torch.zeros(3, dtype=torch.float16)`.
"""

from inspect import Signature, signature
from threading import local
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from precedents.classifier.construction import HALF, speaks_of_half

CASTS = (Tensor.half, Tensor.bfloat16, Tensor.float)
NAMED = {"torch.HalfTensor", "torch.BFloat16Tensor", "torch.FloatTensor"}  # as x.type(...) takes them
DEVICES = ("cpu", "cuda")  # that autocast is for
RUNNING = local()  # whether the mode is on already, in this thread


class AtLeast(TorchFunctionMode):
    """While it lasts, this precision is computed in wherever a lower one is asked for."""

    def __init__(self, precision: torch.dtype) -> None:
        super().__init__()
        self.precision = precision
        self.lower = lower_than(precision)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """The function with other types; autocast that was switched on within is switched off."""
        for device in DEVICES:
            if torch.is_autocast_enabled(device):
                torch.set_autocast_enabled(device, False)
        if func in CASTS:
            return args[0].to(self.precision)
        given = {name: self.widened(value) for name, value in (kwargs or {}).items()}
        return func(*map(self.widened, args), **given)

    def widened(self, value: Any) -> Any:
        """Types and tensors of lower precision in this one, everything else as it is."""
        if isinstance(value, Tensor):
            return value.to(self.precision) if value.dtype in self.lower else value
        named = isinstance(value, str) and value in NAMED
        return self.precision if named or (isinstance(value, torch.dtype) and value in self.lower) else value


class WidenedForward:
    """The forward of a module, run in one precision; copies of the module have copies of it."""

    def __init__(self, module: nn.Module) -> None:
        self.module, self.forward = module, module.forward

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What forward gives, in the mode if that is not on yet."""
        if getattr(RUNNING, "on", False):
            return self.forward(*args, **kwargs)
        RUNNING.on = True
        try:
            with AtLeast(precision_of(self.module)):
                return self.forward(*args, **kwargs)
        finally:
            RUNNING.on = False

    @property
    def __signature__(self) -> Signature:
        return signature(self.forward)


def precision_of(module: nn.Module) -> torch.dtype:
    """The widest of its parameters', float32 at least."""
    double = any(parameter.dtype == torch.double for parameter in module.parameters())
    return torch.double if double else torch.float32


def lower_than(precision: torch.dtype) -> tuple[torch.dtype, ...]:
    """The floating point types that become this one."""
    return HALF if precision == torch.float32 else (*HALF, torch.float32)


def widened(copy: nn.Module) -> nn.Module:
    """The module, which is a copy of the user's, in one precision: its widest, float32 at least."""
    precision = precision_of(copy)
    known: dict[int, Tensor] = {}  # what several layers share stays shared
    for part in copy.modules():
        for held in (part._parameters, part._buffers):
            for name, tensor in held.items():
                if tensor is not None and tensor.dtype in lower_than(precision):
                    held[name] = known.setdefault(id(tensor), _widened(tensor, precision))  # type: ignore[assignment]
    for part in copy.modules():
        if part is copy or speaks_of_half(type(part)):
            part.__dict__["forward"] = WidenedForward(part)
    return copy


def _widened(tensor: Tensor, precision: torch.dtype) -> Tensor:
    values = tensor.detach().to(precision)
    return nn.Parameter(values, tensor.requires_grad) if isinstance(tensor, nn.Parameter) else values

"""The places in a network at which its hidden layers are, found by watching it run."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from precedents.errors import InputError, UnknownNameError

R = TypeVar("R")


@dataclass(frozen=True)
class Tap:
    """A place in the network: what a module receives, or what it returns, at one of its calls."""

    module: str
    call: int
    returned: bool
    less: int = field(default=0, compare=False)  # last states of a recurrent one that a later layer receives


@dataclass(frozen=True)
class Trace:
    """What was seen of a network in one run."""

    hidden: list[Tap]  # what layers with a weight matrix receive after the first such layer is done
    linear: list[tuple[str, Tensor]]  # the calls of Linear modules with what they returned
    numbers: int = 0  # how many numbers the layers returned


@torch.no_grad()
def traced(model: nn.Module, run: Callable[[], R]) -> tuple[R, Trace]:
    """What a run of the model gives, and what happens in the model meanwhile."""
    done = numbers = 0
    trace = Trace([], [])
    states: list[Tensor] = []  # of the last recurrent module, by layer and direction
    heavy, layers = _heavy(model), _leaves(model)

    def module_of(tap: Tap) -> nn.Module:
        return model.get_submodule(tap.module)

    def note(tap: Tap, value: Any) -> None:
        nonlocal done, numbers
        if tap.returned and tap.module in layers and isinstance(value, Tensor):
            numbers += value.numel()
        if tap.module not in heavy:
            return
        module = module_of(tap)
        recurrent = isinstance(module, nn.RNNBase)  # its last states are the layer, not what it receives
        if tap.returned == recurrent and (done or recurrent):
            if states and _are_last(states, module_of(trace.hidden[-1]), value):
                trace.hidden[-1] = replace(trace.hidden[-1], less=_directions(module_of(trace.hidden[-1])))
            trace.hidden.append(tap)
            states[:] = list(_states(value)) if recurrent else []
        if tap.returned:
            done += 1
            if type(module) is nn.Linear:
                trace.linear.append((tap.module, value))

    with watched(model, heavy | layers, note):
        result = run()
    left = [tap for tap in trace.hidden if not tap.less or tap.less < _number_of_states(module_of(tap))]
    return result, replace(trace, hidden=left, numbers=numbers)


def _heavy(model: nn.Module) -> set[str]:
    """The layers that have a weight matrix."""
    return {
        name.partition(".parametrizations.")[0]  # a parametrized weight belongs to the layer
        for name, module in model.named_modules()
        if any(p.ndim >= 2 for p in module.parameters(recurse=False))
    }


def _leaves(model: nn.Module) -> set[str]:
    """The layers that have no others inside."""
    return {name for name, layer in model.named_modules() if name and not any(layer.children())}


def _states(value: Any) -> Tensor:
    """The final states [layers x directions, b, d] in what a recurrent module returned."""
    return value[1][0] if isinstance(value[1], tuple) else value[1]


def _directions(module: Any) -> int:
    return 2 if module.bidirectional else 1


def _number_of_states(module: Any) -> int:
    return module.num_layers * _directions(module)


def _are_last(states: list[Tensor], module: Any, value: Any) -> bool:
    """Whether a layer receives just the last states of the recurrent module before it."""
    last = torch.cat(states[-_directions(module) :], dim=1)
    return isinstance(value, Tensor) and value.shape == last.shape and torch.equal(value, last)


def named(module: nn.Module, names: Sequence[str]) -> tuple[Tap, ...]:
    """What the modules of these names return at their first call."""
    known = [name for name, _ in module.named_modules() if name]
    for name in names:
        if name not in known:
            raise UnknownNameError("module of the model", name, known)
    return tuple(Tap(name, 0, returned=True) for name in names)


@contextmanager
def watched(module: nn.Module, names: set[str], note: Callable[[Tap, Any], None]) -> Iterator[None]:
    """Reports what the named modules receive and return, call by call, while the context lasts."""
    calls: dict[str, int] = defaultdict(int)
    handles = []

    def watch(name: str, part: nn.Module) -> None:
        def before(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            value = args[0] if args else next(iter(kwargs.values()), None)
            note(Tap(name, calls[name], returned=False), value)

        def after(_: nn.Module, __: Any, value: Any) -> None:
            note(Tap(name, calls[name], returned=True), value)
            calls[name] += 1

        handles.append(part.register_forward_pre_hook(before, with_kwargs=True))
        handles.append(part.register_forward_hook(after))

    try:
        for name in names:
            watch(name, module.get_submodule(name))
        yield
    finally:
        for handle in handles:
            handle.remove()


def flat(value: Any, count: int, module: nn.Module, tap: Tap) -> Tensor:
    """What was seen at a tap, as vectors [b, d]."""
    if isinstance(module, nn.RNNBase) and tap.returned:
        states = _states(value)
        value = states[: len(states) - tap.less].transpose(0, 1)
    plain = isinstance(value, Tensor) and not value.is_nested
    if not plain or value.ndim < 2 or len(value) != count:
        got = tuple(value.shape) if plain else type(value).__name__
        raise InputError(
            f"The hidden layer {tap.module!r} gives {got} for {count} instances; its first axis must be the "
            "instances. Name the hidden layers: hidden=['name of a module', ...]."
        )
    return value.flatten(1).cpu()

"""Taps: places in a network, and what passes by them when it runs."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from precedents.errors import InputError, UnknownNameError


@dataclass(frozen=True)
class Tap:
    """A place in the network: what a module receives, or what it returns, at one of its calls."""

    module: str
    call: int
    returned: bool


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
    """What passed by a tap as vectors [b, d]; the last states of what is recurrent."""
    if isinstance(module, nn.RNNBase) and tap.returned:
        state = value[1][0] if isinstance(value[1], tuple) else value[1]  # [layers * directions, b, d]
        value = state.transpose(0, 1)
    if not isinstance(value, Tensor) or value.ndim < 2 or len(value) != count:
        got = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
        raise InputError(
            f"The hidden layer {tap.module!r} gives {got} for {count} instances; its first axis must be the "
            "instances. Name the hidden layers: hidden=['name of a module', ...]."
        )
    return value.flatten(1).cpu()

"""Parameters that are given to their module as one copy for each instance, whose gradients come back apart.

Where no copies fit, functions that have rules may be given a stand-in.
"""

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from precedents.gradients.factors import Dense
from precedents.gradients.functions import StandIn
from precedents.gradients.recording import Recorder, Recording

COPIES = 0  # stands for the axis along which a parameter's copies lie, in the shape of them all
NONE = ()  # the shape where there are no copies, but a stand-in for functions that have rules

Check = Callable[[Recording, Tensor], bool]  # whether a parameter's gradients are right on the first instances


def lined_up(own: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """The shapes that the copies of a parameter may have, by what is done with it.

    They are lined up before the parameter's axes, with room for other axes between, or along an axis of length
    one: positions that are added, tokens that are expanded, scales that are multiplied.
    """
    shapes = {"first": (COPIES, *own[1:])} if own[:1] == (1,) else {}
    shapes |= {f"before {room}": (COPIES, *(1,) * room, *own) for room in range(3)}
    shapes |= {"second": (own[0], COPIES, *own[2:])} if own[1:2] == (1,) else {}
    return shapes | {"in functions": NONE}


def copied(draft: Recording, module: nn.Module, name: str, check: Check) -> str | None:
    """How a module can be given one copy of its parameter for each instance, if it can; what fits is tried."""
    parameter = module._parameters[name]
    assert parameter is not None
    for way, shape in lined_up(tuple(parameter.shape)).items():
        handles = attached(module, name, shape, draft.first.recorder)
        try:
            if check(draft, parameter):
                return way
        except (RuntimeError, ValueError, TypeError, IndexError, AssertionError):
            pass  # the copies do not fit in this place
        finally:
            for handle in handles:
                handle.remove()
            module.__dict__.pop(name, None)
    return None


def attached(module: nn.Module, name: str, shape: tuple[int, ...], recorder: Recorder) -> list[Any]:
    """Gives the module copies of its parameter in this shape, while it runs; the handles of the two hooks."""
    parameter = module._parameters[name]
    assert parameter is not None
    axis = shape.index(COPIES) if shape else 0

    def before(*_: Any) -> None:
        if shape == NONE:
            module.__dict__[name] = StandIn.of(parameter, recorder)
            return
        b = recorder.instances
        single = parameter.reshape(*shape[:axis], 1, *shape[axis + 1 :])
        copies = single.expand(*shape[:axis], b, *shape[axis + 1 :])
        module.__dict__[name] = copies
        recorder.catch([copies], lambda backs: [Dense(parameter, _shaped(backs[0], axis, b, parameter))])

    def after(*_: Any) -> None:
        module.__dict__.pop(name, None)

    return [module.register_forward_pre_hook(before), module.register_forward_hook(after, always_call=True)]


def _shaped(back: Tensor | None, axis: int, b: int, parameter: Tensor) -> Tensor:
    if back is None:
        return parameter.new_zeros(b, *parameter.shape)
    return back.movedim(axis, 0).reshape(b, *parameter.shape)

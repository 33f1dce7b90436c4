"""Which adapter reads a model: the first that accepts it, in the order that the adapters state themselves."""

from functools import cache
from graphlib import TopologicalSorter
from typing import Any

from precedents import adapters
from precedents.adapters._adapter import Adapter
from precedents.classifier.construction import unwrapped
from precedents.classifier.refusals import refuse_programs
from precedents.errors import InputError
from precedents.registry import Registry
from precedents.runtime.wording import a_type

ADAPTERS: Registry[type[Adapter]] = Registry("adapter", adapters)


def adapter_of(model: Any) -> Adapter:
    """The model, without wrappers for speed, as its adapter reads it; refuses what none accepts."""
    model = unwrapped(model)
    for kind in in_order():
        if kind.accepts(model):
            return kind(model)
    refuse_programs(model)
    others = "".join(
        f", or a model of {name.replace('_', ' ')}" for name in ADAPTERS.names() if name != "pytorch"
    )
    home = type(model).__module__.partition(".")[0]  # as many libraries have a Sequential
    what = f"the class {model.__name__}" if isinstance(model, type) else a_type(model)
    what += "" if home in ("builtins", "__main__", "collections") else f" of {home}"
    raise InputError(
        f"The model is {what}. Pass a torch.nn.Module{others}. Anything else that is "
        "computed by torch becomes one as a class with a method forward."
    )


@cache
def in_order() -> list[type[Adapter]]:
    """All adapters, each before those that it is to be asked before."""
    order = TopologicalSorter({name: set[str]() for name in ADAPTERS.names()})
    for name in ADAPTERS.names():
        for later in ADAPTERS.get(name).before:
            order.add(later, name)
    return [ADAPTERS.get(name) for name in order.static_order()]

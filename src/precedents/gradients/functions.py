"""Functions of torch that modules without a rule of their own call with their parameters: they have rules.

A layer that derives from Embedding, LayerNorm or Linear, or is like one, does something before or after. While
it runs, such a parameter is a stand-in, which catches what comes back to what the function returned.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

from torch import Tensor
from torch.nn import functional

from precedents.data.inputs import leaves
from precedents.gradients.factors import Part
from precedents.gradients.layers._rule import Rule
from precedents.gradients.layers.embedding import embedding
from precedents.gradients.layers.layer_norm import layer_norm
from precedents.gradients.layers.linear import linear
from precedents.gradients.recording import Backs, Recorder

EMBEDDING = {
    "padding_idx": None,
    "max_norm": None,
    "norm_type": 2.0,
    "scale_grad_by_freq": False,
    "sparse": False,
}
RULES: Mapping[
    Callable[..., Tensor], tuple[Rule, Mapping[str, Any]]
] = {  # with all arguments and their defaults
    functional.linear: (linear, {"input": None, "weight": None, "bias": None}),
    functional.embedding: (embedding, {"input": None, "weight": None, **EMBEDDING}),
    functional.layer_norm: (
        layer_norm,
        {"input": None, "normalized_shape": None, "weight": None, "bias": None, "eps": 1e-5},
    ),
}


class StandIn(Tensor):
    """Stands for a parameter in calls of these functions."""

    parameter: Tensor
    recorder: Recorder

    @classmethod
    def of(cls, parameter: Tensor, recorder: Recorder) -> "StandIn":
        """With what it stands for, and who is to be told."""
        made = parameter.detach().as_subclass(cls)
        made.parameter, made.recorder = parameter, recorder
        return made

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Calls the function with the parameters; other functions may not use a stand-in's numbers."""
        if function not in RULES:
            found = super().__torch_function__(function, types, tuple(args), dict(kwargs or {}))  # type: ignore[no-untyped-call]
            if any(isinstance(value, cls) for value in leaves(found)):  # several come of chunk, or an LSTMCell
                raise TypeError(f"A parameter is used by {getattr(function, '__name__', 'a function')}.")
            return found
        rule, defaults = RULES[function]
        given = {**defaults, **dict(zip(defaults, args, strict=False)), **(kwargs or {})}
        own = [value for value in given.values() if isinstance(value, StandIn)]
        given |= {name: value.parameter for name, value in given.items() if isinstance(value, StandIn)}
        recorder, x = own[0].recorder, given["input"]
        if rule.broadcasts and x.ndim > 1 and recorder.is_for_all(f"{id(own[0].parameter)}", x):
            given["input"] = x.expand(recorder.instances, *x.shape[1:])
        layer = SimpleNamespace(**given)
        if not rule.applies(layer):
            raise TypeError("The rule does not apply.")
        output = function(**given)
        recorder.catch([output], partial(_parts, rule, layer, [s.parameter for s in own]), [x])
        return output


def _parts(rule: Rule, layer: Any, own: list[Tensor], backs: Backs) -> Iterator[Part]:
    """The gradients of the parameters that had a stand-in."""
    back, x = backs[0], layer.input.detach()
    assert rule.parts is not None
    parts: Iterable[Part] = () if back is None else rule.parts(layer, back, x)
    return (part for part in parts if any(part.parameter is each for each in own))

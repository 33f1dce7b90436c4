"""How a module is fed, where its output has its logits, and how they become one for each class.

Modules return a tensor, or tuples, lists, dicts and objects with tensors in them. One output for two classes is
the logit z of the second: the logits are then (0, z), whose cross entropy is the binary one of z.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor, nn

from precedents.classifier.arguments import arguments
from precedents.data.inputs import Collated, Inputs, count, leaves, mapped, ordered, shapes
from precedents.errors import InputError, PrecedentsError, UnknownNameError, UserCodeError
from precedents.runtime.users_code import out_of_memory, refused, why
from precedents.runtime.wording import a_type

Place: TypeAlias = str | int  # a key or an attribute; a position
OutputForm = Literal["logits", "logit", "probability", "probabilities"]
NAMES = ("logits", "logit")  # of outputs, which say what they are


@dataclass(frozen=True)
class Outputs:
    """How logits [b, classes] are read from what a module returns."""

    place: Place | None = None  # none: the output is the tensor itself
    form: OutputForm = "logits"

    @property
    def single(self) -> bool:
        """Whether there is one output for two classes."""
        return self.form in ("logit", "probability")

    def of(self, module: nn.Module, inputs: Inputs) -> Tensor:
        """The logits [b, classes] that the module computes; the graph is kept if gradients are enabled."""
        b = len(inputs) if isinstance(inputs, Tensor) else count(inputs)
        logits = self.logits(returned(module, inputs), b)
        return logits if isinstance(inputs, Tensor) else ordered(inputs, logits)

    def computed(self, module: nn.Module, inputs: Inputs, count: int) -> Tensor:
        """The same in the order of the module's own batch; what it raises is not put into words."""
        return self.logits(fed(module, placed(module, inputs)), count)

    def logits(self, output: Any, count: int) -> Tensor:
        """The logits of so many instances, or an error that says what came instead."""
        value = output if self.place is None else _parts(output).get(self.place)
        if count == 1 and isinstance(value, Tensor) and value.ndim == (0 if self.single else 1):
            value = value[None]  # squeeze() took the axis of the one instance, too
        if not isinstance(value, Tensor) or _form(value, count) is None:
            raise _refusal(output, count)
        if self.form == "probabilities":
            return (value + torch.finfo(value.dtype).eps).log()
        if not self.single:
            return value
        value = value.reshape(count, 1)
        if self.form == "probability":
            value = torch.special.logit(value, eps=torch.finfo(value.dtype).eps)
        return torch.cat([torch.zeros_like(value), value], dim=1)


def returned(module: nn.Module, inputs: Inputs) -> Any:
    """What a module returns for these inputs, whatever it is."""
    try:
        return fed(module, placed(module, inputs))
    except (PrecedentsError, KeyboardInterrupt):
        raise
    except BaseException as error:
        if out_of_memory(error):
            raise refused(error, "the model") from error
        raise UserCodeError(
            f"The model cannot take inputs of the shape {', '.join(map(str, shapes(inputs)))}"
            f"{_mistyped(module, inputs)}: {why(error)}."
        ) from error


def _mistyped(module: nn.Module, inputs: Inputs) -> str:
    """That whole numbers came where the first layer takes others, or the other way round; else nothing."""
    first = next((layer for layer in module.modules() if next(layer.parameters(False), None) is not None), None)
    tokens = isinstance(first, (nn.Embedding, nn.EmbeddingBag))
    every = leaves(inputs)
    if tokens and every and all(leaf.is_floating_point() for leaf in every):
        return f" of {every[0].dtype}, which are no token numbers (x.long())"
    if not tokens and every and not any(leaf.is_floating_point() for leaf in every):
        return f" of {every[0].dtype}, which may have to be floating point (x.float())"
    return ""


def placed(module: nn.Module, inputs: Inputs) -> Inputs:
    """The inputs on the module's device, floating point ones in the module's precision."""
    if isinstance(inputs, Collated):
        inputs = arguments(module, inputs.arguments)
    home = next((p for p in module.parameters() if p.is_floating_point()), torch.empty(0))

    def moved(leaf: Tensor) -> Tensor:
        leaf = leaf.clone() if leaf.is_inference() else leaf
        return leaf.to(home) if leaf.is_floating_point() else leaf.to(home.device)

    return moved(inputs) if isinstance(inputs, Tensor) else mapped(moved, inputs)


def fed(module: nn.Module, inputs: Inputs) -> Any:
    """The module's output: a tuple is its positional arguments, a dict its keyword arguments."""
    if isinstance(inputs, dict):
        return module(**inputs)
    return module(*inputs) if isinstance(inputs, tuple) else module(inputs)


def outputs_of(output: Any, count: int, given: Place | None = None) -> Outputs:
    """Where the logits are: where `given` says, under their name, or in the one tensor [b, classes]."""
    if isinstance(output, Tensor):
        if given is not None:
            raise InputError(f"output is {given!r}, but the model returns one tensor. Leave output out.")
        parts: dict[Place | None, Any] = {None: output}
    else:
        parts = dict(_parts(output))
    if given is not None and given not in parts:
        raise UnknownNameError("output of the model", str(given), map(str, parts))
    named = given if given is not None else next((name for name in NAMES if name in parts), None)
    if named is not None:
        parts = {named: parts[named]}
    forms = {place: _form(value, count) for place, value in parts.items() if isinstance(value, Tensor)}
    for form in ("logits", "logit"):
        places = [place for place, found in forms.items() if found == form]
        if len(places) == 1:
            return Outputs(places[0], "logits" if form == "logits" else "logit")
        if places:
            raise InputError(
                f"The model returns {_described(output)}: the logits could be "
                f"{' or '.join(map(repr, places))}. Say which: output={places[0]!r}."
            )
    raise _refusal(output if named is None else parts[named], count)


def _form(value: Tensor, count: int) -> OutputForm | None:
    """What a tensor could be to a classifier of so many instances."""
    if not value.is_floating_point() or value.ndim not in (1, 2) or len(value) != count:
        return None
    return "logit" if value.ndim == 1 or value.shape[1] == 1 else "logits" if value.shape[1] > 1 else None


def _parts(output: Any) -> dict[Place | None, Any]:
    """What an output is made of, by key, attribute or position."""
    if isinstance(output, Mapping):
        return dict(output)
    if hasattr(output, "_asdict"):
        return dict(output._asdict())
    if isinstance(output, (tuple, list)):
        return dict(enumerate(output))
    return dict(getattr(output, "__dict__", {}))


def _described(output: Any) -> str:
    if isinstance(output, Tensor):
        return str(tuple(output.shape))
    parts = {place: value for place, value in _parts(output).items() if isinstance(value, Tensor)}
    inside = ", ".join(f"{place!r}: {tuple(value.shape)}" for place, value in parts.items())
    return a_type(output) + (f" with {inside}" if inside else " without tensors")


def _refusal(output: Any, count: int) -> InputError:
    if isinstance(output, Tensor) and output.ndim == 3 and len(output) == count:
        return InputError(
            f"The model returns {_described(output)} for {count} instance(s): logits for each of "
            f"{output.shape[1]} positions, as models that generate or tag texts do. An explanation is of one "
            "decision: use a classification head, or wrap the model so that it returns the logits of the one "
            f"position in question, [{count}, {output.shape[2]}], with its token as the label."
        )
    return InputError(
        f"The model returns {_described(output)} for {count} instance(s). A classifier returns logits "
        f"[{count}, classes], or [{count}] or [{count}, 1] for two classes; as they are, or in a tuple, a dict "
        "or an object as its 'logits': wrap it in a module that does."
    )

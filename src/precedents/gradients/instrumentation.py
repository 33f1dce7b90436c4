"""How a clone of the model is made to record: by layer rules, by copies of parameters, by vmap over a module.

The clone shares the model's parameters and carries the hooks. Layers that a rule covers give their gradients by
the rule. A parameter that none covers is given to its module as one copy for each instance, if that is the same
function; else its gradients come by vmap over the module, then one instance at a time.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from torch import Tensor, nn

from precedents.classifier.classifier import Classifier
from precedents.classifier.clone import sharing_clone
from precedents.data.inputs import leaves, mapped
from precedents.errors import InputError
from precedents.gradients import layers
from precedents.gradients.copies import Check, attached, copied
from precedents.gradients.factors import Part
from precedents.gradients.fallbacks import module_by_vmap
from precedents.gradients.folding import replace
from precedents.gradients.layers._rule import EVERYTHING, Rule
from precedents.gradients.recording import Backs, Call, Recorder, Recording
from precedents.registry import Registry
from precedents.runtime.wording import a_type

RULES: Registry[Rule] = Registry("layer rule", layers)


def instrumented(
    model: Classifier,
    check: Check | None = None,
    like: Recording | None = None,
    clone: nn.Module | None = None,
) -> Recording:
    """The clone with its hooks; the model's own module is left alone.

    Which parameters are given as copies is tried by `check`, or taken from a recording of the same model.
    `clone` is one that is there already.
    """
    clone = sharing_clone(model.module) if clone is None else clone
    recorder = Recorder()
    draft = Recording(clone, recorder, (), {}, model.outputs)
    copies: dict[tuple[str, str], tuple[int, ...]] = {}
    uncovered: list[str] = []
    for name, module in _ruled(clone, recorder):
        left = []
        for own, parameter in module.named_parameters(recurse=False):
            if not parameter.requires_grad:
                continue
            shape = None if like is None else like.copies.get((name, own))
            if check is not None:
                shape = copied(draft, module, own, check)
            if shape is None:
                left.append(own)
            else:
                copies[name, own] = shape
                attached(module, own, shape, recorder)
        if left:
            uncovered.append(type(module).__name__)
            _hook(module, recorder, partial(module_by_vmap, model.module.get_submodule(name), left))
    return Recording(clone, recorder, tuple(uncovered), copies, model.outputs)


def _ruled(clone: nn.Module, recorder: Recorder) -> list[tuple[str, nn.Module]]:
    """Hooks what rules cover; gives the modules, by name, with parameters of their own that none covers."""
    left: list[tuple[str, nn.Module]] = []
    for name, module, rule in _matched(clone):
        if rule is not None:
            _follow(rule, clone, module, recorder)
        elif any(p.requires_grad for p in module.parameters(recurse=False)):
            left.append((name, module))
    return left


def _matched(clone: nn.Module) -> list[tuple[str, nn.Module, Rule | None]]:
    """The modules with the rules that they follow; what is inside of one that is covered whole is left out."""
    found: list[tuple[str, nn.Module, Rule | None]] = []
    done: set[int] = set()
    for name, module in clone.named_modules():
        if id(module) not in done:
            rule = _rules().get(type(module))
            rule = rule if rule is not None and rule.follows(module) else None
            found.append((name, module, rule))
            if rule is not None and rule.covers is EVERYTHING:
                done.update(map(id, module.modules()))
    return found


@cache
def _rules() -> dict[type[nn.Module], Rule]:
    """The rules by the layer types that they are for; no type has two."""
    rules = map(RULES.get, RULES.names())
    return {kind: rule for rule in rules for kind in rule.types}


def _follow(rule: Rule, clone: nn.Module, module: nn.Module, recorder: Recorder) -> None:
    """Makes a module of the clone record by its rule."""
    if rule.rewritten is not None:
        replace(clone, module, rule.rewritten(module, recorder))
        return
    if rule.broadcasts:
        module.register_forward_pre_hook(partial(_for_each, recorder))
    _hook(module, recorder, Ruled(rule, module))


def _for_each(recorder: Recorder, _: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """One input [1, ...] for all instances, as of their positions, becomes one for each instance."""
    if args and args[0].ndim > 1 and len(args[0]) == 1 < recorder.instances:
        return args[0].expand(recorder.instances, *args[0].shape[1:]), *args[1:]
    return None


def _hook(module: nn.Module, recorder: Recorder, parts: Callable[[Call, Any], Iterable[Part]]) -> None:
    """Makes the recorder catch what comes back to a module's outputs; `parts` makes the gradients of it."""

    def caught(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        tensors = list(leaves((args, kwargs)))
        received = [(value, value._version) for value in tensors]
        call = Call(recorder.instances, args, kwargs, output)

        def made(backs: Backs) -> Iterable[Part]:
            if any(value._version != version for value, version in received):
                raise InputError(
                    f"What {a_type(module)} received was changed in place after it was used. "
                    "Use the operation that is not in place."
                )
            return parts(call, backs)

        recorder.catch(list(leaves(output)), made, tensors)

    module.register_forward_hook(caught, prepend=True, with_kwargs=True)


@dataclass(eq=False)
class Ruled:
    """The gradients of a layer by its rule, which has the instances along the first axis.

    A layer that has them along the second, as recurrent and attention layers do unless told otherwise, is known
    by what first comes back to it; that this was read rightly is tried like everything else.
    """

    rule: Rule
    module: nn.Module
    second: bool | None = None

    def __call__(self, call: Call, backs: list[Tensor]) -> Iterator[Part]:
        """From the gradient of its output and what it received."""
        assert self.rule.parts is not None
        back, b = backs[0], call.instances
        if self.second is None:
            self.second = len(back) != b and back.ndim > 1 and back.shape[1] == b
        ordered = partial(_first, b) if self.second else Tensor.detach
        return self.rule.parts(self.module, *mapped(ordered, [back, *call.args, *call.kwargs.values()]))


def _first(b: int, values: Tensor) -> Tensor:
    """With the second axis first, if that is the instances'."""
    values = values.detach()
    return values.transpose(0, 1) if values.ndim > 1 and values.shape[1] == b else values

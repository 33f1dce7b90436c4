"""How a clone of the model is made to record: by layer rules, by copies of parameters, by vmap over a module.

The clone shares the model's parameters and carries the hooks. Layers that a rule covers give their gradients by
the rule. A parameter that none covers is given to its module as one copy for each instance, if that is the same
function; else its gradients come by vmap over the module, then one instance at a time.
"""

from functools import cache, partial
from typing import Any

from torch import nn

from precedents.classifier.classifier import Classifier
from precedents.classifier.clone import sharing_clone
from precedents.gradients import layers
from precedents.gradients.copies import Check, attached, copied
from precedents.gradients.fallbacks import module_by_vmap
from precedents.gradients.folding import replace
from precedents.gradients.layers._rule import EVERYTHING, Rule
from precedents.gradients.recording import ByRule, Recorder, Recording, hook
from precedents.registry import Registry

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
            hook(module, recorder, partial(module_by_vmap, model.module.get_submodule(name), left))
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
    assert rule.parts is not None
    if rule.broadcasts:
        module.register_forward_pre_hook(partial(_for_each, recorder))
    hook(module, recorder, ByRule(rule.parts, module))


def _for_each(recorder: Recorder, _: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """One input [1, ...] for all instances, as of their positions, becomes one for each instance."""
    if args and args[0].ndim > 1 and len(args[0]) == 1 < recorder.instances:
        return args[0].expand(recorder.instances, *args[0].shape[1:]), *args[1:]
    return None

"""How a clone of the model is made to record: by layer rules, by copies of parameters, by vmap over a module.

The clone shares the model's parameters and carries the hooks. Layers that a rule covers give their gradients by
the rule. A parameter that none covers is given to its module as one copy for each instance, if that is the same
function; else its gradients come by vmap over the module, then one instance at a time.
"""

from collections.abc import Callable, Set
from functools import cache, partial
from typing import Any

from torch import nn

from precedents.classifier.classifier import Classifier
from precedents.classifier.clone import Clones
from precedents.gradients import layers
from precedents.gradients.copies import Check, attached, copied, lined_up
from precedents.gradients.fallbacks import module_by_vmap
from precedents.gradients.folding import substitute
from precedents.gradients.layers._rule import EVERYTHING, Rule
from precedents.gradients.recording import ByRule, Instrument, Recorder, Recording, hook
from precedents.registry import Registry

HELD = (nn.ParameterDict, nn.ParameterList)
RULES: Registry[Rule] = Registry("layer rule", layers)


def instrumented(
    model: Classifier,
    check: Check | None = None,
    like: Recording | None = None,
    fresh: Callable[[], nn.Module] | None = None,
    alike: bool = False,
    sited: bool = False,
) -> Recording:
    """Clones with hooks; the model's own module is left alone.

    Which parameters are given as copies is tried by `check`, or taken from a recording of the same model; with
    `alike`, once for all modules of a type. `fresh` makes the clones; `sited` leaves positions in the open.
    """
    fresh = fresh or model.clones.fresh
    own = Instrument(fresh())
    seconds = own.recorder.known = {} if like is None else like.seconds
    copies, uncovered = dict[tuple[str, str], tuple[int, ...]](), list[tuple[str, set[int]]]()
    packed, without = (frozenset[int](),) * 2 if like is None else (like.packed, like.without)
    own.recorder.beyond = [p for p in own.clone.parameters() if id(p) in without]
    ways: dict[tuple[type, str], str | None] = {}
    for name, module in _ruled(own, seconds, sited):
        left = []
        for parameter in _trainable(module, without):
            shape = None if like is None else like.copies.get((name, parameter))
            if check is not None and parameter in module._parameters:
                draft = Recording(own, Clones(lambda: own), model.outputs, seconds)
                shape = _given(draft, module, parameter, check, ways if alike else {})
            if shape is None:
                left.append(parameter)
            else:
                copies[name, parameter] = shape
                attached(module, parameter, shape, own.recorder)
        if left:
            uncovered.append(_by_module(model, own, name, module, left))
    kinds, alone = tuple(kind for kind, _ in uncovered), set[int]().union(*(ids for _, ids in uncovered))
    lent = Clones(lambda: own, [own])
    found = Recording(own, lent, model.outputs, seconds, kinds, copies, packed, without, alone)
    lent.fresh = partial(_another, model, found, fresh, sited)
    return found


def _by_module(
    model: Classifier, own: Instrument, name: str, module: nn.Module, left: list[str]
) -> tuple[str, set[int]]:
    """Hooks a module for vmap over it; gives its type and the ids of the parameters in question."""
    hook(module, own.recorder, partial(module_by_vmap, model, own.recorder.known, name, left))
    return type(module).__name__, {id(p) for each, p in module.named_parameters() if each in left}


def _given(
    draft: Recording,
    module: nn.Module,
    parameter: str,
    check: Check,
    ways: dict[tuple[type, str], str | None],  # by the types of modules that were tried
) -> tuple[int, ...] | None:
    """The shape in which a module can be given copies of its parameter, if it can."""
    kind = type(module), parameter
    if kind not in ways:
        ways[kind] = copied(draft, module, parameter, check)
    return lined_up(tuple(module.get_parameter(parameter).shape)).get(ways[kind] or "")


def _another(model: Classifier, like: Recording, fresh: Callable[[], nn.Module], sited: bool) -> Instrument:
    """One more clone with the hooks that the first has, for a pass at the same time."""
    return instrumented(model, like=like, fresh=fresh, sited=sited).first


def _ruled(own: Instrument, seconds: dict[str, bool], sited: bool) -> list[tuple[str, nn.Module]]:
    """Hooks what rules cover; gives the modules, by name, with parameters of their own that none covers."""
    matched = _matched(own.clone)
    left = [(name, module) for name, module, rule in matched if rule is None and _trainable(module)]
    for name, module, rule in matched:
        if rule is None:
            continue
        if rule.rewritten is not None:
            substitute(own.clone, module, rule.rewritten(module, own.recorder))
        else:
            assert rule.parts is not None
            parts = rule.sites if sited and rule.sites is not None else rule.parts
            if rule.broadcasts:
                module.register_forward_pre_hook(partial(_for_each, own.recorder, f"{name} for all"))
            hook(module, own.recorder, ByRule(parts, name, module, seconds))
    return left


def _trainable(module: nn.Module, without: Set[int] = frozenset()) -> list[str]:
    """The names of its own trainable parameters but some, with those in dicts and lists, which nobody calls."""
    if type(module) in HELD:
        return []
    held = [name for name, child in module.named_children() if type(child) in HELD]
    return [
        name
        for name, p in module.named_parameters(recurse=bool(held))
        if p.requires_grad
        and id(p) not in without
        and (name in module._parameters or name.partition(".")[0] in held)
    ]


def _matched(clone: nn.Module) -> list[tuple[str, nn.Module, Rule | None]]:
    """The modules with the rules that they follow; what is inside of one that is covered whole is left out."""
    found: list[tuple[str, nn.Module, Rule | None]] = []
    done: set[int] = set()
    for name, module in clone.named_modules():
        if id(module) not in done:
            rule = rule_of(module.__class__)
            rule = rule if rule is not None and rule.follows(module) else None
            found.append((name, module, rule))
            if rule is not None and rule.covers is EVERYTHING:
                done.update(map(id, module.modules()))
    return found


@cache
def rule_of(kind: type[nn.Module]) -> Rule | None:
    """The rule for layers of a type, by itself or by its full name."""
    return _rules().get(kind) or _rules().get(f"{kind.__module__}.{kind.__qualname__}")


@cache
def _rules() -> dict[type[nn.Module] | str, Rule]:
    """The rules by the layer types that they are for; no type has two."""
    rules = map(RULES.get, RULES.names())
    return {kind: rule for rule in rules for kind in rule.types}


def _for_each(recorder: Recorder, name: str, _: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """One input [1, ...] for all instances, as of their positions, becomes one for each instance.

    So does one without an axis of instances [t], which is known by its length at the first call; unless it is
    the positions of all instances in a row.
    """
    b = recorder.instances
    if args and args[0].ndim == 1:
        alone = len(args[0]) not in recorder.spans and recorder.known.setdefault(name, len(args[0]) != b)
        return (args[0].expand(b, -1), *args[1:]) if alone else None
    if args and args[0].ndim > 1 and recorder.is_for_all(name, args[0]):
        return args[0].expand(b, *args[0].shape[1:]), *args[1:]
    return None

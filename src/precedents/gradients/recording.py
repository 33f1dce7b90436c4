"""One batched pass forward and back, with what every layer received and what came back to it caught on the way.

A clone of the model that shares its parameters carries the hooks. Layers that a rule covers give their
gradients by the rule. A parameter that none covers is given to its module as one copy for each instance, if
that is the same function; else its gradients come by vmap over the module, then one instance at a time.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from threading import RLock
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.func import functional_call, vjp, vmap

from precedents.classifier.classifier import Classifier
from precedents.classifier.outputs import Outputs
from precedents.data.inputs import Inputs, count, fed
from precedents.errors import InputError
from precedents.gradients import layers
from precedents.gradients.factors import Dense, Part
from precedents.gradients.folding import cloned, replace
from precedents.gradients.layers._rule import Pass, Recorder, Rule, Sink
from precedents.registry import Registry

RULES: Registry[Rule] = Registry("layer rule", layers)
COPIES = 0  # stands for the axis along which a parameter's copies lie, in the shape of them all
S = TypeVar("S", bound=Sink)


@dataclass(frozen=True, eq=False)
class Recording:
    """A clone of the model's module that records."""

    clone: nn.Module
    recorder: Recorder
    uncovered: tuple[str, ...]  # the types of modules whose parameters no rule covers
    copies: Mapping[tuple[str, str], tuple[int, ...]]  # parameters given as copies, by module and name
    outputs: Outputs
    lock: Any = field(default_factory=RLock, repr=False)

    def passes(
        self, inputs: Inputs, cotangents: Callable[[Tensor], Sequence[Tensor]], sink: Callable[[], S]
    ) -> Iterator[S]:
        """A sink with the gradients for each of several cotangents [b, c] of the logits, from one forward pass.

        Gradients are made as soon as what they need comes back, while it is near the processor.
        """
        with self.lock:
            running = self.recorder.running = Pass()
            self.recorder.instances = count(inputs)
            try:
                with torch.inference_mode(mode=False), torch.enable_grad():
                    logits = self.outputs.logits(fed(self.clone, inputs), count(inputs))
            except BaseException:
                running.close()
                raise
            finally:
                self.recorder.running = Pass()
        try:
            several = cotangents(logits.detach())
            for i, cotangent in enumerate(several):
                found = sink()
                running.back(logits, cotangent, found, keep=i < len(several) - 1)
                self.recorder.volume, self.recorder.in_cache = running.volume, running.in_cache
                yield found
        finally:
            running.close()


Check = Callable[[Recording, Tensor], bool]  # whether a parameter's gradients are right on the first instances


def recording(
    model: Classifier,
    check: Check | None = None,
    like: Recording | None = None,
    clone: nn.Module | None = None,
) -> Recording:
    """The clone with its hooks; the model's own module is left alone.

    Which parameters are given as copies is tried by `check`, or taken from a recording of the same model.
    """
    clone = cloned(model.module) if clone is None else clone
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
                shape = _copied(draft, module, own, check)
            if shape is None:
                left.append(own)
            else:
                copies[name, own] = shape
                _attached(module, own, shape, recorder)
        if left:
            uncovered.append(type(module).__name__)
            _hook(module, recorder, partial(_by_vmap, model.module.get_submodule(name), left))
    return Recording(clone, recorder, tuple(uncovered), copies, model.outputs)


def _ruled(clone: nn.Module, recorder: Recorder) -> list[tuple[str, nn.Module]]:
    """Hooks what rules cover; gives the modules, by name, with parameters of their own that none covers."""
    rules = [RULES.get(name) for name in RULES.names()]
    done: set[int] = set()
    left: list[tuple[str, nn.Module]] = []
    for name, module in list(clone.named_modules()):
        if id(module) in done:
            continue
        rule = next((r for r in rules if type(module) in r.types and r.applies(module)), None)
        if rule is not None and rule.rewritten is not None:
            done.update(id(inner) for inner in module.modules())
            replace(clone, module, rule.rewritten(module, recorder))
        elif rule is not None and rule.whole:
            done.update(id(inner) for inner in module.modules())
            _hook(module, recorder, Ruled(rule, module))
        elif any(p.requires_grad for p in module.parameters(recurse=False)):
            if rule is not None and set(module._parameters) <= {"weight", "bias"}:
                if isinstance(module, nn.Embedding):
                    module.register_forward_pre_hook(partial(_for_each, recorder))
                _hook(module, recorder, Ruled(rule, module))
            else:
                left.append((name, module))
    return left


def _for_each(recorder: Recorder, _: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """One lookup [1, t] for all instances, as of their positions, becomes one for each instance."""
    if args and args[0].ndim > 1 and len(args[0]) == 1 < recorder.instances:
        return args[0].expand(recorder.instances, *args[0].shape[1:]), *args[1:]
    return None


def _copied(draft: Recording, module: nn.Module, name: str, check: Check) -> tuple[int, ...] | None:
    """The shape in which a module can be given one copy of its parameter for each instance, if there is one.

    The copies are lined up before the parameter's axes, with room for other axes between, or along an axis of
    length one, until one fits: positions that are added, tokens that are expanded, scales that are multiplied.
    """
    parameter = module._parameters[name]
    assert parameter is not None
    own = tuple(parameter.shape)
    tried = [(COPIES, *(1,) * room, *own) for room in range(3)]
    if own[:1] == (1,):
        tried.insert(0, (COPIES, *own[1:]))
    if own[1:2] == (1,):
        tried.append((own[0], COPIES, *own[2:]))
    for shape in tried:
        handles = _attached(module, name, shape, draft.recorder)
        try:
            if check(draft, parameter):
                return shape
        except (RuntimeError, ValueError, TypeError, IndexError, AssertionError):
            pass  # the copies do not fit in this place
        finally:
            for handle in handles:
                handle.remove()
            module.__dict__.pop(name, None)
    return None


def _attached(module: nn.Module, name: str, shape: tuple[int, ...], recorder: Recorder) -> list[Any]:
    parameter = module._parameters[name]
    assert parameter is not None
    axis = shape.index(COPIES)

    def before(*_: Any) -> None:
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


def _hook(module: nn.Module, recorder: Recorder, parts: Callable[..., Any]) -> None:
    def caught(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        tensors, b = _tensors((args, kwargs)), recorder.instances
        received = [(value, value._version) for value in tensors]

        def made(backs: Sequence[Tensor | None]) -> Any:
            if any(value._version != version for value, version in received):
                raise InputError(
                    f"What a {type(module).__name__} received was changed in place after it was used. "
                    "Use the operation that is not in place."
                )
            return parts(b, backs, args, kwargs, output)

        recorder.catch(_tensors(output), made, tensors)

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

    def __call__(
        self, b: int, backs: Sequence[Tensor], args: tuple[Any, ...], kwargs: dict[str, Any], _: Any
    ) -> Iterator[Part]:
        """From the gradient of its output and what it received."""
        assert self.rule.parts is not None
        back = backs[0]
        if self.second is None:
            self.second = len(back) != b and back.ndim > 1 and back.shape[1] == b
        given = _mapped(partial(_first, b) if self.second else Tensor.detach, [back, *args, *kwargs.values()])
        return self.rule.parts(self.module, *given)


def _first(b: int, values: Tensor) -> Tensor:
    """With the second axis first, if that is the instances'."""
    values = values.detach()
    return values.transpose(0, 1) if values.ndim > 1 and values.shape[1] == b else values


def _by_vmap(
    module: nn.Module,
    left: list[str],
    b: int,
    backs: Sequence[Tensor | None],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    output: Any,
) -> Iterator[Part]:
    """The gradients of some of a module's own parameters by vmap over its own products, else one by one."""
    outputs = [value for value in _tensors(output) if value.requires_grad]
    full = [torch.zeros_like(o) if back is None else back for back, o in zip(backs, outputs, strict=True)]
    batched = [value for value in _tensors((args, kwargs)) if value.ndim and len(value) == b]
    own = {name: p for name, p in module.named_parameters(recurse=False) if name in left}
    wanted = [o.shape for o in outputs]

    def single(received: list[Tensor], back: list[Tensor]) -> tuple[Tensor, ...]:
        ones = iter(received)

        def alone(value: Tensor) -> Tensor:
            return next(ones)[None] if value.ndim and len(value) == b else value

        its_args, its_kwargs = _mapped(alone, (args, kwargs))

        def returned(values: dict[str, Tensor]) -> list[Tensor]:
            result = functional_call(module, values, its_args, its_kwargs)
            every = [value for value in _tensors(result) if value.is_floating_point()]
            return [value for value, shape in zip(every, wanted, strict=False) if value.shape[1:] == shape[1:]]

        pulled = vjp(returned, {name: p.detach() for name, p in own.items()})[1]
        grads = pulled([each[None] for each in back])[0]
        return tuple(grads[name] for name in own)

    try:
        values = vmap(single)([value.detach() for value in batched], full)
    except (RuntimeError, NotImplementedError, ValueError):  # an operation that vmap has no rule for
        rows = [single([v[i].detach() for v in batched], [back[i] for back in full]) for i in range(b)]
        values = tuple(torch.stack(column) for column in zip(*rows, strict=True))
    yield from (Dense(p, value) for p, value in zip(own.values(), values, strict=True))


def _tensors(value: Any) -> list[Tensor]:
    """The tensors in a nest of tuples, lists and dicts, in order."""
    found: list[Tensor] = []
    _mapped(lambda tensor: found.append(tensor) or tensor, value)  # type: ignore[func-returns-value]
    return found


def _mapped(function: Callable[[Tensor], Tensor], value: Any) -> Any:
    """The nest with its tensors changed; what is no tensor stays."""
    if isinstance(value, Tensor):
        return function(value)
    if isinstance(value, dict):
        return {key: _mapped(function, part) for key, part in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)(_mapped(function, part) for part in value)
    return value

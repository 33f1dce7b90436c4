"""How a classifier is made of a user's module: a copy, a first look at what it does, and refusals."""

from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, is_dataclass
from functools import partial
from types import MethodType
from typing import TYPE_CHECKING, Any, TypedDict

import torch
from torch import Tensor, nn

from precedents.classifier.hidden_layers import Trace, named, traced
from precedents.classifier.kept import Attributes, settled
from precedents.classifier.memory_format import laid_out
from precedents.classifier.order import kept, some_of
from precedents.classifier.outputs import Outputs, Place, outputs_of, returned
from precedents.classifier.refusals import (
    LENGTHS,
    accepted,
    refuse_outputs,
    refuse_padding,
    refuse_unsteady,
)
from precedents.classifier.user_loss import formed, loss_of
from precedents.data.examples import Examples
from precedents.data.inputs import Collated, Inputs, alone, leaves, ordered
from precedents.errors import InputError, KeywordError
from precedents.runtime.budget import COUNTED, Budget
from precedents.runtime.guards import random_state_kept
from precedents.runtime.sparse import SparseRows
from precedents.runtime.wording import a_type, first_line

if TYPE_CHECKING:
    from precedents.classifier.classifier import Classifier, Vectorise

HALF = (torch.float16, torch.bfloat16)
NAMES_OF_HALF = ("half", "float16", "bfloat16")
CAREFUL = ("builtins", "torch", "transformers", "peft", "pytorch_lightning", "lightning", "lightning_fabric")
PLAIN = ("torch.nn.", "torchvision.")  # whose modules leave instances where they are, and keep nothing
PARALLEL = (nn.DataParallel, nn.parallel.DistributedDataParallel)


class Told(TypedDict, total=False):
    """What `Classifier.of` can be told beside the module and its training set."""

    hidden: Sequence[str] | None  # the names of the modules whose outputs are the hidden layers
    vectorise: "Vectorise | None"  # makes vectors [b, d] of inputs, for the metrics on inputs
    memory: int | str | Budget | None  # how much may be used, in bytes or as "2 GB"
    loss: Any  # what the module was trained with; none: cross entropy
    output: Place | None  # where the logits are in what the module returns


@dataclass(frozen=True)
class Construction:
    """How a classifier is to be made; the fields are those of `Told`."""

    hidden: Sequence[str] | None = None
    vectorise: "Vectorise | None" = None
    memory: int | str | Budget | None = None
    loss: Any = None
    output: Place | None = None

    def __post_init__(self) -> None:
        if self.vectorise is not None and not callable(self.vectorise):
            raise InputError(f"vectorise is {a_type(self.vectorise)}. Pass a function of inputs [b, ...].")
        if self.hidden is not None:
            object.__setattr__(self, "hidden", _names(self.hidden))

    def made(self, kind: type["Classifier"], module: nn.Module, train: Examples) -> "Classifier":
        """The classifier of this module; a module that is none is refused."""
        if not isinstance(train, Examples):
            raise InputError(f"The training set is {a_type(train)}. Make it Examples: Examples.of(data).")
        budget = Budget.of(self.memory)
        copy = _copied(accepted(module), budget)
        before, plain = _versions(copy), _is_plain(copy)
        kept_before = None if plain else Attributes(copy)
        batch = train.take(train.largest)
        sample, b = batch.inputs, len(batch.labels)
        look = self._first_look(copy, sample, b)
        head = look.head
        logits = laid_out(copy, partial(look.outputs.of, copy, sample), look.logits)
        if kept_before is not None:
            settled(copy, kept_before, lambda module: look.outputs.of(module, sample), logits)
        model = kind(
            copy,
            classes=logits.shape[1],
            taps=named(copy, self.hidden) if self.hidden is not None else tuple(look.trace.hidden),
            only_layer=head if head is not None and _owns_all(copy, head) else None,
            sample=sample,
            vectorise=self.vectorise,
            budget=budget,
            head=head,
            loss=loss_of(self.loss, look.outputs, logits),
            outputs=look.outputs,
            activations=look.numbers,
            input_bytes=look.input_bytes,
            narrow=next((p.dtype for p in module.parameters() if p.dtype in HALF), None),
            several=None if plain else some_of(train),
            written=frozenset(name for name, version in _versions(copy).items() if version != before.get(name)),
        )
        if isinstance(sample, Collated):
            spaced = (i * (len(train) - 1) // (LENGTHS - 1) for i in range(LENGTHS))
            refuse_padding(model, train.take(list(dict.fromkeys([*train.largest, *spaced]))).inputs)
            model = model.of_one_width(strict=self.hidden is not None)
        refuse_outputs(model, logits if self.loss is None else None, train, look.is_one)
        if self.hidden is not None:
            model.hidden(sample)  # names that are wrong are found now
        return model if model.several is None else kept(model)

    @torch.no_grad()
    def _first_look(self, module: nn.Module, sample: Inputs, b: int) -> "FirstLook":
        """Two runs of the first instances, and one of each alone; refuses what is random or mixes instances."""
        singles = [alone(sample, i) for i in range(b)]
        with random_state_kept():
            output = returned(module, sample)
            outputs = formed(outputs_of(output, b, self.output), self.loss)
            logits = outputs.logits(output, b)
            logits = ordered(sample, logits) if isinstance(sample, Collated) else logits
            again, trace = traced(module, partial(outputs.of, module, sample))
            if not _are_equal(logits, again):  # torch's encoder layers compute otherwise while they are watched
                again = outputs.of(module, sample)
            bytes_, numbers = _bytes(sample) // b, trace.numbers // b
            try:
                if isinstance(sample, Collated):  # of which the first is the longest
                    longest = traced(module, partial(returned, module, singles[0]))[1]
                    bytes_, numbers = max(bytes_, _bytes(singles[0])), max(numbers, longest.numbers)
                single = torch.cat([outputs.of(module, each) for each in singles])
            except InputError as error:  # together they could be computed
                if not _needs_several(module):
                    raise InputError(
                        f"The model takes instances together, but none of them alone. {error}"
                    ) from error
                single = logits + 1
            is_one = outputs.single
        refuse_unsteady(logits, single, isinstance(sample, Collated), same=_are_equal(logits, again))
        return FirstLook(outputs, logits, trace, bytes_, numbers, is_one)


def _needs_several(module: nn.Module) -> bool:
    """Whether a BatchNorm is without running statistics, and so without numbers for one row."""
    norms = (each for each in module.modules() if isinstance(each, nn.modules.batchnorm._BatchNorm))
    return any(each.running_mean is None for each in norms)


def _bytes(inputs: Inputs) -> int:
    every = [inputs] if isinstance(inputs, Tensor) else leaves(inputs)
    return sum(x.held if isinstance(x, SparseRows) else x.nbytes for x in every)


@dataclass(frozen=True, eq=False)
class FirstLook:
    """What the first instances have shown of a module."""

    outputs: Outputs
    logits: Tensor
    trace: Trace
    input_bytes: int  # of one instance
    numbers: int  # that the layers return for one instance
    is_one: bool  # whether there is one output for two classes

    @property
    def head(self) -> str | None:
        """The name of a Linear that is called once and returns the logits, or the one of two classes."""
        names = [name for name, _ in self.trace.linear]
        own = self.logits[:, 1:] if self.outputs.form == "logit" else self.logits
        linear = ((n, value) for n, value in self.trace.linear if not value.is_nested)
        found = (n for n, value in linear if torch.equal(value, own) and names.count(n) == 1)
        return next(found, None)


def _copied(module: nn.Module, budget: Budget) -> nn.Module:
    """A copy in eval mode, which the budget has room for and knows of."""
    size = tensor_bytes(module)
    if size >= COUNTED and mixes_precisions(module):  # whose numbers become as wide as the widest
        size = _widened_bytes(module)
    if size < COUNTED:
        return _evaluating(_copy(module))
    budget.required(size, "A copy of the model", "Allow more memory.")
    copy = _evaluating(_copy(module))
    budget.held.until_gone(copy, size)
    return copy


def _evaluating(copy: nn.Module) -> nn.Module:
    """In eval mode; a function of parameters that is made at that change would be a constant to all passes."""
    with torch.enable_grad():
        copy.eval()
    if next(_of_a_pass(copy), None) is not None:
        raise InputError(
            f"The attribute {_uncopied(copy)} of the model is computed of its parameters by eval(): "
            "no gradient comes back to them. Compute it in forward, not in train()."
        )
    for part in copy.modules():
        if isinstance(part, (nn.Embedding, nn.EmbeddingBag)) and part.max_norm is not None:
            _rescale(copy, part)
    return copy


@torch.no_grad()
def _rescale(copy: nn.Module, table: Any) -> None:
    """Makes all rows as short as they become when they are looked up; a table that others use is left."""
    users = [part for part in copy.modules() if any(p is table.weight for p in part._parameters.values())]
    if len(users) == 1:
        rows, before = torch.arange(len(table.weight), device=table.weight.device), None
        while before is None or not torch.equal(before, table.weight):  # rounding may leave one too long
            before = table.weight.clone()
            torch.embedding_renorm_(table.weight, rows, table.max_norm, table.norm_type)
        table.max_norm = None


def tensor_bytes(module: nn.Module) -> int:
    """How many bytes the parameters and buffers of a module take."""
    return sum(each.numel() * each.element_size() for each in (*module.parameters(), *module.buffers()))


def _widened_bytes(module: nn.Module) -> int:
    tensors = [*module.parameters(), *module.buffers()]
    return sum(each.numel() for each in tensors) * max(4, *(each.element_size() for each in tensors))


def _names(hidden: Any) -> Sequence[str]:
    """The names of modules, from a sequence of texts; a text alone is one name."""
    names = [hidden] if isinstance(hidden, str) else list(hidden) if isinstance(hidden, Iterable) else [hidden]
    wrong = [each for each in names if not isinstance(each, str)]
    if wrong:
        raise InputError(f"hidden has {a_type(wrong[0])}. Pass the names of modules, as hidden=['0', '2'].")
    return names


def refuse_keywords(function: str, given: Iterable[str], known: Sequence[str]) -> None:
    """Refuses keywords that a public function does not take, with the nearest that it does."""
    for name in given:
        if name not in known:
            raise KeywordError(function, name, known)


def _copy(module: nn.Module) -> nn.Module:
    """A copy without the wrappers for speed, as what is compiled explains as what it came from; not in half."""
    try:
        inner = unwrapped(module)
        known = without_graph(inner)
        with random_state_kept():
            copy = deepcopy(inner, known)
    except Exception as error:
        name = _uncopied(module)
        found = "" if name is None else f" (its attribute {name})"
        raise InputError(
            f"The model cannot be copied{found}, and it is not touched otherwise: {first_line(error)}. "
            "Remove locks, open files and generators from its attributes."
        ) from error
    for part in list(copy.modules()):
        for name, child in part.named_children():
            setattr(part, name, unwrapped(child))
    if mixes_precisions(copy):
        from precedents.classifier.precision import widened

        return widened(copy)
    return copy


def without_graph(module: nn.Module) -> dict[int, Any]:
    """By id, copies of the tensors that a module keeps of a pass, without its graph.

    They are made anew by the next: attention that is kept to be looked at, the weights of pruned layers.
    """
    return {id(each): each.detach().clone() for each in _of_a_pass(module)}


def _of_a_pass(module: nn.Module) -> Iterator[Tensor]:
    """Every tensor with a graph that a copy would meet, in attributes, dicts, lists and hooks."""
    found: list[Any] = [module]
    seen: dict[int, Any] = {}
    while found:
        each = found.pop()
        if id(each) in seen:
            continue
        seen[id(each)] = each  # and keeps it, so that no other has its id
        if isinstance(each, Tensor) and each.grad_fn is not None:
            yield each
        elif isinstance(each, (list, tuple, set)):
            found += each
        elif isinstance(each, dict):
            found += each.values()
        elif isinstance(each, nn.Module) or (is_dataclass(each) and not isinstance(each, type)):
            found += getattr(each, "__dict__", {}).values()
        elif isinstance(each, MethodType):
            found.append(each.__self__)


def _uncopied(module: nn.Module) -> str | None:
    """The attribute because of which a module cannot be copied; none if it is not one alone."""
    for name, part in module.named_modules():
        for key, value in vars(part).items():
            if key != "_modules":
                try:
                    deepcopy(value, {id(part): part})
                except Exception:
                    return f"{name}.{key}" if name else key
    return None


def _versions(module: nn.Module) -> dict[str, int]:
    """How often each buffer was written to."""
    return {name: buffer._version for name, buffer in module.named_buffers() if not buffer.is_inference()}


def unwrapped(model: Any) -> Any:
    """The model inside of the wrappers for speed, in whatever order they are; any other is its own.

    Those are of torch.compile, DataParallel and DistributedDataParallel.
    """
    while (inner := getattr(model, "_orig_mod", model)) is not model or isinstance(model, PARALLEL):
        model = model.module if inner is model else inner
    return model


def mixes_precisions(module: nn.Module) -> bool:
    """Whether parameters are of several precisions, a tensor is of half, or the code speaks of half."""
    own = {each.dtype for each in module.parameters() if each.is_floating_point()}
    if len(own) > 1 or not own.isdisjoint(HALF) or any(each.dtype in HALF for each in module.buffers()):
        return True
    return any(speaks_of_half(kind) for kind in {type(part) for part in module.modules()})


def speaks_of_half(kind: type) -> bool:
    """Whether a method of a user's own class names half precision, or autocast."""
    own = (each for each in kind.__mro__ if each.__module__.partition(".")[0] not in CAREFUL)
    codes = (getattr(value, "__code__", None) for each in own for value in vars(each).values())
    said = (name for code in codes if code is not None for name in (*code.co_names, *code.co_freevars))
    return any(name in NAMES_OF_HALF or "autocast" in name for name in said)


def _are_equal(logits: Tensor, again: Tensor) -> bool:
    return torch.equal(logits.nan_to_num(), again.nan_to_num())


def _is_plain(module: nn.Module) -> bool:
    """Whether all code is torch's own, which leaves the instances where they are, and keeps nothing."""
    return all(
        type(part).__module__.startswith(PLAIN)
        and not (part._forward_hooks or part._forward_pre_hooks or "forward" in vars(part))
        for part in module.modules()
    )


def _owns_all(module: nn.Module, name: str) -> bool:
    own = {id(p) for p in module.get_submodule(name).parameters() if p.requires_grad}
    return own == {id(p) for p in module.parameters() if p.requires_grad}

"""How a classifier is made of a user's module: a copy, a first look at what it does, and refusals."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedBuffer, UninitializedParameter

from precedents.classifier.clone import uncopied, whole_copy
from precedents.classifier.hidden_layers import Trace, named, traced
from precedents.classifier.memory_format import laid_out
from precedents.classifier.outputs import Outputs, Place, outputs_of, returned
from precedents.classifier.user_loss import formed, loss_of, refuse_probabilities
from precedents.data.examples import Examples, checked_range
from precedents.data.inputs import Collated, Inputs, alone, between, count, leaves, ordered, unusable
from precedents.data.labels import REGRESSION
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
PROGRAMS = {"torch.jit": "scripted or traced by torch.jit", "torch.export": "a program of torch.export"}
PARALLEL = (nn.DataParallel, nn.parallel.DistributedDataParallel)
LENGTHS = 12  # instances that are tried with and without padding
MANY_INSTANCES = 32  # whose one output lies within 0 and 1, if it is a probability


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
        copy = _copied(_accepted(module), budget)
        before = _versions(copy)
        batch = train.take(train.largest)
        sample, b = batch.inputs, len(batch.labels)
        look = self._first_look(copy, sample, b)
        head = look.head
        logits = laid_out(copy, partial(look.outputs.of, copy, sample), look.logits)
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
            written=frozenset(name for name, version in _versions(copy).items() if version != before.get(name)),
        )
        if isinstance(sample, Collated):
            spaced = (i * (len(train) - 1) // (LENGTHS - 1) for i in range(LENGTHS))
            refuse_padding(model, train.take(list(dict.fromkeys([*train.largest, *spaced]))).inputs)
            model = model.of_one_width(strict=self.hidden is not None)
        single = look.outputs.single
        if self.loss is None:
            _refuse_probabilities(model, logits, train, single)
        _refuse_labels(model, train, single)
        if self.hidden is not None:
            model.hidden(sample)  # names that are wrong are found now
        return model

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
                if isinstance(sample, Collated):
                    raise InputError(
                        f"The model takes instances together, but none of them alone. {error}"
                    ) from error
                single = logits + 1
        _refuse_randomness(logits, again)
        _refuse_mixing(logits, single, isinstance(sample, Collated))
        return FirstLook(outputs, logits, trace, bytes_, numbers)


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

    @property
    def head(self) -> str | None:
        """The name of a Linear that is called once and returns the logits, or the one of two classes."""
        names = [name for name, _ in self.trace.linear]
        own = self.logits[:, 1:] if self.outputs.form == "logit" else self.logits
        linear = ((n, value) for n, value in self.trace.linear if not value.is_nested)
        found = (n for n, value in linear if torch.equal(value, own) and names.count(n) == 1)
        return next(found, None)


def _accepted(module: nn.Module) -> nn.Module:
    if not isinstance(module, nn.Module):
        raise InputError(f"The model is {a_type(module)}. Pass a torch.nn.Module.")
    refuse_programs(module)
    for name, value in (*module.named_parameters(), *module.named_buffers()):
        if isinstance(value, (UninitializedParameter, UninitializedBuffer)):
            raise InputError(
                f"The weight {name} of the model is not initialised: its layer is lazy, and waits for a first "
                "input to know its shape. Call the model once, as you did in training, or load its weights."
            )
        if reason := unusable(value):
            raise InputError(f"The weight {name} of the model {reason}.")
    return module


def refuse_programs(model: Any) -> None:
    """Refuses what torch.jit and torch.export make of a module: its code is fixed, and its layers are gone."""
    homes = [kind.__module__ for kind in type(model).__mro__]
    for home, made in PROGRAMS.items():
        if any(each.startswith(home) for each in homes):
            raise InputError(
                f"The model is {made}: its layers cannot be seen. Pass the nn.Module that it was made from; "
                "module.load_state_dict(...) gives it the weights that are here, in the state_dict."
            )


def _copied(module: nn.Module, budget: Budget) -> nn.Module:
    """A copy in eval mode, which the budget has room for and knows of."""
    size = tensor_bytes(module)
    if size >= COUNTED and mixes_precisions(module):  # whose numbers become as wide as the widest
        size = _widened_bytes(module)
    if size < COUNTED:
        return _copy(module).eval()
    budget.required(size, "A copy of the model", "Allow more memory.")
    copy = _copy(module).eval()
    budget.held.until_gone(copy, size)
    return copy


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
        with random_state_kept():
            copy = whole_copy(inner)
    except Exception as error:
        name = uncopied(module)
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


def _refuse_randomness(logits: Tensor, again: Tensor) -> None:
    if not _are_equal(logits, again):
        raise InputError(
            "The model gives different outputs for the same input in eval mode. Tie its randomness to "
            "self.training: F.dropout(x, training=self.training)."
        )


def _are_equal(logits: Tensor, again: Tensor) -> bool:
    return torch.equal(logits.nan_to_num(), again.nan_to_num())


def _refuse_mixing(logits: Tensor, single: Tensor, padded: bool = False) -> None:
    within = float(torch.finfo(logits.dtype).eps) ** 0.5 * float(logits.abs().nan_to_num().max())
    if padded and not torch.allclose(logits, single, rtol=0, atol=within, equal_nan=True):
        i = int((logits - single).abs().nan_to_num(torch.inf).amax(dim=1).argmax())
        raise InputError(
            "The model's output for an instance depends on its padding or on the others of its batch: "
            f"alone one has the logits {_few(single[i])}, beside others {_few(logits[i])}. Let the model leave "
            "out what is padded (a mean over the lengths, pack_padded_sequence, an attention mask), and let no "
            "layer mix the instances."
        )
    rounding = 1e-5 + 1e-4 * float(logits.abs().nan_to_num(0.0, 0.0).max())
    if not torch.allclose(logits, single, rtol=1e-3, atol=rounding, equal_nan=True):
        raise InputError(
            "The model's output for an instance depends on the other instances of the batch. "
            "Gradients per instance need BatchNorm with track_running_stats=True and the batch as first axis."
        )


def _few(numbers: Tensor) -> str:
    shown = ", ".join(f"{value:.4g}" for value in numbers[:4].tolist())
    return f"[{shown} ...]" if len(numbers) > 4 else f"[{shown}]"


@torch.no_grad()
def refuse_padding(model: "Classifier", inputs: Inputs) -> None:
    """Refuses a model for which instances are not the same in a batch as alone, tried on some."""
    some = between(inputs, 0, min(LENGTHS, model.at_once))
    assert isinstance(some, Collated)
    if len({member.numbers for member in some.members}) > 1:
        singles = torch.cat([model.logits(alone(some, i)) for i in range(count(some))])
        _refuse_mixing(model.logits(some), singles, padded=True)


@torch.no_grad()
def _refuse_probabilities(model: "Classifier", logits: Tensor, train: Examples, single: bool) -> None:
    if single:
        few = train.take(range(min(len(train), MANY_INSTANCES))).inputs
        logits = model.logits(few)[:, 1:]
    refuse_probabilities(logits)


def _refuse_labels(model: "Classifier", train: Examples, single: bool) -> None:
    """Refuses labels that the model has no output for."""
    if single and int(train.labels.max()) > 1:
        raise InputError(
            "The model has one output, which tells class 1 from class 0, but the training set has a label "
            f"{int(train.labels.max())}. {REGRESSION}"
        )
    checked_range(train.labels, model.classes, "training set")


def _owns_all(module: nn.Module, name: str) -> bool:
    own = {id(p) for p in module.get_submodule(name).parameters() if p.requires_grad}
    return own == {id(p) for p in module.parameters() if p.requires_grad}

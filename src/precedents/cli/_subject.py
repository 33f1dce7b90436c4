"""CommandSubject: what a command works on: a run folder, or the user's own model by its factory."""

import inspect
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from precedents.cli._contained import restored
from precedents.errors import InputError, UserCodeError
from precedents.runtime.advice import named
from precedents.runtime.users_code import why

if TYPE_CHECKING:
    from precedents.criteria._trial import Trial
    from precedents.data.examples import Examples

NEEDED = ("model", "train", "test")
LOADER = "train_dataloader"  # what data modules of Lightning have
TRAIN, TEST = "training set", "test set"


@dataclass(frozen=True, eq=False)
class CommandSubject:
    """A model with its training and its test set, and what else is known of them."""

    model: Any
    train: "Examples"
    test: "Examples"
    options: Mapping[str, Any] = field(default_factory=dict)  # keyword arguments of `audit`
    form: str = "three"  # what the factory returned: three, two, one or a mapping
    made: Sequence[str] = ()  # and the keys of a mapping

    def told(self, **options: Any) -> "CommandSubject":
        """With options of the command line, which come before the factory's own."""
        return replace(self, options={**self.options, **{k: v for k, v in options.items() if v is not None}})

    def known_to(self, function: Callable[..., Any]) -> dict[str, Any]:
        """Of the options those that a function takes, by the names of its parameters."""
        return {name: v for name, v in self.options.items() if name in inspect.signature(function).parameters}

    def returned(self, function: Callable[..., Any]) -> dict[str, Any]:
        """What the factory returned: its form, and the keys of a mapping that a function takes."""
        return {"form": self.form, "options": [name for name in self.known_to(function) if name in self.made]}

    def trial(self, test: "Examples") -> "Trial":
        """A trial of the model with the instances of `test` as cases."""
        from precedents.criteria._trial import Trial, TrialOptions

        known = {name: v for name, v in self.options.items() if name in TrialOptions.__optional_keys__}
        return Trial.of(self.model, self.train, test, **known)


def subject(run: Path | None, target: str | None, data: Path | None) -> CommandSubject:
    """What a command works on, from a run folder or from `module:factory`: exactly one of the two.

    `data` is the folder that holds the files of the data sets.
    """
    if (run is None) == (target is None):
        raise InputError("Name one of the two: a run folder, or your own model by --target module:factory.")
    named(shlex.quote(str(run)) if target is None else f"--target {shlex.quote(target)}")
    if target is not None:
        return _made(target)
    assert run is not None
    from precedents.zoo.run import Run

    opened = Run.open(run, data)
    return CommandSubject(opened.model, opened.prepared.train, opened.prepared.test, opened.options)


def _made(target: str) -> CommandSubject:
    from precedents.adapters._columns import Columns
    from precedents.adapters._find import adapter_of
    from precedents.adapters._subject import brought
    from precedents.audit.front_door import audit

    with restored():
        made = _called(target, _factory(target))
    if isinstance(made, Mapping):
        given, form = dict(made), "mapping"
    elif isinstance(made, tuple) and len(made) == (2 if hasattr(made[-1], LOADER) else len(NEEDED)):
        given, form = dict(zip(NEEDED, made, strict=False)), "three" if len(made) == len(NEEDED) else "two"
    elif _brings(made):
        given, form = {"model": made}, "one"  # a Trainer
    else:
        raise InputError(
            f"{target} returned a {type(made).__name__}. Return (model, train, test), a mapping with "
            "these keys, (model, datamodule), or a Trainer."
        )
    known = inspect.signature(audit).parameters
    wrong = [f"the key {key!r}" for key in given if key not in known]
    needed = 1 if _brings(given.get("model")) else 2 if hasattr(given.get("train"), LOADER) else len(NEEDED)
    wrong += [f"no {key!r}" for key in NEEDED[:needed] if key not in given]
    if wrong:
        told = f"{target} returned a mapping with {' and '.join(wrong)}"
        raise InputError(f"{told}. Known keys: {', '.join(known)}.")
    model, train, test = (given.pop(key, None) for key in NEEDED)
    adapter = adapter_of(model)
    columns = Columns.of(*(given.get(name) for name in ("text", "image", "labels", "ids")))
    if columns is not None or given.get("classes") is not None:
        adapter.told(columns or Columns(), given.get("classes"))
    if test is None and hasattr(train, LOADER):
        test = train
    train = adapter.examples(brought(adapter, TRAIN, "train") if train is None else train, TRAIN)
    train = train if columns is None else columns.named(train)
    test = adapter.examples(brought(adapter, TEST, "test") if test is None else test, TEST)
    return CommandSubject(model, train, test, given, form, list(given))


def _brings(model: Any) -> bool:
    """Whether a model may have its data with it: a Trainer, of transformers or of Lightning, or its module."""
    return any(hasattr(model, name) for name in ("train_dataset", "lightning_module", LOADER))


def _factory(target: str) -> Callable[[], Any]:
    module, colon, name = target.partition(":")
    if not (module and colon and name):
        raise InputError(f"--target is {target!r}. Write package.module:factory.")
    sys.path.insert(0, str(Path.cwd()))
    try:
        found = import_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise UserCodeError(f"{module} cannot be imported: {why(error)}") from error
    factory = getattr(found, name, None)
    if not callable(factory):
        own = [key for key, value in vars(found).items() if getattr(value, "__module__", "") == module]
        raise InputError(f"{module} has no function {name!r}. It has: {', '.join(own) or 'none'}.")
    return factory


def _called(target: str, factory: Callable[[], Any]) -> Any:
    try:
        return factory()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise UserCodeError(f"{target} failed: {why(error)}") from error

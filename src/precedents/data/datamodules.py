"""Data modules of Lightning: their loaders have the training and the test set, in the order of the data."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch.utils.data import (
    BatchSampler,
    DataLoader,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    WeightedRandomSampler,
)

from precedents.errors import InputError
from precedents.runtime.guards import random_state_kept
from precedents.runtime.users_code import users
from precedents.runtime.wording import a_type

PACKAGES = ("pytorch_lightning", "lightning")
WHOLE = (SequentialSampler, RandomSampler, WeightedRandomSampler, DistributedSampler)  # that draw from all
STAGES = {"train_dataloader": "fit", "test_dataloader": "test", "val_dataloader": "validate"}


def is_lightning(kind: str, value: Any) -> bool:
    """Whether a value is of Lightning's class of this name, or of one that derives from it."""
    named = (each.__module__.partition(".")[0] for each in type(value).__mro__ if each.__name__ == kind)
    return any(package in PACKAGES for package in named)


def defines(source: Any, hook: str) -> bool:
    """Whether a user's class says itself what Lightning's would leave open."""
    home = getattr(getattr(type(source), hook, None), "__module__", PACKAGES[0])
    return home.partition(".")[0] not in PACKAGES or hook in vars(source)


def loader_of(source: Any, what: str) -> Any:
    """The loader of a data module, or of a module that has one: for training; for tests, else validation."""
    hooks = ("test_dataloader", "val_dataloader") if what.startswith("test") else ("train_dataloader",)
    hook = next((each for each in hooks if defines(source, each)), None)
    if hook is None:
        raise InputError(
            f"{type(source).__name__} has no {' and no '.join(hooks)}. Define it, or pass the {what} itself."
        )
    with random_state_kept():
        return one_of(_called(source, hook), f"{type(source).__name__}.{hook}")


def one_of(found: Any, where: str) -> Any:
    """The one loader that was given; several are refused."""
    if isinstance(found, (list, tuple)) and len(found) == 1:
        return found[0]
    if isinstance(found, (Sequence, Mapping)) or hasattr(found, "iterables"):
        raise InputError(
            f"{where} gives {a_type(found)} of several loaders. Explanations cite instances of one data set: "
            "pass the loader that is meant, or torch.utils.data.ConcatDataset of their data sets."
        )
    if found is None:
        raise InputError(f"{where} gives None. Return a DataLoader.")
    return found


def _called(source: Any, hook: str) -> Any:
    """What a hook gives; a data module that no Trainer has set up, and that has nothing yet, is set up."""
    name = type(source).__name__
    if is_lightning("LightningDataModule", source) and not _is_set_up(source, hook):
        with users(f"{name}.prepare_data"):
            source.prepare_data()
        with users(f"{name}.setup"):
            source.setup(STAGES[hook])
    with users(f"{name}.{hook}"):
        return getattr(source, hook)()


def _is_set_up(source: Any, hook: str) -> bool:
    """Whether a Trainer has had the data module, or its hook gives a loader of something."""
    if getattr(source, "trainer", None) is not None:
        return True
    try:
        found = getattr(source, hook)()
    except Exception:  # it needs what setup makes, or fails again after it
        return False
    return getattr(found, "dataset", found) is not None


def unshuffled(loader: Any) -> Any:
    """The data set itself, in its own order, of a loader that draws from all of it and stacks what it draws.

    Any other is left as it is.
    """
    if not isinstance(loader, DataLoader) or isinstance(loader.dataset, IterableDataset):
        return loader
    whole = type(loader.batch_sampler) is BatchSampler and isinstance(loader.sampler, WHOLE)
    own = getattr(loader.collate_fn, "__name__", "") not in ("default_collate", "default_convert")
    return loader if own or not whole else loader.dataset

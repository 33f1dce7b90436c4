"""Guard: a lock that a forked process finds open, and what a whole process has only one of.

A fork copies one thread alone: what other threads hold at that moment, nobody gives back in the child. So locks
are made anew there, and torch computes with one thread, since the others that it counts on are not there.
"""

import os
import random
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from threading import RLock
from typing import Any, TypeVar
from weakref import WeakSet

import numpy as np
import torch

Work = TypeVar("Work", bound=Callable[..., Any])
GUARDED: WeakSet[Any] = WeakSet()  # who has a `lock`


class Guard:
    """A reentrant lock for what threads share: `with guard.lock:`."""

    def __init__(self) -> None:
        self.lock: Any = RLock()
        GUARDED.add(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """In another process it is open."""
        return Guard, ()


PROCESS = Guard()  # for what the process has one of: torch's random state, the filters of warnings


@contextmanager
def random_state_kept() -> Iterator[None]:
    """Torch's random numbers go on afterwards as if nothing had been drawn; one thread at a time."""
    with PROCESS.lock, torch.random.fork_rng(devices=[]):
        yield


@contextmanager
def draws_kept() -> Iterator[None]:
    """As `random_state_kept`, and so do the random numbers of numpy and of Python."""
    with random_state_kept():
        own, numpys = random.getstate(), np.random.get_state()  # noqa: NPY002  the state that there is
        try:
            yield
        finally:
            random.setstate(own)
            np.random.set_state(numpys)  # noqa: NPY002


@contextmanager
def without_warnings() -> Iterator[None]:
    """Nothing is warned of within; one thread at a time."""
    with PROCESS.lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _forked() -> None:
    """In the child of a fork."""
    for guarded in list(GUARDED):
        guarded.lock = RLock()
    for attribute in _cached_properties():
        attribute.lock = RLock()
    if torch.get_num_threads() > 1:
        torch.set_num_threads(1)


def _cached_properties() -> Iterator[Any]:
    """Those of the package, which have a lock for all instances together before Python 3.12."""
    if sys.version_info >= (3, 12):
        return
    package = __name__.partition(".")[0]
    modules = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] == package]
    for owner in {value for module in modules for value in vars(module).values() if isinstance(value, type)}:
        yield from (value for value in vars(owner).values() if isinstance(value, cached_property))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)

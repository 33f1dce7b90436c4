"""Doors: public calls, whose numbers do not depend on the caller's modes, and whose errors are ours.

Autocast, inference mode and a default device without data (meta) are switched off inside of a door, and are
as they were when the call returns. Nothing else that a caller sets (no_grad, the default type, deterministic
algorithms) changes a number. No bar stays of a call that failed in the middle.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

import torch

from precedents.errors import BudgetError, PrecedentsError
from precedents.runtime.progress import SHOWN, left_in_the_middle
from precedents.runtime.users_code import out_of_memory, place, refused

P = ParamSpec("P")
T = TypeVar("T")

DEVICES = ("cpu", "cuda")  # that autocast is for


def door(function: Callable[P, T]) -> Callable[P, T]:
    """Makes a public call one whose numbers are the same in every mode, and whose errors are ours."""

    @wraps(function)
    def entered(*args: P.args, **kwargs: P.kwargs) -> T:
        before = SHOWN.get()
        with steady():
            try:
                return function(*args, **kwargs)
            except (PrecedentsError, KeyboardInterrupt):
                raise
            except BaseException as error:
                told = out_of_memory(error)
                if told is not None:
                    raise BudgetError(told) from error
                if place(error):
                    raise refused(error) from error
                raise
            finally:
                if SHOWN.get() is not before:
                    left_in_the_middle(before)

    return entered


@contextmanager
def steady() -> Iterator[None]:
    """A context without the modes of the caller that change numbers."""
    graded = torch.is_grad_enabled()
    with ExitStack() as stack:
        stack.callback(torch.set_grad_enabled, graded)  # also where it is interrupted while that is changed
        if torch.is_inference_mode_enabled():
            stack.enter_context(torch.inference_mode(mode=False))
        for device in DEVICES:
            if torch.is_autocast_enabled(device):
                stack.enter_context(torch.autocast(device, enabled=False))
        if torch.get_default_device().type == "meta":
            stack.enter_context(torch.device("cpu"))
        yield

"""Travel: work and tasks as bytes to another process, and what came of them back.

Functions and classes of installed modules travel by name, those of a script or notebook by their code
(cloudpickle). Nothing is written to a disk, and bytes are read only by workers that this process sent them to.
"""

import pickle
import sys
import warnings
from collections.abc import Callable
from contextvars import ContextVar
from functools import lru_cache
from importlib.metadata import version
from platform import node, python_version
from traceback import format_exception
from typing import Any

from precedents._version import __version__
from precedents.errors import InputError, PrecedentsError
from precedents.runtime.advice import advising
from precedents.runtime.progress import Tell, quiet, told
from precedents.runtime.users_code import place, refused, why

_at_work: ContextVar[bool] = ContextVar("at work", default=False)


class InWorker(Exception):  # noqa: N818  not raised: the cause of what is
    """The traceback in the worker, as a text."""


def in_worker() -> bool:
    """Whether this is a worker of an engine, whose process does nothing else."""
    return _at_work.get()


def packed(value: object, what: str) -> bytes:
    """A value as bytes; one that cannot travel is refused as `what` it is."""
    import cloudpickle

    try:
        return bytes(cloudpickle.dumps(value))
    except Exception as error:
        raise InputError(
            f"{what} cannot be sent to another process: {why(error)}. Use engine serial, or leave out what it "
            "holds that belongs to this process: open files, locks, lambdas in C code."
        ) from error


def packed_work(work: Callable[[Any], Any]) -> bytes:
    """The work, with the versions that its worker must have, and where this process finds modules."""
    return pickle.dumps((_versions(), sys.path, packed(advising(work), "The work")))


def carried_out(work: bytes, task: bytes, tell: Tell | None) -> bytes:
    """In a worker: what the work gives for a task, or what it raises, for `opened`.

    `tell` is given lines with the progress within; without it nothing is shown.
    """
    before = _at_work.set(True)
    try:
        with quiet() if tell is None else told(tell):
            call, given = _unpacked(work), pickle.loads(task)  # noqa: S301  of who started this worker
            _one_thread()
            with warnings.catch_warnings(record=True) as warned:
                result = call(given)
            return packed((result, None, _said(warned)), "The result")
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return _failure(error)
    finally:
        _at_work.reset(before)


def opened(outcome: bytes) -> Any:
    """What a task gave; what it warned of is warned of here, and what it raised is raised.

    The cause of an error is the traceback in the worker.
    """
    result, error, said = pickle.loads(outcome)  # noqa: S301  of our own workers
    if error is not None:
        raise error from InWorker(said)
    for text in said:
        warnings.warn(text, stacklevel=2)
    return result


@lru_cache(maxsize=1)
def _unpacked(work: bytes) -> Callable[[Any], Any]:
    """The work, kept for the next task; a worker of other versions refuses it."""
    versions, path, content = pickle.loads(work)  # noqa: S301  of who started this worker
    for name, own in _versions().items():
        if versions[name] != own:
            raise InputError(
                f"The worker on {node()} has {name} {own}, not {versions[name]}. Install the same."
            )
    sys.path += [folder for folder in path if folder not in sys.path]  # those of a script, if they are here
    try:
        return pickle.loads(content)  # noqa: S301
    except ImportError as error:
        raise InputError(
            f"The worker on {node()} lacks a module of the work: {why(error)}. Install it there."
        ) from error


def _said(warned: list[warnings.WarningMessage]) -> list[str]:
    """What was warned of to a user; what is for developers stays in the worker."""
    return list(dict.fromkeys(str(each.message) for each in warned if each.category is UserWarning))


def _one_thread() -> None:
    """Of torch, if the work has it; if it comes later, the worker was started so."""
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)


def _versions() -> dict[str, str]:
    return {"precedents": __version__, "torch": version("torch"), "Python": python_version()}


def _failure(error: BaseException) -> bytes:
    """What was raised, where it can travel; a user's own error is told with its line, which stays behind."""
    if not isinstance(error, PrecedentsError) and (place(error) or not isinstance(error, Exception)):
        error = refused(error, "the work")
    traceback = "".join(format_exception(error))
    try:
        outcome = packed((None, error, traceback), "The error")
        pickle.loads(outcome)  # noqa: S301
    except Exception:
        return packed((None, RuntimeError(why(error)), traceback), "The error")
    return outcome

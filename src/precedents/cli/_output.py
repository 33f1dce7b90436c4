"""What a command says: results on stdout; messages and progress on stderr, unless it is to be quiet."""

import json
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from precedents.cli._contained import apart
from precedents.errors import InputError, PrecedentsError
from precedents.runtime.advice import commands
from precedents.runtime.progress import in_lines, quiet
from precedents.runtime.users_code import place, refused
from precedents.seen import escaped, told, visible

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from precedents.runtime.cost import Estimate

WIDE = 200  # columns, where there is no terminal

Say = Callable[[str], None]
RESULTS: ContextVar[TextIO | None] = ContextVar("where results go; none: stdout", default=None)


class Interrupted(Exception):  # noqa: N818  what the user wanted, not a mistake
    """Ctrl-C; the text says what became of the work."""


@contextmanager
def reporting(silent: bool, interrupted: str = "Interrupted: nothing was written.") -> Iterator[Say]:
    """Shows the progress of what is done within, unless it is to be silent; what it gives prints a message.

    `interrupted` is what is said at Ctrl-C.
    """
    shown = quiet() if silent else in_lines()
    with shown, commands(), warnings.catch_warnings(), apart() as results:
        warnings.showwarning = lambda message, *_: None if silent else say(str(message))
        token = RESULTS.set(results)
        try:
            yield (lambda _: None) if silent else say
        except PrecedentsError:
            raise
        except BaseException as error:  # Python wraps a Ctrl-C that comes while classes are made
            if any(isinstance(each, KeyboardInterrupt) for each in (error, error.__cause__)):
                raise Interrupted(interrupted) from None
            pipe = any(isinstance(each, BrokenPipeError) for each in (error, error.__context__))
            if not pipe and (place(error) or not isinstance(error, Exception)):
                raise refused(error, "what was passed") from error
            raise
        finally:
            RESULTS.reset(token)


def say(text: str) -> None:
    """Writes a text as one line to stderr."""
    sys.stderr.write(told(" ".join(text.split())) + "\n")
    sys.stderr.flush()


def written(text: str) -> None:
    """Writes to stdout."""
    results = RESULTS.get() or sys.stdout
    results.write(text)
    results.flush()


def console() -> "Console":
    """The terminal, or wherever stdout goes: lines are not broken there."""
    from rich.console import Console

    results = RESULTS.get() or sys.stdout
    return Console(file=results, width=None if results.isatty() else WIDE, highlight=False)


def show(value: "RenderableType") -> None:
    """Writes a result for people to stdout: a text, or what rich can draw."""
    if isinstance(value, str):
        written(visible(value) + "\n")
        return
    drawn = console()
    with drawn.capture() as captured:
        drawn.print(value)
    written(captured.get())


def show_json(value: object) -> None:
    """Writes a result for programs to stdout: JSON, or a value that becomes it."""
    written(escaped((value if isinstance(value, str) else json.dumps(value, indent=2)).rstrip()) + "\n")


def show_estimate(estimate: "Estimate", as_json: bool) -> None:
    """Writes what the work would take, for people or as JSON."""
    if as_json:
        show_json(asdict(estimate))
    else:
        show(str(estimate))


def listing(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> "RenderableType":
    """A table without lines: a column for each heading, and its rows."""
    from rich.table import Table
    from rich.text import Text

    drawn = Table(*headings, box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for row in rows:
        drawn.add_row(*(Text(visible(text)) for text in row))
    return drawn


def free(path: Path | None, force: bool) -> Path | None:
    """The file to write, wherever a user's code may go; one that is there already needs force."""
    if path is None:
        return None
    if path.is_dir():
        raise InputError(f"{path} is a folder. Name a file.")
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is a device, a pipe or a socket, which no page replaces. Name a file.")
    if path.exists() and not force:
        raise InputError(f"{path} is there already. Name another file, or add --force to overwrite it.")
    if not path.parent.is_dir():
        raise InputError(f"There is no folder {path.parent}. Create it first: mkdir -p {path.parent}")
    return path.resolve()


def put(path: Path, content: str) -> None:
    """Writes a file in the place of the one that is there; what is no file stays."""
    from precedents.runtime.atomic import write

    free(path, force=True)
    write(path, content)

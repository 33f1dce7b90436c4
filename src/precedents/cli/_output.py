"""What a command says: results on stdout; messages and progress on stderr, unless it is to be quiet."""

import json
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from precedents.errors import InputError
from precedents.runtime.progress import in_lines, quiet

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from precedents.runtime.cost import Estimate

WIDE = 200  # columns, where there is no terminal

Say = Callable[[str], None]


class Interrupted(Exception):  # noqa: N818  what the user wanted, not a mistake
    """Ctrl-C; the text says what became of the work."""


@contextmanager
def reporting(silent: bool, interrupted: str = "Interrupted: nothing was written.") -> Iterator[Say]:
    """Shows the progress of what is done within, unless it is to be silent; what it gives prints a message.

    `interrupted` is what is said at Ctrl-C.
    """
    with quiet() if silent else in_lines(), warnings.catch_warnings():
        warnings.showwarning = lambda message, *_: None if silent else say(str(message))
        try:
            yield (lambda _: None) if silent else say
        except (KeyboardInterrupt, RuntimeError) as error:  # Python wraps one that comes while classes are made
            if not any(isinstance(each, KeyboardInterrupt) for each in (error, error.__cause__)):
                raise
            raise Interrupted(interrupted) from None


def say(text: str) -> None:
    """Writes a text as one line to stderr."""
    sys.stderr.write(" ".join(text.split()) + "\n")
    sys.stderr.flush()


def console() -> "Console":
    """The terminal, or wherever stdout goes: lines are not broken there."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else WIDE, highlight=False)


def show(value: "RenderableType") -> None:
    """Writes a result for people to stdout: a text, or what rich can draw."""
    if isinstance(value, str):
        sys.stdout.write(value + "\n")
    else:
        console().print(value)


def show_json(value: object) -> None:
    """Writes a result for programs to stdout: JSON, or a value that becomes it."""
    sys.stdout.write((value if isinstance(value, str) else json.dumps(value, indent=2)).rstrip() + "\n")


def show_estimate(estimate: "Estimate", as_json: bool) -> None:
    """Writes what the work would take, for people or as JSON."""
    if as_json:
        show_json(asdict(estimate))
    else:
        show(str(estimate))


def listing(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> "RenderableType":
    """A table without lines: a column for each heading, and its rows."""
    from rich.table import Table

    drawn = Table(*headings, box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for row in rows:
        drawn.add_row(*row)
    return drawn


def free(path: Path | None, force: bool) -> None:
    """Refuses a file that is there already, unless it may be overwritten."""
    if path is None:
        return
    if path.is_dir():
        raise InputError(f"{path} is a folder. Name a file.")
    if path.exists() and not force:
        raise InputError(f"{path} is there already. Name another file, or add --force to overwrite it.")
    if not path.parent.is_dir():
        raise InputError(f"There is no folder {path.parent}. Create it first: mkdir -p {path.parent}")

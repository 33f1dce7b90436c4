"""The command `precedents`: every file of this folder is a command, every folder in it a group of commands.

Errors and exit codes live here.
"""

import inspect
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

from typer import Context, Exit, Option, Typer, TyperException

from precedents import __version__, cli
from precedents.cli._contained import opened_streams, silenced
from precedents.cli._output import Interrupted, say
from precedents.errors import PrecedentsError
from precedents.registry import Registry

WRONG, INTERRUPTED, PIPE_CLOSED = 2, 130, 141

Command = Callable[..., None]

COMMANDS: Registry[Command | Registry[Command]] = Registry("command", cli)


def app() -> Typer:
    """All commands of the folder, with help, completion and version."""
    return _group(COMMANDS, precedents, unbroken(precedents))


def _group(commands: Registry[Any], alone: Command, text: str) -> Typer:
    """The commands of a folder; `alone` is what is done before them, or without any."""
    made = Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
    made.callback(invoke_without_command=True, help=text)(alone)
    for name in commands.names():
        command = commands.get(name)
        if isinstance(command, Registry):
            another = not command.folder.__name__.endswith(f".{name}")  # a name that it had before
            made.add_typer(_group(command, helped, unbroken(command.folder)), name=name, hidden=another)
        else:
            made.command(name.replace("_", "-"), help=unbroken(command))(command)
    return made


def unbroken(command: object) -> str:
    """A command's help, in which the lines of its examples stay as they are."""
    return (inspect.getdoc(command) or "").replace("Examples:", "\b\nExamples:")


def helped(context: Context) -> None:
    """Shows the help when no command is given."""
    if context.invoked_subcommand is None:
        sys.stdout.write(context.get_help() + "\n")


def precedents(
    context: Context,
    version: Annotated[bool, Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Explain a classifier's predictions by its precedents, and find out whether to believe the explanations.

    Exit codes: 0 fine, 1 the audit's metric is below --fail-under, 2 wrong use or input, 130 interrupted.
    Results go to stdout, messages and progress to stderr.

    Examples:
      $ precedents --version
      $ precedents metrics

    """
    if version:
        sys.stdout.write(f"precedents {__version__}\n")
        raise Exit
    helped(context)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command, without arguments that of this process; the exit code.

    What is wrong with the command or its input is one line on stderr.
    """
    if arguments is None:
        opened_streams()
    code = _run(arguments)
    if arguments is None:
        silenced()
    return code


def _run(arguments: Sequence[str] | None) -> int:
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # threads that wait make way for others
    try:
        begun = Path.cwd()
        code = app()(arguments, prog_name="precedents", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except TyperException as error:
        context = getattr(error, "ctx", None)
        path = "precedents" if context is None else context.command_path
        return _ended(f"{error.format_message().rstrip('.')}. See: {path} --help", WRONG)
    except PrecedentsError as error:
        return _ended(_near(str(error), begun), WRONG)
    except Interrupted as error:
        exec("")  # noqa: S102  forgets a Ctrl-C that came in an exec: `python -m` would die of it, not exit
        return _ended(_near(str(error), begun), INTERRUPTED)
    except (BrokenPipeError, SystemExit) as end:  # typer and rich exit when nobody reads stdout any more
        if not any(isinstance(error, BrokenPipeError) for error in (end, end.__context__)):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left goes nowhere
        return PIPE_CLOSED
    except OSError as error:
        return _ended(f"{error.strerror or error}: {error.filename}" if error.filename else str(error), WRONG)


def _near(text: str, folder: Path) -> str:
    """The text with paths below a folder as they are named there.

    >>> _near("/home/me/index and /mnt/home/me/index", Path("/home/me"))
    'index and /mnt/home/me/index'
    """
    above = re.escape(f"{folder}{os.sep}")
    return text if folder == folder.parent else re.sub(rf"(?<![\w/.~-]){above}", "", text)


def _ended(text: str, code: int) -> int:
    say(f"precedents: {text}")
    return code

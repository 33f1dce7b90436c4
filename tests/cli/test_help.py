"""Every command has help with examples, and every example runs."""

import re
import shlex
import signal
import sys
from pathlib import Path
from socket import socket
from urllib.request import HTTPCookieProcessor, build_opener

import pytest
from typer.testing import CliRunner

from cli.conftest import ended, started
from precedents import __version__
from precedents.cli._main import COMMANDS, app
from precedents.registry import Registry

NAMES = COMMANDS.names()
GROUPS = {name: found.names() for name in NAMES if isinstance(found := COMMANDS.get(name), Registry)}
PATHS = [
    *((name.replace("_", "-"),) for name in NAMES if name not in GROUPS),
    *((group, name) for group, names in GROUPS.items() for name in names),
]
BEFORE = {"bench": "reproduction"}  # names that groups had before: they work, and no help shows them
FRESH = ("train", "demo")  # commands that make what the others use
SERVING = ("explore",)  # commands that go on until Ctrl-C


def help_of(*command: str) -> str:
    done = CliRunner().invoke(app(), [*command, "--help"], prog_name="precedents")
    assert done.exit_code == 0, done.output
    return done.stdout


def examples(text: str) -> list[str]:
    return re.findall(r"^ *\$ (precedents .*)$", text, re.MULTILINE)


# each once: a group that had another name before shows the same examples under both
EVERY = list(dict.fromkeys(example for command in [(), *PATHS] for example in examples(help_of(*command))))


def test_every_command_is_listed() -> None:
    listed = help_of().partition("Commands:")[2]
    assert sorted(re.findall(r"^  ([\w-]+)  ", listed, re.MULTILINE)) == [
        name.replace("_", "-") for name in NAMES if name not in BEFORE
    ]
    assert {"audit", "criteria", "demo", "explain", "metrics", "train"} <= set(NAMES)


@pytest.mark.parametrize("group", GROUPS)
def test_every_command_of_a_group_is_listed(group, precedents) -> None:
    listed = help_of(group).partition("Commands:")[2]
    assert re.findall(r"^  (\w+)  ", listed, re.MULTILINE) == GROUPS[group]
    assert precedents(group).out == precedents(group, "--help").out


@pytest.mark.parametrize(("before", "now"), BEFORE.items())
def test_a_group_works_by_the_name_that_it_had_before(before, now) -> None:
    assert GROUPS[before] == GROUPS[now]
    assert help_of(before) == help_of(now).replace(f"precedents {now}", f"precedents {before}")


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_every_command_has_examples_of_itself(path) -> None:
    found = examples(help_of(*path))
    assert found
    shown = (BEFORE.get(path[0], path[0]), *path[1:])
    assert all(tuple(shlex.split(example)[1 : 1 + len(path)]) == shown for example in found)


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_every_option_says_what_it_is_for(path) -> None:
    options = re.sub(r"\n {10,}", " ", help_of(*path).partition("Options:")[2])
    for line in options.strip().splitlines():
        assert re.match(r" *(-\w, |--?)[\w-]+.*?  +\S", line), line


def serves(words: list[str]) -> None:
    """A command in a process of its own says its address first, answers there, and ends by Ctrl-C.

    A port that an example names may be somebody else's here: a free one takes its place.
    """
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    process = started(*(port if word.isdecimal() else word for word in words), cwd=Path.cwd())
    address = process.stdout.readline().strip()
    with build_opener(HTTPCookieProcessor()).open(address) as answer:
        assert answer.status == 200
        assert "token" not in answer.url
    process.send_signal(signal.SIGINT)
    done = ended(process)
    assert (done.code, done.out) == (0, ""), done.err


@pytest.mark.parametrize("example", EVERY)
def test_every_example_runs(example, request, tmp_path, monkeypatch, precedents) -> None:
    words = shlex.split(example)
    if words[1] in FRESH:
        monkeypatch.chdir(tmp_path)
    else:
        request.getfixturevalue("folder")
    if words[1] in SERVING:
        serves(words[1:])
        return
    monkeypatch.setattr(sys, "argv", words)
    done = precedents(*words[1:])
    assert done.code == 0, done.err
    assert done.out


def test_no_command_shows_the_help(precedents) -> None:
    assert precedents().out == precedents("--help").out


def test_the_version_is_the_packages(precedents) -> None:
    assert precedents("--version").out == f"precedents {__version__}\n"

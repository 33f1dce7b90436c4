"""One folder as a user has it: a small trained run and a factory of an own model, made once."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from reproduction import recorded

from precedents.cli._main import main

ROOT = Path(__file__).parents[2]
RUN = "runs/digits-logistic_regression"


@dataclass(frozen=True)
class Done:
    """What became of a command."""

    code: int
    out: str
    err: str


Command = Callable[..., Done]


def factory_of_the_readme() -> str:
    """The file my_model.py as the README has it."""
    found = re.search(r"```python\n(# my_model.py\n.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert found is not None
    return found[1]


GROWN = """
import torch

def made(n):
    torch.manual_seed(0)
    x, y = torch.randn(700, 5), torch.arange(700) % 2
    model = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    return model, (x[:n], y[:n]), (x[n:], y[n:])

def half():
    return made(300)

def factory():
    return made(600)
"""


@pytest.fixture(scope="session")
def world(tmp_path_factory) -> Path:
    """Read it, do not write into it: `folder` is a copy to write into."""
    folder = tmp_path_factory.mktemp("world")
    (folder / "my_model.py").write_text(factory_of_the_readme())
    (folder / "grown.py").write_text(GROWN)
    recorded.write(folder / "results", ("vehicle/logreg", "digits/logreg"))
    before, path = Path.cwd(), [*sys.path]
    os.chdir(folder)
    try:
        for command in (
            "train --dataset digits --model logistic_regression --epochs 20 --quiet",
            f"index build {RUN} --index index-of-digits --quiet",
            "index build --target grown:half --index index-of-half --quiet",
        ):
            assert main(command.split()) == 0
    finally:
        os.chdir(before)
        sys.path[:] = path
    return folder


@pytest.fixture
def folder(world, tmp_path, monkeypatch) -> Path:
    """A copy of the world, which is the current folder."""
    shutil.copytree(world, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    monkeypatch.setattr(sys, "path", [*sys.path])
    return tmp_path / "copy"


@pytest.fixture
def precedents(capfd) -> Command:
    """Runs a command in this process."""

    def run(*arguments: str) -> Done:
        capfd.readouterr()
        code = main(arguments)
        out, err = capfd.readouterr()
        return Done(code, out, err)

    return run


def started(*arguments: str, cwd: Path, **more) -> subprocess.Popen:
    """A command in a process of its own."""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"} | more
    return subprocess.Popen(
        [sys.executable, "-m", "precedents", *arguments],
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def ended(process: subprocess.Popen) -> Done:
    """What became of it; it does not outlive the test."""
    with process:
        try:
            out, err = process.communicate(timeout=300)
        finally:
            process.kill()
    return Done(process.returncode, out, err)

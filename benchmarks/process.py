"""Measurements run in processes of their own, some by the interpreter of another environment."""

import os
import subprocess
import sys
from pathlib import Path

import precedents

ROOT = Path(__file__).parent.parent


def run_module(
    module: str,
    *arguments: str,
    python: str = sys.executable,
    most: float | None = None,
    given: str | None = None,
) -> "subprocess.CompletedProcess[str]":
    """`python -m module arguments`, with the precedents that is imported here, for at most so many seconds.

    `given` is what it reads.
    """
    return subprocess.run(  # noqa: S603
        [python, "-m", module, *arguments],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(Path(precedents.__file__).parent.parent)},
        input=given,
        capture_output=True,
        text=True,
        timeout=most,
        check=False,
    )

"""From the command to its address, and to a page with precedents, where answers are kept already."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, sleep
from urllib.request import HTTPCookieProcessor, build_opener

WORDS = [sys.executable, "-m", "precedents"]
TARGET = """import torch

def factory():
    torch.manual_seed(0)
    x, y = torch.rand(70_000, 1, 8, 8), torch.arange(70_000) % 10
    layers = torch.nn.Flatten(), torch.nn.Linear(64, 16), torch.nn.Tanh(), torch.nn.Linear(16, 10)
    return torch.nn.Sequential(*layers), (x[:CUT], y[:CUT]), (x[60_000:], y[60_000:])
"""


def digits() -> dict[str, float]:
    """Of a run of digits: the first start, which answers, and the second one, which reads."""
    with TemporaryDirectory() as folder:
        run = f"{folder}/run"
        train = [*WORDS, "train", "--dataset", "digits", "--model", "logistic_regression", "--quiet"]
        subprocess.run([*train, "--out", run], check=True, capture_output=True)  # noqa: S603  this package
        fresh = start([run], folder)
        kept = start([run], folder)
    return {f"fresh {name}": value for name, value in fresh.items()} | kept


def many(train: int) -> dict[str, float]:
    """Of 10,000 cases and so many training instances, by the second start."""
    with TemporaryDirectory() as folder:
        Path(folder, "many.py").write_text(TARGET.replace("CUT", str(train)))
        words = ["--target", "many:factory", "--metrics", "gc", "--keep", "kept"]
        start(words, folder, wholly=True)
        return start(words, folder)


def start(words: Sequence[str], folder: str, wholly: bool = False) -> dict[str, float]:
    """Seconds until the address and until a useful page; `wholly` waits until all is answered."""
    began = perf_counter()
    command = [*WORDS, "explore", *words, "--no-browser", "--quiet"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder)  # noqa: S603
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    told = perf_counter() - began
    opener, base = build_opener(HTTPCookieProcessor()), address.partition("?")[0]
    page = opener.open(address).read().decode()
    while "its first precedent is" not in page:
        sleep(0.05)
        page = opener.open(f"{base}cases").read().decode()
    useful = perf_counter() - began
    while wholly and '"state": "running"' in opener.open(f"{base}api/v1/jobs/1").read().decode():
        sleep(0.5)
    process.terminate()  # SIGINT is ignored by what a shell has started in the background
    process.wait()
    return {"address": told, "useful": useful}

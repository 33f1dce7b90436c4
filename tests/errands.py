"""Work for engines, in a module that workers import quickly."""

import os
import signal
import time
import warnings
from pathlib import Path

from precedents.errors import StaleError
from precedents.runtime.engines._travel import in_worker
from precedents.runtime.progress import tracked


def noted(folder: Path, text: object) -> None:
    """Another line in the file of this process, which says what was begun."""
    with (folder / f"{os.getpid()}").open("a") as file:
        file.write(f"{text}\n")


def begun(folder: Path) -> list[str]:
    return sorted(line for file in folder.iterdir() for line in file.read_text().split())


def squared(task: int) -> int:
    return task * task


def surroundings(_: int) -> tuple[int, int, bool]:
    import torch

    return torch.get_num_threads(), os.getpid(), in_worker()


def refusing(folder: Path, task: int) -> int:
    noted(folder, task)
    if task == 0:
        raise StaleError("The data changed.")
    return task


class OwnError(Exception):
    """An error that cannot be made from what it says."""

    def __init__(self, first: int, second: int) -> None:
        super().__init__(f"{first} and {second}")


def failing(_: int) -> None:
    raise OwnError(1, 2)


def dying(folder: Path, task: int) -> int:
    """The first time that task 0 is begun, the system kills its worker."""
    noted(folder, task)
    if task == 0 and begun(folder).count("0") == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return task


def deadly(_: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def telling(task: int) -> int:
    for _ in tracked(range(3), f"task {task}", patience=-1):
        time.sleep(0.01)
    time.sleep(0.3)
    return task


def sleeping(folder: Path, task: int) -> int:
    noted(folder, task)
    if task:
        time.sleep(0.2)
        (folder / f"ended-{task}").write_text("")
    return task


def warning(task: int) -> int:
    warnings.warn(f"Task {task} is slow", stacklevel=2)
    return task

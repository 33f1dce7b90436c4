"""Forks a process that has explained with two threads of torch, and prints whether its children are right."""

import json
import multiprocessing
import os
import signal
from collections.abc import Callable
from threading import Event, Thread
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, TensorDataset

from precedents import Examples, Explainer
from promises.threaded import asked, built

SECONDS = 120  # that a child may take


def points(n: int, seed: int) -> tuple[Tensor, Tensor]:
    draw = torch.randn(n, 5, generator=torch.Generator().manual_seed(seed), dtype=torch.double)
    return draw, torch.arange(n) % 3


TRAIN, CASES = points(1000, 1), points(4, 2)[0]
MODEL = built("noting")
EXPLAINER = Explainer(MODEL, TRAIN)


def right_in_a_child(question: Callable[[], bool]) -> bool:
    """Whether a forked process finds the question answered rightly, in time."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] == 0
    signal.alarm(SECONDS)
    right = False
    try:
        right = question()
    finally:
        os._exit(0 if right else 1)


def numbered(i: int) -> Any:
    """The answer for one of the cases."""
    return asked(EXPLAINER, CASES[i])


class Explained(Dataset[Tensor]):
    """Cases with the numbers of their precedents, which are found when they are read."""

    def __len__(self) -> int:
        return len(CASES)

    def __getitem__(self, i: int) -> Tensor:
        return torch.tensor(asked(EXPLAINER, CASES[i])[0][0])


class Waiting:
    """A dataset whose readings wait until they are let go."""

    def __init__(self) -> None:
        self.waits, self.read, self.go = False, Event(), Event()

    def __len__(self) -> int:
        return 6

    def __getitem__(self, i: int) -> tuple[Tensor, int]:
        if self.waits:
            self.read.set()
            self.go.wait()
        return TRAIN[0][i], i % 3


def while_others_hold_locks() -> bool:
    """The first question of another thread is in the middle of reading the training set."""
    data = Waiting()
    explainer = Explainer(MODEL, data, "cos_fisher")
    wanted = asked(Explainer(MODEL, data, "cos_fisher"), CASES[0])
    data.waits = True
    other = Thread(target=asked, args=(explainer, CASES[0]))
    other.start()
    data.read.wait()

    def question() -> bool:
        data.waits = False
        return asked(explainer, CASES[0]) == wanted

    right = right_in_a_child(question)
    data.go.set()
    other.join()
    return right


def in_the_middle_of_a_stream() -> bool:
    """The parent has read some of the batches of a loader, which it goes on with."""
    explainer = Explainer(MODEL, DataLoader(TensorDataset(*points(64, 3)), batch_size=4))
    wanted = explainer.scores(CASES)
    cases = Examples.of((CASES, torch.zeros(len(CASES)).long()))
    explainer.subject.train.take(range(20))
    right = right_in_a_child(lambda: torch.equal(explainer.scores(CASES), wanted))
    return right and bool(explainer.relevance.scores(explainer.subject.predicted(cases)).equal(wanted))


def main() -> None:
    wanted = [asked(EXPLAINER, case) for case in CASES]
    torch.rand(2000, 2000) @ torch.rand(2000, 2000)  # all threads of torch are at work
    fork: Any = multiprocessing.get_context("fork")
    found = {
        "forked": right_in_a_child(lambda: close([asked(EXPLAINER, case) for case in CASES], wanted)),
        "one thread": right_in_a_child(lambda: torch.get_num_threads() == 1),
        "made in the child": right_in_a_child(
            lambda: close([asked(Explainer(MODEL, TRAIN), CASES[0])], wanted[:1])
        ),
        "while others hold locks": while_others_hold_locks(),
    }
    if found["forked"]:  # what follows would wait for ever
        with fork.Pool(2) as pool:
            found["pool of processes"] = close(pool.map(numbered, range(len(CASES))), wanted)
    loader = DataLoader(Explained(), batch_size=None, num_workers=2, multiprocessing_context=fork)
    found["loader"] = torch.stack(list(loader)).tolist() == [each[0][0] for each in wanted]
    found["stream"] = in_the_middle_of_a_stream()
    print(json.dumps(found))  # noqa: T201


def close(found: list[Any], wanted: list[Any]) -> bool:
    """Whether the precedents are the same, and their relevance to rounding: two threads sum up in two parts."""
    same = [each[0] for each in found] == [each[0] for each in wanted]
    return same and all(
        torch.allclose(torch.tensor(mine[1]), torch.tensor(theirs[1]), rtol=1e-9)
        for mine, theirs in zip(found, wanted, strict=True)
    )


if __name__ == "__main__":
    main()

"""How often the jobs read the training set: the pages say so, and a set on disk is dear to read."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import torch
from torch.utils.data import Dataset

import precedents as pr
from precedents.explain.jobs import _described
from precedents.runtime.progress import SHOWN, Display, Pace
from tests.explain.jobs.conftest import Digits


class Counted(Dataset):
    """A data set that counts what is read of it."""

    def __init__(self, x: torch.Tensor, y: torch.Tensor) -> None:
        self.x, self.y, self.read = x, y, 0

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
        self.read += 1
        return self.x[i], int(self.y[i])


JOBS = {
    "self_relevance": (1, lambda e, test: e.self_relevance()),
    "suspects": (2, lambda e, test: e.suspects(5)),
    "suspects, accused": (2, lambda e, test: e.suspects(5, test)),
    "contrast": (1, lambda e, test: e.contrast(test[0][0], 1, 2)),
    "answers": (1, lambda e, test: e.answers(3, test[0])),
    "near_duplicates": (1, lambda e, test: e.near_duplicates()),
    "near_duplicates, test": (1, lambda e, test: e.near_duplicates(test)),
    "groups": (2, lambda e, test: e.groups(test, "truth")),
    "compare": (1, lambda e, test: pr.compare(e, e, test[0])),
}


@pytest.mark.parametrize("job", JOBS)
def test_the_training_set_is_read_no_more_often_than_its_page_says(job, digits: Digits) -> None:
    x, y = digits.train
    data, (times, asked) = Counted(x, y), JOBS[job]
    explainer = pr.Explainer(digits.model, data)
    data.read = 0
    asked(explainer, digits.test)
    assert data.read <= times * len(x) + 60  # and some that are shown, or read again


def test_two_explainers_of_one_data_set_are_compared_without_reading_it_again(digits: Digits) -> None:
    data = Counted(*digits.train)
    one, other = pr.Explainer(digits.model, data, "cos_x"), pr.Explainer(digits.model, data, "cos_last")
    data.read = 0
    pr.compare(one, other, digits.test[0])
    assert data.read <= 2 * len(data) + 60


def test_rows_of_a_table_are_read_once_more_for_their_deviations(digits: Digits) -> None:
    data = Counted(digits.train[0].flatten(1), digits.train[1])
    explainer = pr.Explainer(digits.model, data)
    data.read = 0
    explainer.near_duplicates()
    assert data.read <= 2 * len(data) + 60


def test_what_is_not_kept_is_read_again_and_the_same_is_found(digits: Digits, monkeypatch) -> None:
    x, y = digits.train
    explainer = pr.Explainer(
        digits.model, Counted(torch.cat([x, x[:20], x[30:50] + 0.01]), torch.cat([y, y[:40]]))
    )
    kept = explainer.near_duplicates()
    monkeypatch.setattr(_described, "PART", 10**9)
    again = explainer.near_duplicates()
    assert len(kept) >= 40
    assert [(pair.index, pair.other, pair.exact) for pair in kept.pairs] == [
        (pair.index, pair.other, pair.exact) for pair in again.pairs
    ]
    assert [pair.likeness for pair in again.pairs] == pytest.approx([pair.likeness for pair in kept.pairs])


@pytest.mark.parametrize("job", JOBS)
def test_long_work_shows_its_progress(job, digits: Digits) -> None:
    shown: list[str] = []

    @contextmanager
    def show(title: str, _: Pace) -> Iterator[Callable[[], None]]:
        shown.append(title)
        yield lambda: None

    display = Display(show, lambda: None)
    explainer = pr.Explainer(digits.model, Counted(*digits.train), memory="40 MB")
    token = SHOWN.set(lambda: display)
    try:
        JOBS[job][1](explainer, digits.test)
    finally:
        SHOWN.reset(token)
    assert {"gradient", "training set"} & set(shown)

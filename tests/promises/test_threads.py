"""Threads, servers, forks: whoever asks at the same time as others gets the answer that it gets alone."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Event, Thread
from time import sleep
from typing import Any

import hugging
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from precedents import Classifier, Examples, Explainer
from precedents.curvature.hessian import exact_hessian
from precedents.errors import PrecedentsError
from precedents.metrics.features.gradient import gradient
from precedents.metrics.vectors import Vectors
from precedents.metrics.workspace import Workspace
from precedents.runtime.buffers import BUFFERS, LEAST_BYTES
from precedents.runtime.cache import Cache, Slot
from promises.threaded import MODELS, THREADS, answer, asked, built, together

PATIENCE = 120  # seconds, for what waits for ever if it is wrong
LETTER: Slot[str] = Slot("letter")


@pytest.fixture(autouse=True)
def hasty() -> Iterator[None]:
    """Threads take turns often."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def agree(explainer: Explainer, alone: Explainer, cases: Any, count: int) -> None:
    """Eight threads get from one explainer what one thread gets from another."""
    wanted = [asked(alone, case) for case in cases]
    found = together(lambda i: asked(explainer, cases[i % len(cases)]), count)
    assert found == [wanted[i % len(cases)] for i in range(count)]


@pytest.mark.parametrize("metric", ["cos_last", "cos_all", "cos_grad", "dot_grad", "l2_x", "cos_fisher"])
def test_eight_threads_get_the_answers_of_one(metric, train, cases) -> None:
    deep, count = built("deep"), 800 if metric in ("cos_last", "cos_all", "cos_grad") else 800 // 6
    agree(Explainer(deep, train, metric), Explainer(deep, train, metric), cases, count)


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        *((name, metric) for name in MODELS for metric in ("cos_last", "cos_grad") if name != "deep"),
        ("noting", "cos_if"),
        ("exponential", "dot:gradient/lanczos(rank=5)"),
        ("scratch", "cosine:gradient/ekfac"),
    ],
)
@pytest.mark.filterwarnings("ignore:Gradients of Exponential by a slower fallback")
def test_threads_do_not_see_what_a_model_notes(name, metric, train, cases) -> None:
    if name == "exponential" and metric == "cos_last":
        metric = "l2_grad"  # a model of one layer has no hidden ones
    model = built(name)
    agree(Explainer(model, train, metric), Explainer(model, train, metric), [*cases[:5], cases[:4]], 24)


@pytest.mark.parametrize("metric", ["cos_last", "cos_grad"])
def test_threads_and_a_hugging_face_model(metric) -> None:
    pair, rows = (hugging.trained("bert", steps=3), hugging.tokenizer()), hugging.texts(24, seed=1)
    texts = [row["text"] for row in hugging.texts(6, seed=2)]
    agree(Explainer(pair, rows, metric), Explainer(pair, rows, metric), texts, 24)


@pytest.mark.parametrize("metric", ["cos_x", "dot_grad"])
def test_threads_and_a_scikit_learn_pipeline(metric, train, test) -> None:
    x, y = (part.numpy() for part in train)
    pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(x, y)
    agree(
        Explainer(pipeline, (x, y), metric), Explainer(pipeline, (x, y), metric), list(test[0].numpy()[:6]), 40
    )


def hooks_of(part: nn.Module) -> tuple[list[Any], list[Any]]:
    return [*part._forward_hooks.values()], [*part._forward_pre_hooks.values()]


@pytest.mark.parametrize("metric", ["cos_all", "cos_grad"])
def test_errors_of_some_questions_do_not_touch_the_others(metric, train, cases) -> None:
    explainer = Explainer(built("noting"), train, metric)
    module = explainer.subject.classifier.module
    hooks = [hooks_of(part) for part in module.modules()]
    wanted = asked(explainer, cases[0])

    def question(i: int) -> Any:
        if i % 2:
            return asked(explainer, cases[0])
        with pytest.raises(PrecedentsError):
            explainer.explain(torch.full((5,), torch.nan) if i % 4 else cases[0][:3])
        return wanted

    assert together(question, 80) == [wanted] * 80
    assert [hooks_of(part) for part in module.modules()] == hooks
    assert not any(map(any, hooks[1:]))


def test_all_that_an_explainer_can_be_asked_at_once(train, cases, tmp_path) -> None:
    model = built("noting")
    explainer, alone = Explainer(model, train, "cos_fisher"), Explainer(model, train, "cos_fisher")
    wanted, matrix = asked(alone, cases[0]), alone.scores(cases)

    def question(i: int) -> bool:
        if i % 4 == 0:
            return asked(explainer, cases[0]) == wanted
        if i % 4 == 1:
            return torch.equal(explainer.scores(cases), matrix)
        if i % 4 == 2:
            return explainer.estimate(3).disk == alone.estimate(3).disk
        explainer.save(tmp_path / str(i))
        return asked(Explainer.load(tmp_path / str(i), model, train), cases[0]) == wanted

    assert all(together(question, 8))


def test_two_explainers_and_the_user_share_a_module(train, cases) -> None:
    model = built("encoding").train()  # in which the user trains it
    state = {key: value.clone() for key, value in model.state_dict().items()}
    wanted = {metric: asked(Explainer(model, train, metric), cases[0]) for metric in ("cos_all", "cos_grad")}
    seen = []

    def work(i: int) -> bool:
        if i % 4 == 3:
            flags = {part.training for part in model.modules()}, {p.requires_grad for p in model.parameters()}
            hooks = any(part._forward_hooks or part._forward_pre_hooks for part in model.modules())
            seen.append((flags, hooks))
            return True
        metric = ("cos_all", "cos_grad")[i % 2]
        return asked(Explainer(model, train, metric), cases[0]) == wanted[metric]

    assert all(together(work, 24))
    assert all(each == (({True}, {True}), False) for each in seen)
    assert all(torch.equal(value, state[key]) for key, value in model.state_dict().items())


class Counted:
    """A dataset that counts its readings."""

    def __init__(self, train: tuple[Tensor, Tensor]) -> None:
        self.train, self.read = train, 0

    def __len__(self) -> int:
        return len(self.train[1])

    def __getitem__(self, i: int) -> tuple[Tensor, int]:
        self.read += 1
        return self.train[0][i], int(self.train[1][i])


@pytest.mark.parametrize("metric", ["cos_last", "cos_grad", "cos_fisher", "cos_if", "cosine:gradient/ekfac"])
def test_what_the_first_question_computes_is_computed_once(metric, train, cases) -> None:
    counts = []
    for threads in (1, THREADS):
        data = Counted(train)
        explainer = Explainer(built("noting"), data, metric)
        data.read = 0
        together(lambda i: asked(explainer, cases[0]), THREADS, threads)  # noqa: B023
        counts.append(data.read)
    assert counts[1] <= counts[0] + 1  # `read += 1` may be late, but never as often as there are threads


class Meeting(nn.Module):
    """Waits in its first layer until two passes are there."""

    place: Barrier | None = None

    def __init__(self) -> None:
        super().__init__()
        self.first, self.head = nn.Linear(5, 6), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        if Meeting.place is not None:
            Meeting.place.wait()
        return self.head(self.first(x).tanh())


@pytest.mark.parametrize("metric", ["cos_last", "cos_grad", "dot_fisher"])
def test_passes_of_two_questions_run_side_by_side(metric, train, cases) -> None:
    explainer = Explainer(Meeting().double(), train, metric)
    wanted = [asked(explainer, case) for case in cases[:2]]
    Meeting.place = Barrier(2, timeout=PATIENCE)
    try:
        assert together(lambda i: asked(explainer, cases[i]), 2, threads=2) == wanted
    finally:
        Meeting.place = None


class OneByOne(Dataset):
    """As over an open file: an item is read in two steps, between which nobody else may read."""

    def __init__(self, x: Tensor, y: Tensor) -> None:
        self.x, self.y, self.place = x, y, 0

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, i: int) -> tuple[Tensor, int]:
        self.place = i
        sleep(1e-4)
        return self.x[self.place], int(self.y[self.place])


class Texts(list[Any]):
    """Rows of texts, read in the same way."""

    place = 0

    def __getitem__(self, i: Any) -> Any:
        self.place = i
        sleep(1e-4)
        return super().__getitem__(self.place)


def pairs(items: Any) -> tuple[Tensor, Tensor]:
    return torch.stack([x for x, _ in items]), torch.tensor([y for _, y in items])


@pytest.mark.parametrize(
    "wrap",
    [
        lambda data: data,
        lambda data: DataLoader(data, batch_size=7),
        lambda data: DataLoader(data, batch_size=7, collate_fn=pairs),
    ],
    ids=["a data set", "a loader", "a collate_fn"],
)
def test_a_data_set_is_read_by_one_thread_at_a_time(wrap, train, cases) -> None:
    explainer = Explainer(built("deep"), wrap(OneByOne(*train)))
    agree(explainer, Explainer(built("deep"), train), cases, 40)


def test_rows_of_texts_are_read_by_one_thread_at_a_time() -> None:
    rows = hugging.texts(24, seed=1)
    bert = hugging.trained("bert", steps=3), hugging.tokenizer()
    explainer, alone = (Explainer(bert, each) for each in (Texts(rows), rows))
    agree(explainer, alone, [row["text"] for row in rows[:4]], 24)


def test_what_is_known_is_not_waited_for() -> None:
    cache, working, done = Cache(), Event(), Event()
    cache.once(LETTER.at(1), lambda: "a")

    def slow() -> str:
        working.set()
        assert done.wait(PATIENCE)
        return "b"

    with ThreadPoolExecutor(2) as pool:
        other = pool.submit(cache.once, LETTER.at(2), slow)
        working.wait(PATIENCE)
        try:
            assert pool.submit(cache.once, LETTER.at(1), slow).result(PATIENCE) == "a"
        finally:
            done.set()
        assert other.result(PATIENCE) == "b"


def test_a_server_that_answers_in_a_pool_of_threads(train, cases) -> None:
    explainer = Explainer(built("noting"), train)
    wanted = [asked(explainer, case) for case in cases]

    async def served() -> list[Any]:
        return await asyncio.gather(*(asyncio.to_thread(asked, explainer, case) for case in [*cases, *cases]))

    assert asyncio.run(served()) == wanted * 2


def test_the_main_thread_asks_while_others_do(train, cases) -> None:
    explainer = Explainer(built("scratch"), train)
    wanted = [asked(explainer, case) for case in cases]
    with ThreadPoolExecutor(3) as pool:
        others = [pool.submit(asked, explainer, case) for case in cases]
        assert [asked(explainer, case) for case in cases] == wanted
        assert [each.result() for each in others] == wanted


def interrupted(work: Any, seconds: float) -> bool:
    """Whether the work was interrupted as by Ctrl-C, after so many seconds."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        work()
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        return True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return False


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no such signals here")
@pytest.mark.filterwarnings("ignore:Gradients of Exponential by a slower fallback")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # files that are closed late
@pytest.mark.parametrize(("name", "metric"), [("noting", "cos_all"), ("exponential", "cos_grad")])
def test_an_interrupt_in_the_middle_leaves_an_explainer_that_answers(name, metric, train, cases) -> None:
    explainer = Explainer(built(name), train, metric)
    wanted = asked(Explainer(built(name), train, metric), cases[0])
    count = sum(interrupted(lambda: asked(explainer, cases[0]), 1e-4 + 2e-4 * i) for i in range(40))
    assert count > 0
    assert torch.is_grad_enabled()  # as it was
    with ThreadPoolExecutor(1) as pool:  # which holds no lock that the main thread has
        assert pool.submit(asked, explainer, cases[0]).result(PATIENCE) == wanted
    assert asked(explainer, cases[0]) == wanted


def test_a_question_that_is_left_unfinished_holds_nothing(train, cases) -> None:
    explainer = Explainer(built("noting"), train, "cos_fisher")
    unfinished = explainer.relevance.kernels(Examples.of((cases, torch.zeros(len(cases)).long())))
    next(unfinished)
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(asked, explainer, cases[0]).result(PATIENCE)
    assert found == asked(Explainer(built("noting"), train, "cos_fisher"), cases[0])


def test_what_one_thread_began_and_another_closes_gives_its_memory_back(train) -> None:
    vectors = Vectors.of(Workspace(Explainer(built("noting"), train).subject), gradient)
    left = []

    def began() -> None:  # in a thread whose pool nobody else is with
        before = BUFFERS.free
        rows = vectors.rows(vectors.workspace.train)
        next(rows)
        closing = Thread(target=rows.close)
        closing.start()
        closing.join()
        BUFFERS.empty((LEAST_BYTES,), torch.float32)
        left.append(len(before))

    beginning = Thread(target=began)
    beginning.start()
    beginning.join()
    assert left == [0]  # nobody is with the pool, so that nothing is kept


def test_threads_draw_what_one_draws_and_leave_the_random_state(train) -> None:
    classifier, deep = Classifier.of(built("noting"), Examples.of(train)), built("deep")
    wanted = [classifier.randomized(seed).module.head.weight for seed in range(4)]
    before = torch.get_rng_state()

    def work(i: int) -> Tensor:
        if i % 2:
            Explainer(deep, train, "cos_x")
        return classifier.randomized(i % 4).module.head.weight

    found = together(work, 40)
    assert all(torch.equal(weight, wanted[i % 4]) for i, weight in enumerate(found))
    assert torch.equal(torch.get_rng_state(), before)


def test_threads_leave_the_filters_of_warnings(train) -> None:
    before, deep = list(warnings.filters), built("deep")
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(lambda _: Explainer(deep, train), range(16)))
    assert warnings.filters == before


class Seeing(nn.Module):
    """Notes which kinds of attention the process may use while it runs."""

    seen: list[bool] = []  # noqa: RUF012

    def __init__(self) -> None:
        super().__init__()
        self.attention, self.head = nn.MultiheadAttention(5, 1, batch_first=True), nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        self.seen.append(torch.backends.cuda.flash_sdp_enabled())
        x = x[:, None] * torch.arange(1, 4).to(x)[:, None]
        return self.head(self.attention(x, x, x, need_weights=False)[0].sum(dim=1))


def test_a_hessian_does_not_change_the_attention_of_other_threads(train) -> None:
    classifier = Classifier.of(Seeing().double(), Examples.of(train))
    Seeing.seen.clear()
    assert exact_hessian(classifier, Examples.of((train[0][:6], train[1][:6]))).isfinite().all()
    assert Seeing.seen
    assert all(Seeing.seen)


def test_the_users_tokenizer_keeps_its_settings() -> None:
    tokenizer, rows = hugging.tokenizer(model_max_length=12), hugging.texts(12, seed=1)
    explainer = Explainer((hugging.trained("bert", steps=1), tokenizer), rows, "cos_last")
    tokenizer(["the rain"], padding="max_length", max_length=5, truncation=True)
    settings = dict(tokenizer.backend_tokenizer.padding), dict(tokenizer.backend_tokenizer.truncation)
    assert answer(explainer.explain(rows[0]["text"], k=1))
    assert (tokenizer.backend_tokenizer.padding, tokenizer.backend_tokenizer.truncation) == settings


@pytest.fixture(scope="module")
def children() -> dict[str, bool]:
    """What forked processes found, each by its name; the parent computes with two threads of torch."""
    if not hasattr(os, "fork"):
        pytest.skip("there are no forks here")
    tests = Path(__file__).parents[1]
    paths = os.pathsep.join([str(tests), str(tests.parent / "src"), *sys.path])
    environment = {**os.environ, "OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "passive", "PYTHONPATH": paths}
    command = [sys.executable, "-W", "ignore", "-m", "promises.forking"]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


@pytest.mark.parametrize(
    "what",
    [
        "forked",
        "one thread",
        "made in the child",
        "while others hold locks",
        "pool of processes",
        "loader",
        "stream",
    ],
)
def test_a_forked_process_gets_the_right_answer(what, children) -> None:
    assert children[what]

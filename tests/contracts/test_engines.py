"""What every engine must do, on real processes and clusters; a new one is held to it by its file alone."""

import copy
import os
import pickle
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from socket import socket
from threading import Lock

import psutil
import pytest
import torch
from conftest import blobs, mlp, retrained, trained
from errands import (
    begun,
    deadly,
    dying,
    failing,
    noted,
    refusing,
    sleeping,
    squared,
    surroundings,
    telling,
    warning,
)
from waiting import until

from precedents import Explainer, Index, audit
from precedents.cli._main import main
from precedents.errors import BudgetError, InputError, MissingExtraError, StaleError, UnknownNameError
from precedents.reproduction.runner import tasks, work
from precedents.reproduction.settings import SETTINGS
from precedents.runtime.budget import Budget
from precedents.runtime.engines import ENGINES
from precedents.runtime.engines._find import engine_of
from precedents.runtime.engines._share import Share
from precedents.runtime.engines._travel import carried_out, in_worker, opened, packed_work

NAMES = ENGINES.names()
APART = [name for name in NAMES if ENGINES.get(name).apart]
every = pytest.mark.parametrize("name", NAMES)
apart = pytest.mark.parametrize("name", APART)


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[None]:
    """A cluster of Ray of one worker, for all tests of this file."""
    import ray

    os.environ["RAY_USAGE_STATS_ENABLED"] = os.environ["RAY_TQDM_PATCH_PRINT"] = "0"
    ray.init("local", num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="CRITICAL")
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def dask_cluster() -> Iterator[None]:
    """A cluster of Dask of one worker."""
    from distributed import Client, LocalCluster

    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50}
    with LocalCluster(**options) as cluster, Client(cluster):
        yield


@pytest.fixture(autouse=True)
def clusters(request) -> None:
    """The cluster that an engine is tried on, which is started by the first test that needs it."""
    name = getattr(request.node, "callspec", None) and request.node.callspec.params.get("name")
    if name in ("ray", "dask"):
        request.getfixturevalue(f"{name}_cluster")


def engine(name: str, workers: int = 2):
    """With so many workers, where it has any."""
    found = ENGINES.get(name)
    return engine_of(name, workers=workers if hasattr(found, "workers") else None)


@every
def test_every_task_comes_back_once_with_its_result(name) -> None:
    tasks = list(range(-3, 9))
    found = list(engine(name).run(squared, tasks))
    assert Counter(found) == Counter((task, task * task) for task in tasks)


@every
def test_without_tasks_nothing_is_begun(name) -> None:
    assert list(engine(name).run(squared, [])) == []


@every
def test_functions_and_tasks_of_any_kind_travel(name) -> None:
    rows = [[0.0, 1.0], [2.0, 3.0]]
    found = dict(engine(name).run(lambda task: [2 * each for each in rows[task[1]]], [("row", 0), ("row", 1)]))
    assert found == {("row", 0): [0.0, 2.0], ("row", 1): [4.0, 6.0]}


@every
def test_tasks_compute_with_one_thread_and_this_process_as_before(name) -> None:
    torch.set_num_threads(2)
    try:
        found = [result for _, result in engine(name, 1).run(surroundings, [1, 2])]
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
    elsewhere = ENGINES.get(name).apart
    assert {threads for threads, _, _ in found} == {1}
    assert {worker for _, _, worker in found} == {elsewhere}
    assert (os.getpid() in {process for _, process, _ in found}) == (not elsewhere)
    assert not in_worker()


@every
def test_what_a_task_raises_is_raised_and_not_tried_again(name, tmp_path) -> None:
    with pytest.raises(StaleError, match=r"^The data changed\.$"):
        list(engine(name, 1).run(partial(refusing, tmp_path), [0]))
    assert begun(tmp_path) == ["0"]


@every
def test_errors_that_cannot_travel_are_told(name) -> None:
    with pytest.raises(Exception, match="1 and 2"):
        list(engine(name).run(failing, [1]))


@apart
def test_an_error_of_a_users_code_has_its_line_and_the_workers_traceback(name) -> None:
    with pytest.raises(InputError, match=r"ZeroDivisionError.*\(test_engines.py, line \d+\)") as raised:
        list(engine(name).run(lambda task: 1 / task, [0]))
    assert "ZeroDivisionError" in str(raised.value.__cause__)


@every
def test_the_progress_within_tasks_is_told(name) -> None:
    heard, lock = [], Lock()

    def tell(line: str) -> None:
        with lock:
            heard.append(line)

    list(engine(name).run(telling, [1, 2], tell))
    until(lambda: len({line[:6] for line in heard}) == 2)
    assert {line[:6] for line in heard} == {"task 1", "task 2"}
    assert all("of 3" in line for line in heard)


@every
def test_one_who_stops_in_the_middle_stops_the_rest(name, tmp_path) -> None:
    running = engine(name).run(partial(sleeping, tmp_path), list(range(12)))
    assert next(running)
    running.close()
    assert len(settled(lambda: begun(tmp_path))) < 12


def settled(found: Callable[[], list[str]], seconds: float = 0.6) -> list[str]:
    """What is found when nothing more has come for some time."""
    before, since = found(), time.monotonic()
    while time.monotonic() - since < seconds:
        time.sleep(0.05)
        if (now := found()) != before:
            before, since = now, time.monotonic()
    return before


@apart
def test_what_a_task_warns_of_is_warned_of_here(name) -> None:
    with pytest.warns(UserWarning, match="^Task 3 is slow$"):
        assert dict(engine(name, 1).run(warning, [3])) == {3: 3}


def test_a_worker_of_another_version_refuses_the_work() -> None:
    versions, *rest = pickle.loads(packed_work(squared))
    assert opened(carried_out(packed_work(squared), pickle.dumps(3), None)) == 9
    for name in ("precedents", "torch", "Python"):
        other = pickle.dumps((versions | {name: "0.1"}, *rest))
        with pytest.raises(InputError, match=rf"The worker on .* has {name} .*, not 0\.1\. Install the same\."):
            opened(carried_out(other, pickle.dumps(3), None))


def test_workers_share_what_is_free() -> None:
    assert [engine_of(text).at_once for text in ("serial", "processes(workers=3)", "dask(workers=2)")] == [
        1,
        3,
        2,
    ]
    alone, third = Budget(), Budget(sharers=3)
    assert third.bytes == pytest.approx(alone.bytes / 3, rel=0.1)
    assert Budget(600, sharers=3).bytes == 600
    with pytest.raises(BudgetError, match="a worker's share of the free memory is"):
        third.required(10**15, "It", "Use less.")


INTERRUPTED = """
import sys
sys.path.insert(0, sys.argv[1])
from functools import partial
from pathlib import Path
from errands import sleeping
from precedents.runtime.engines._find import engine_of
for task, _ in engine_of("processes(workers=2)").run(partial(sleeping, Path(sys.argv[2])), range(1000)):
    print(task, flush=True)
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_script_that_is_interrupted_or_killed_leaves_no_worker(how, tmp_path) -> None:
    command = [sys.executable, "-c", INTERRUPTED, str(Path(__file__).parents[1]), str(tmp_path)]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # which a shell may have taken away
    ) as process:
        process.stdout.readline()
        os.killpg(process.pid, how)
        error = process.communicate(timeout=120)[1]
    if how == signal.SIGINT:
        assert error.count("Traceback") == error.count("KeyboardInterrupt") == 1
    workers = [int(file.name) for file in tmp_path.iterdir() if not file.name.startswith("ended")]
    assert workers
    until(lambda: not any(map(lives, workers)))


def lives(process: int) -> bool:
    """Whether it runs; one that has ended and was not asked for its result does not."""
    try:
        return psutil.Process(process).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@apart
def test_what_cannot_travel_is_refused_in_one_line(name) -> None:
    lock = Lock()
    with pytest.raises(InputError, match=r"The work cannot be sent to another process: .*serial"):
        list(engine(name).run(lambda task: (lock, task), [1]))
    with pytest.raises(InputError, match="A task cannot be sent"):
        list(engine(name).run(squared, [lock]))
    with pytest.raises(InputError, match="The result cannot be sent"):
        list(engine(name).run(lambda task: Lock(), [1]))


@every
def test_an_engine_says_what_it_is_and_is_read_from_a_text(name) -> None:
    assert ENGINES.meaning(name)
    assert engine_of(name) == ENGINES.get(name) == engine_of(ENGINES.get(name))
    if hasattr(ENGINES.get(name), "workers"):
        assert engine_of(f"{name}(workers=3)").workers == engine_of(name, workers=3).workers == 3


def test_unknown_engines_and_settings_are_one_line() -> None:
    with pytest.raises(
        UnknownNameError, match=r"No engine is named 'rya'. Did you mean 'ray'\? Known: dask, pro"
    ):
        engine_of("rya")
    with pytest.raises(UnknownNameError, match="No setting of engine processes is named 'address'"):
        engine_of("processes", address="auto")
    with pytest.raises(InputError, match=r"workers is -1\. Pass how many"):
        engine_of("dask(workers=-1)")
    with pytest.raises(InputError, match=r"engine is an int\. Name one: dask"):
        engine_of(3)


def test_a_cluster_that_does_not_answer_is_one_line(monkeypatch) -> None:
    with socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{nobody.getsockname()[1]}"
        monkeypatch.setattr("ray.is_initialized", lambda: False)
        with pytest.raises(InputError, match=rf"No Ray cluster answers at {address}: ConnectionRefusedError"):
            list(engine_of("ray", address=address).run(squared, [1]))


@pytest.mark.parametrize(("name", "package"), [("ray", "ray"), ("dask", "distributed")])
def test_a_missing_extra_is_the_line_to_type(name, package, monkeypatch) -> None:
    monkeypatch.setattr("precedents.runtime.engines._find.find_spec", lambda found: None)
    with pytest.raises(
        MissingExtraError, match=rf"This needs {package}. Type: pip install 'precedents\[{name}\]'"
    ):
        engine_of(name)


class Drawn(torch.nn.Module):
    """A model of a test's own, which travels with its audit."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = mlp()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


@pytest.fixture(scope="module")
def world():
    train, test = blobs(45, seed=1), blobs(12, seed=2)
    return trained(Drawn, train), train, test


AUDIT = {"metrics": ["cos_x", "gc", "rif"], "k": 5}


@pytest.fixture(scope="module")
def audited(world) -> str:
    return audit(*world, **AUDIT, retrain=retrained).to_json()


@every
def test_an_audit_has_the_same_bytes_with_every_engine(name, world, audited, tmp_path) -> None:
    trainings, keep = tmp_path / "trainings", tmp_path / "keep"
    trainings.mkdir()

    def retrain(merged, seed):
        noted(trainings, seed)
        return retrained(merged, seed)

    options = AUDIT | {"retrain": retrain, "keep": keep, "engine": engine(name, 1)}
    assert audit(*world, **options).to_json() == audited
    assert [file.name for file in trainings.iterdir()] == [str(os.getpid())]
    records = (keep / "records.jsonl").read_bytes()
    assert audit(*world, **options).to_json() == audited
    assert (keep / "records.jsonl").read_bytes() == records


INDEXED = {"memory": "100 MB", "rows": 43}  # 300 rows in 7 shards


def whole_folder(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def indexed(world, tmp_path_factory) -> Path:
    """An index that this process has built without an engine."""
    folder = tmp_path_factory.mktemp("indexed") / "index"
    Index.build(world[0], blobs(300, seed=1), folder, **INDEXED)
    return folder


@every
def test_an_index_has_the_same_bytes_and_answers_with_every_engine(name, world, indexed, tmp_path) -> None:
    model, _, (cases, _) = world
    Index.build(model, blobs(300, seed=1), tmp_path / "index", engine=engine(name, 1), **INDEXED)
    assert whole_folder(tmp_path / "index") == whole_folder(indexed)
    loaded = Explainer.load(tmp_path / "index", model, blobs(300, seed=1), memory="100 MB")
    expected = Explainer(model, blobs(300, seed=1), index=False).explain(cases[:2], 10)
    assert loaded.explain(cases[:2], 10).top.indices.tolist() == expected.top.indices.tolist()


class Stuck:
    """What a module may hold that belongs to its process."""

    def __deepcopy__(self, _: object) -> "Stuck":
        return self

    def __reduce__(self) -> str:
        raise TypeError("It stays here")


@apart
def test_a_model_that_cannot_travel_is_refused_in_one_line(name, world, tmp_path) -> None:
    model, train, test = world
    model = copy.deepcopy(model)
    model.layers[1].more = Stuck()
    with pytest.raises(InputError, match=r"The work cannot be sent to another process: .*It stays here"):
        audit(model, train, test, metrics=["cos_x"], keep=tmp_path, engine=engine(name))
    assert not (tmp_path / "records.jsonl").exists()


QUICK = replace(SETTINGS["wine/mlp"], epochs=1)


def lines(folder: Path) -> list[str]:
    return sorted((folder / "wine-mlp.jsonl").read_text().splitlines())


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> list[str]:
    folder = tmp_path_factory.mktemp("recorded")
    list(work(tasks([QUICK], range(1), folder, metrics=["cos_last"]), "serial"))
    return lines(folder)


@pytest.mark.parametrize("name", [name for name in APART if name != "processes"])  # tests/reproduction has that
def test_repeats_have_the_same_records_with_every_engine(name, recorded, tmp_path) -> None:
    (done,) = work(tasks([QUICK], range(1), tmp_path, metrics=["cos_last"]), engine(name, 1))
    assert done.repeat == 0
    assert lines(tmp_path) == recorded


def test_shares_of_an_array_have_every_task_once() -> None:
    shares = [Share.of(f"{i}/3").of_all(range(10)) for i in (1, 2, 3)]
    assert sorted(task for share in shares for task in share) == list(range(10))
    assert Share.of(None).of_all([1, 2]) == [1, 2]


@pytest.mark.parametrize("text", ["0/3", "4/3", "1", "a/b", "1/0", "-1/3", "1.5/3"])
def test_a_share_that_is_none_is_refused(text) -> None:
    with pytest.raises(InputError, match=r"Write which of how many, from 1 on, as 7/64\."):
        Share.of(text)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--engine rya", "No engine is named 'rya'. Did you mean 'ray'?"),
        ("--engine processes --address auto", "No setting of engine processes is named 'address'."),
        ("--address auto", "--address is 'auto', but no cluster was named. Add --engine ray or dask."),
        ("--shard 9/3", "Write which of how many, from 1 on, as 7/64."),
    ],
)
def test_wrong_engines_of_a_command_are_one_line(options, said, tmp_path, monkeypatch, capfd) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["reproduction", "run", "--settings", "wine/mlp", *options.split()]) == 2
    error = capfd.readouterr().err
    assert said in error
    assert len(error.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


# Last, since a cluster may lose its workers for good.


@apart
def test_a_worker_that_dies_is_tried_again(name, tmp_path) -> None:
    found = sorted(engine(name).run(partial(dying, tmp_path), list(range(6))))
    assert found == [(task, task) for task in range(6)]
    assert begun(tmp_path).count("0") >= 2
    assert set(begun(tmp_path)) == {str(task) for task in range(6)}


@apart
def test_a_task_that_kills_every_worker_is_given_up(name) -> None:
    with pytest.raises(BudgetError, match=r"A worker .* 4 times.*fewer workers or less memory"):
        list(engine(name, 1).run(deadly, [1]))

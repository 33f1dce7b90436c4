"""What every engine must do, on real processes and clusters; a new one is held to it by its file alone."""

import os
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from threading import Lock

import pytest
import torch
from errands import begun, deadly, dying, failing, refusing, sleeping, squared, surroundings, telling

from precedents.errors import BudgetError, InputError, MissingExtraError, StaleError, UnknownNameError
from precedents.runtime.engines._find import ENGINES, engine_of
from precedents.runtime.engines._travel import in_worker

NAMES = ENGINES.names()
APART = [name for name in NAMES if ENGINES.get(name).apart]
every = pytest.mark.parametrize("name", NAMES)
apart = pytest.mark.parametrize("name", APART)


@pytest.fixture(scope="module", autouse=True)
def clusters() -> Iterator[None]:
    """A cluster of Ray and one of Dask, of two workers each, for all tests of this file."""
    import ray
    from distributed import Client, LocalCluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="CRITICAL")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50}
    with LocalCluster(**options) as cluster, Client(cluster):
        yield
    ray.shutdown()


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
    rows = torch.arange(6.0).reshape(2, 3)
    found = dict(engine(name).run(lambda task: (rows[task[1]] * 2).tolist(), [("row", 0), ("row", 1)]))
    assert found == {("row", 0): [0.0, 2.0, 4.0], ("row", 1): [6.0, 8.0, 10.0]}


@every
def test_tasks_compute_with_one_thread_and_this_process_as_before(name) -> None:
    torch.set_num_threads(2)
    try:
        found = [result for _, result in engine(name).run(surroundings, [1, 2, 3])]
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


@apart
def test_a_worker_that_dies_is_tried_again(name, tmp_path) -> None:
    found = sorted(engine(name).run(partial(dying, tmp_path), list(range(6))))
    assert found == [(task, task) for task in range(6)]
    assert begun(tmp_path).count("0") == begun(tmp_path).count("1") == 2 or name == "dask"
    assert set(begun(tmp_path)) == {str(task) for task in range(6)}


@apart
def test_a_task_that_kills_every_worker_is_given_up(name) -> None:
    with pytest.raises(BudgetError, match=r"A worker .* 4 times.*fewer workers or less memory"):
        list(engine(name, 1).run(deadly, [1]))


@every
def test_the_progress_within_tasks_is_told(name) -> None:
    heard, lock = [], Lock()

    def tell(line: str) -> None:
        with lock:
            heard.append(line)

    list(engine(name).run(telling, [1, 2], tell))
    limit = time.monotonic() + 5
    while len({line[:6] for line in heard}) < 2 and time.monotonic() < limit:
        time.sleep(0.05)
    assert {line[:6] for line in heard} == {"task 1", "task 2"}
    assert all("of 3" in line for line in heard)


@every
def test_one_who_stops_in_the_middle_stops_the_rest(name, tmp_path) -> None:
    running = engine(name).run(partial(sleeping, tmp_path), list(range(12)))
    assert next(running)
    running.close()
    time.sleep(0.3)
    after = begun(tmp_path)
    time.sleep(0.5)
    assert begun(tmp_path) == after
    assert len(after) < 12


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
    with pytest.raises(InputError, match=r"engine is an int\. Name one: dask"):
        engine_of(3)


@pytest.mark.parametrize(("name", "package"), [("ray", "ray"), ("dask", "distributed")])
def test_a_missing_extra_is_the_line_to_type(name, package, monkeypatch) -> None:
    monkeypatch.setattr("precedents.runtime.engines._find.find_spec", lambda found: None)
    with pytest.raises(
        MissingExtraError, match=rf"This needs {package}. Type: pip install 'precedents\[{name}\]'"
    ):
        engine_of(name)

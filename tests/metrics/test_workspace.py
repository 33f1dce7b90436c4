from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
import torch
from spaces import workspace_of

from benchmarks.streaming import measured
from precedents import Examples
from precedents.metrics.features.gradient import gradient
from precedents.metrics.features.inputs import inputs
from precedents.metrics.vectors import Vectors
from precedents.runtime import budget as memory
from precedents.runtime.cache import Slot

KEY: Slot[object] = Slot("key")
LARGE: Slot[int] = Slot("large", large=True)
SMALL: Slot[int] = Slot("small")


def test_a_value_is_made_once(classifier, examples) -> None:
    workspace, calls = workspace_of(classifier, examples), []
    values = [workspace.once(KEY, lambda: calls.append(1) or "value") for _ in range(3)]
    assert values == ["value"] * 3
    assert len(calls) == 1


def test_other_evidence_keeps_other_values(classifier, examples) -> None:
    one, two = workspace_of(classifier, examples), workspace_of(classifier, examples)
    assert one.once(KEY, lambda: 1) != two.once(KEY, lambda: 2)


def test_a_value_that_could_not_be_made_is_tried_again(classifier, examples) -> None:
    workspace = workspace_of(classifier, examples)
    with pytest.raises(ZeroDivisionError):
        workspace.once(KEY, lambda: 1 / 0)
    assert workspace.once(KEY, lambda: 2) == 2


@pytest.mark.parametrize(("features", "width"), [(inputs, 5), (gradient, 89)])
def test_the_width_is_the_length_of_a_vector(features, width, workspace) -> None:
    assert Vectors.of(workspace, features).width == width


def test_the_rows_of_the_training_set_are_those_of_its_instances(workspace, train) -> None:
    assert torch.equal(
        torch.cat([rows.dense() for _, rows in Vectors.of(workspace, inputs).blocks()]), train[0]
    )


@pytest.mark.parametrize(("again", "wanted"), [(True, [1, 45]), (False, [1, 45, 45, 45])])
def test_the_rows_of_the_training_set_are_kept_if_they_will_be_asked_for_again(
    again, wanted, classifier, examples
) -> None:
    calls = []

    def counted(model, batch):
        calls.append(len(batch.labels))
        return inputs(model, batch)

    vectors = Vectors.of(workspace_of(classifier, examples), counted)
    for _ in range(3):
        list(vectors.blocks(again))
    assert calls == wanted  # the first for the width


@pytest.mark.parametrize("rows", [0, 1, 20, 44, 45, 1000])
def test_of_a_streamed_set_as_many_rows_are_kept_as_there_is_room_for(
    rows, classifier, train, monkeypatch
) -> None:
    monkeypatch.setattr(memory, "MOST", 1)  # rows of a block
    monkeypatch.setattr(memory, "FEWER", 8 * 5 * rows)
    computed = []

    def counted(model, batch):
        computed.append(len(batch.labels))
        return inputs(model, batch)

    streamed = Examples.of(list(zip(train[0], train[1].tolist(), strict=True)))
    vectors = Vectors.of(workspace_of(classifier, streamed), counted)
    for _ in range(2):  # the first time rows are kept, and from the second on they are used
        computed.clear()
        found = torch.cat([block.dense() for _, block in vectors.blocks()])
        assert torch.equal(found, train[0])
    assert sum(computed) == max(0, 45 - rows)


def test_the_peak_does_not_grow_with_a_set_that_is_streamed_from_disk() -> None:
    few, many = (measured(n, columns=10_000)["peak_megabytes"] for n in (2_000, 6_000))  # 80 and 240 MB of rows
    assert many < 1.1 * few


def test_rows_come_in_consecutive_blocks_of_one_size(classifier, examples, monkeypatch) -> None:
    monkeypatch.setattr(memory, "BLOCK", 8 * 5 * 20)
    monkeypatch.setattr(memory, "ENOUGH", 1)
    found = list(Vectors.of(workspace_of(classifier, examples), inputs).rows(examples))
    assert [(places.start, places.stop, len(rows)) for places, rows in found] == [
        (0, 15, 15),
        (15, 30, 15),
        (30, 45, 15),
    ]


def test_rows_of_cases_are_those_of_the_cases(workspace, test) -> None:
    found = [rows.dense() for _, rows in Vectors.of(workspace, inputs).rows(Examples.of(test))]
    assert torch.equal(torch.cat(found), test[0])


def test_what_is_large_is_made_again_after_it_was_put_away(classifier, examples) -> None:
    workspace, made = workspace_of(classifier, examples), []

    def make() -> int:
        made.append(1)
        return len(made)

    assert [workspace.once(LARGE, make), workspace.once(SMALL, make)] == [1, 2]
    workspace.cache.put_away()
    assert [workspace.once(LARGE, make), workspace.once(SMALL, make)] == [3, 2]


def test_what_another_thread_works_on_is_not_put_away(classifier, examples) -> None:
    workspace, working, done = workspace_of(classifier, examples), Event(), Event()
    workspace.once(LARGE, lambda: 1)

    def work() -> int:
        working.set()
        done.wait()
        return 2

    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(workspace.once, KEY, work)
        working.wait()
        workspace.cache.put_away()
        done.set()
        assert found.result() == 2
    assert LARGE in workspace.cache

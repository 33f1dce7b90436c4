"""Rows that are added and removed: the answers of a training set that has, or never had, them."""

from pathlib import Path

import pytest
import torch
from hugging import BUILD, texts, tokenizer

from precedents import Explainer, FormatError, Index, InputError, PrecedentsError, StaleError
from precedents.index import index as index_module

from .worlds import Counting

MEMORY = "100 MB"


@pytest.fixture
def index(world, tmp_path) -> Index:
    """Of the first two thousand rows."""
    model, (x, y), _ = world
    return Index.build(model, (x[:2000], y[:2000]), tmp_path / "index", memory=MEMORY, rows=900)


def answers_of_a_pass(world, folder: Path, rows: torch.Tensor) -> None:
    model, (x, y), cases = world
    train = x[rows], y[rows]
    found = Explainer.load(folder, model, train, memory=MEMORY).explain(cases[:4], 10)
    expected = Explainer(model, train, index=False).explain(cases[:4], 10)
    assert all(each.startswith("exact") for each in found.completeness)
    assert found.top.indices.tolist() == expected.top.indices.tolist()
    torch.testing.assert_close(found.top.scores, expected.top.scores, rtol=1e-12, atol=1e-13)


def test_added_rows_are_found_and_the_others_are_not_computed_again(world, index) -> None:
    _, (x, y), _ = world
    index.check(1)
    before = {path.name: path.read_bytes() for path in (index.folder / "shards").iterdir()}
    Counting.passed = 0
    index.add((x[2000:2500], y[2000:2500]))
    assert Counting.passed < 2000
    after = {path.name: path.read_bytes() for path in (index.folder / "shards").iterdir()}
    assert len(after) == 4
    assert {name: after[name] for name in before} == before
    assert str(index) == "index of gradient: 2,500 rows in 4 shards, complete"
    answers_of_a_pass(world, index.folder, torch.arange(2500))


def test_rows_that_are_removed_are_gone(world, index) -> None:
    gone = torch.cat([torch.arange(0, 2000, 7), torch.tensor([1, 2, 1999])])
    index.remove(gone.tolist())
    kept = [i for i in range(2000) if i not in set(gone.tolist())]
    assert "removed" in str(index)
    answers_of_a_pass(world, index.folder, torch.tensor(kept))
    model, (x, y), _ = world
    with pytest.raises(StaleError, match="the number of training instances"):
        Explainer.load(index.folder, model, (x[:2000], y[:2000]), memory=MEMORY)


def test_rows_are_removed_and_added_again_and_again(world, index) -> None:
    model, (x, y), cases = world
    index.remove([0, 10])
    index.add((x[2000:2100], y[2000:2100]))
    index.remove([1997, 1998])  # the last of the old ones, and the first new one
    index.add((x[2100:2200], y[2100:2200]))
    gone = {0, 10, 1999, 2000}
    kept = torch.tensor([i for i in range(2200) if i not in gone])
    answers_of_a_pass(world, index.folder, kept)
    assert index.check(cases[:3]).recall == 1.0
    assert Index.open(index.folder, model, (x[kept], y[kept]), memory=MEMORY).state.removed == 4


def test_a_training_set_that_has_grown_extends_its_index(world, index) -> None:
    model, (x, y), _ = world
    Index.extend(index.folder, model, (x[:2300], y[:2300]), memory=MEMORY)
    answers_of_a_pass(world, index.folder, torch.arange(2300))
    with pytest.raises(InputError, match="none is to be added"):
        Index.extend(index.folder, model, (x[:2300], y[:2300]), memory=MEMORY)


def test_adding_that_breaks_off_goes_on_and_answers_without_meanwhile(world, index, monkeypatch) -> None:
    _, (x, y), _ = world
    more = x[2000:2980], y[2000:2980]
    made = index_module.Workshop.make

    def failing(self, number: int) -> None:
        if number == 4:
            raise KeyboardInterrupt
        made(self, number)

    monkeypatch.setattr(index_module.Workshop, "make", failing)
    with pytest.raises(KeyboardInterrupt):
        index.add(more)
    monkeypatch.undo()
    answers_of_a_pass(world, index.folder, torch.arange(2000))
    with pytest.raises(InputError, match="Other rows were to be added"):
        index.add((x[2000:2010], y[2000:2010]))
    with pytest.raises(InputError, match="Rows are being added"):
        index.remove([0])
    index.add(more)
    answers_of_a_pass(world, index.folder, torch.arange(2980))


@pytest.mark.parametrize(
    ("places", "said"), [([2000], "from 0 to 1999"), (range(2000), "All instances"), ("x", "a place is 'x'")]
)
def test_places_that_are_none_are_refused(places, said, index) -> None:
    with pytest.raises(InputError, match=said):
        index.remove(places)


def test_new_rows_of_another_shape_are_refused(index) -> None:
    with pytest.raises(InputError, match="Pass rows of the same shape"):
        index.add((torch.zeros(3, 1, 9, 9, dtype=torch.double), torch.zeros(3, dtype=torch.long)))


def test_rows_that_are_refused_leave_the_index_as_it_was(world, index) -> None:
    _, (x, y), _ = world
    with pytest.raises(PrecedentsError):
        index.add((x[2000:2010] * float("nan"), y[2000:2010]))
    index.add((x[2000:2100], y[2000:2100]))
    answers_of_a_pass(world, index.folder, torch.arange(2100))


def test_the_places_of_the_others_are_those_in_the_set_without_the_removed(world, tmp_path) -> None:
    model, (x, y), cases = world
    ids = [f"row {i}" for i in range(600)]
    train = x[:600], y[:600]
    index = Index.build(model, train, tmp_path / "index", memory=MEMORY, ids=ids)
    before = Explainer.load(tmp_path / "index", model, train, memory=MEMORY).explain(cases[0], 5).precedents()
    gone = before[0].index
    index.remove([gone])
    kept = [i for i in range(600) if i != gone]
    after = Explainer.load(tmp_path / "index", model, (x[kept], y[kept]), memory=MEMORY).explain(cases[0], 4)
    assert [each.index for each in after.precedents()] == [
        each.index - (each.index > gone) for each in before[1:]
    ]
    assert [each.id for each in after.precedents()] == [each.id for each in before[1:]]


def test_a_set_that_still_has_the_removed_is_told_so(world, index) -> None:
    model, (x, y), _ = world
    index.remove([3, 5])
    with pytest.raises(StaleError, match=r"\(1998 then, 2000 now\)\. 2 of its instances were removed: pass"):
        Explainer.load(index.folder, model, (x[:2000], y[:2000]), memory=MEMORY)


TEXTS, LONG = texts(600, seed=1), {"text": "rain snow the very wind and a cloud some frost is mild", "label": 0}


@pytest.mark.parametrize("kind", ["bert", "gpt2"])
@pytest.mark.parametrize(
    "more",
    [[{"text": "rain", "label": 0}] * 3, [LONG, *texts(20, 7)], texts(1, 77)],
    ids=["short", "long", "one"],
)
def test_added_texts_are_of_any_length(kind, more, tmp_path) -> None:
    torch.manual_seed(0)
    pair = BUILD[kind]().double().eval(), tokenizer()
    index = Index.build(pair, TEXTS, tmp_path / "index", memory=MEMORY)
    index.add(more)
    assert index.check(5).recall == 1.0
    grown, cases = TEXTS + more, [each["text"] for each in more[:2]]
    found = Explainer.load(tmp_path / "index", pair, grown, memory=MEMORY).explain(cases, 5)
    expected = Explainer(pair, grown, index=False).explain(cases, 5)
    assert found.top.indices.tolist() == expected.top.indices.tolist()
    torch.testing.assert_close(found.top.scores, expected.top.scores, rtol=1e-10, atol=1e-12)


def test_texts_are_added_in_turn_and_removed(tmp_path) -> None:
    torch.manual_seed(0)
    pair = BUILD["distilbert"]().double().eval(), tokenizer()
    index = Index.build(pair, TEXTS, tmp_path / "index", memory=MEMORY)
    index.add([LONG])
    assert index.relevance.workspace.train.largest[0] == 600
    index.remove([0, 5])
    index.add([{"text": "goal", "label": 1}])
    grown = [*TEXTS[1:5], *TEXTS[6:], LONG, {"text": "goal", "label": 1}]
    Index.open(tmp_path / "index", pair, grown, memory=MEMORY)
    assert index.check(5).recall == 1.0


def test_longer_texts_are_not_added_to_texts_of_one_length(tmp_path) -> None:
    torch.manual_seed(0)
    pair, same = (BUILD["distilbert"](), tokenizer()), [{**row, "text": "rain goal"} for row in TEXTS]
    index = Index.build(pair, same, tmp_path / "index", memory=MEMORY)
    with pytest.raises(InputError, match=r"differ in length.* Pass rows of the same shape"):
        index.add([same[0], LONG])


def test_a_set_without_the_rows_that_began_to_be_added_is_told_so(world, index, monkeypatch) -> None:
    model, (x, y), _ = world

    def killed(self, number: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(index_module.Workshop, "make", killed)
    with pytest.raises(KeyboardInterrupt):
        index.add((x[2000:2100], y[2000:2100]))
    monkeypatch.undo()
    with pytest.raises(StaleError, match=r"\(2100 then, 2000 now\)\. Some were added.* pass .* at its end\.$"):
        Index.build(model, (x[:2000], y[:2000]), index.folder, memory=MEMORY, rows=900)
    Index.build(model, (x[:2100], y[:2100]), index.folder, memory=MEMORY, rows=900)
    answers_of_a_pass(world, index.folder, torch.arange(2100))


def test_a_damaged_shard_is_made_again_alone_as_its_error_says(world, index) -> None:
    model, (x, y), _ = world
    train, shard = (x[:2000], y[:2000]), index.folder / "shards" / "000001.safetensors"
    content = shard.read_bytes()
    shard.write_bytes(content[:1000])
    with pytest.raises(
        FormatError, match=r"000001.* cannot be read: .* made again, .* by Index\.build\("
    ) as said:
        Explainer.load(index.folder, model, train, memory=MEMORY)
    assert "elsewhere" not in str(said.value)
    Counting.passed = 0
    Index.build(model, train, index.folder, memory=MEMORY)
    assert Counting.passed < 2000
    assert shard.read_bytes() == content

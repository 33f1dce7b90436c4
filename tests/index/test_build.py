"""An index in a folder: the same bytes however it is built, and the answers of a full pass."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.data import DataLoader

from precedents import Explainer, FormatError, Index, InputError, StaleError
from precedents.index import build as build_module
from precedents.index import shards as shards_module
from precedents.index.origin import vectors_told

from .worlds import Counting, Items

MEMORY = "100 MB"
ROWS = 500


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_folder_has_a_plan_a_basis_shards_and_an_index(built: Path) -> None:
    names = sorted(contents(built))
    shards = [f"shards/{number:06}.safetensors" for number in range(6)]
    assert names == ["basis.safetensors", "index.json", "plan.json", *shards]
    plan = json.loads((built / "plan.json").read_text())
    assert [each["stop"] for each in plan["shards"]] == [500, 1000, 1500, 2000, 2500, 2980]


@pytest.mark.parametrize("metric", ["cos_grad", "dot_grad", "l2_grad"])
def test_one_index_serves_three_similarities_with_the_answers_of_a_full_pass(world, built, metric) -> None:
    model, train, cases = world
    loaded = Explainer.load(built, model, train, metric=metric, memory=MEMORY)
    expected = Explainer(model, train, metric, index=False).explain(cases[:4], 10)
    found = loaded.explain(cases[:4], 10)
    assert found.top.indices.tolist() == expected.top.indices.tolist()
    torch.testing.assert_close(found.top.scores, expected.top.scores, rtol=1e-12, atol=1e-13)
    assert loaded.name == metric
    assert all(each.startswith("exact") for each in found.completeness)


def test_a_question_computes_few_rows(world, built) -> None:
    model, train, cases = world
    loaded = Explainer.load(built, model, train, memory=MEMORY)
    Counting.passed = 0
    loaded.explain(cases[0])
    assert Counting.passed < len(train[0]) / 2


def test_parts_make_the_bytes_of_one_build(world, built, tmp_path) -> None:
    model, train, _ = world
    for part in ("2/3", "3/3"):
        index = Index.build(model, train, tmp_path / "parts", memory=MEMORY, rows=ROWS, shard=part)
        assert not index.state.complete
    assert str(index) == "index of gradient: 2,980 rows in 6 shards, 4 of them made"
    with pytest.raises(InputError, match="not complete: 4 of 6 shards are there"):
        Explainer.load(tmp_path / "parts", model, train)
    assert Index.build(model, train, tmp_path / "parts", memory=MEMORY, shard="1/3").state.complete
    assert contents(tmp_path / "parts") == contents(built)


@pytest.mark.parametrize("what", ["cut", "flipped", "missing", "basis", "index"])
def test_what_is_damaged_is_made_again_and_nothing_else(what, world, built, tmp_path, monkeypatch) -> None:
    model, train, _ = world
    folder = shutil.copytree(built, tmp_path / "copy")
    shard = folder / "shards" / "000003.safetensors"
    if what == "cut":
        shard.write_bytes(shard.read_bytes()[:1000])
    elif what == "flipped":
        content = bytearray(shard.read_bytes())
        content[len(content) // 2] ^= 1
        shard.write_bytes(content)
    elif what == "missing":
        shard.unlink()
    else:
        (folder / {"basis": "basis.safetensors", "index": "index.json"}[what]).unlink()
    if what in ("cut", "flipped"):
        with pytest.raises(FormatError, match="000003"):
            Explainer.load(folder, model, train, memory=MEMORY)
    made = []
    put = shards_module.Workshop.put
    monkeypatch.setattr(
        shards_module.Workshop,
        "put",
        lambda self, number, *codes: made.append(number) or put(self, number, *codes),
    )
    Index.build(model, train, folder, memory=MEMORY).check(1)
    assert contents(folder) == contents(built)
    assert made == ([3] if what in ("cut", "flipped", "missing") else [])


def test_an_engine_makes_the_bytes_of_one_thread(tmp_path) -> None:
    torch.manual_seed(0)
    x, y = torch.randn(600, 5), torch.arange(600) % 2
    model = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    folders = tmp_path / "one", tmp_path / "other"
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        Index.build(model, (x, y), folders[0], memory=MEMORY, rows=100)
    finally:
        torch.set_num_threads(before)
    Index.build(model, (x, y), folders[1], engine="serial", memory=MEMORY, rows=100)
    assert contents(folders[0]) == contents(folders[1])
    assert torch.get_num_threads() == before


def test_of_two_that_begin_at_once_the_first_plan_holds(tmp_path, monkeypatch) -> None:
    torch.manual_seed(0)
    x, y = torch.randn(600, 5), torch.arange(600) % 2
    model = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    created, folder = build_module.create, tmp_path / "index"

    def late(path: Path, text: str) -> bool:
        monkeypatch.setattr(build_module, "create", created)
        Index.build(model, (x, y), folder, memory="200 MB", rows=100, shard="1/2")
        return created(path, text)

    monkeypatch.setattr(build_module, "create", late)
    assert Index.build(model, (x, y), folder, memory="300 MB", rows=100).state.complete
    assert json.loads((folder / "plan.json").read_text())["memory"] == 200 * 10**6
    assert Explainer.load(folder, model, (x, y)).explain(x[7], 1).top.indices.tolist() == [[7]]


class CountedReads(Items):
    """How often a row was read."""

    reads = 0

    def __getitem__(self, i: int) -> tuple[Tensor, int]:
        type(self).reads += 1
        return super().__getitem__(i)


@pytest.mark.parametrize("loaded", [False, True])
def test_a_dataset_that_is_read_anew_makes_the_same_codes_by_few_readings(
    loaded, world, built, tmp_path
) -> None:
    model, train, _ = world
    n, data = len(train[1]), CountedReads(*train)
    given = DataLoader(data, batch_size=64) if loaded else data
    CountedReads.reads = 0
    Index.build(model, given, tmp_path / "items", memory=MEMORY, rows=ROWS)
    assert contents(tmp_path / "items") == contents(built)
    seen = shards_module.KNOWN + n // 16 + 1000  # by which the model is known, and of the sample
    assert CountedReads.reads < 2 * n + seen
    CountedReads.reads = 0
    Explainer.load(tmp_path / "items", model, given, memory=MEMORY)
    assert CountedReads.reads < n + seen


@pytest.mark.parametrize("memory", ["60 MB", "1 GB"])
@pytest.mark.parametrize("rows", [426, 1490, 4096])  # 7 shards, 2, and 1
def test_the_answers_are_the_same_with_any_shards_and_any_budget(rows, memory, world, built, tmp_path) -> None:
    model, train, cases = world
    Index.build(model, train, tmp_path / "index", memory=memory, rows=rows)
    found = Explainer.load(tmp_path / "index", model, train, memory=memory).explain(cases[:6], 10)
    expected = Explainer.load(built, model, train, memory=MEMORY).explain(cases[:6], 10)
    assert found.top.indices.tolist() == expected.top.indices.tolist()
    torch.testing.assert_close(found.top.scores, expected.top.scores, rtol=1e-12, atol=1e-13)


def test_an_index_is_about_a_kilobyte_a_row(world, built) -> None:
    size = sum(path.stat().st_size for path in (built / "shards").iterdir())
    assert size < 1250 * len(world[1][0])


def test_check_says_how_good_it_is(world, built) -> None:
    model, train, cases = world
    index = Index.open(built, model, train, memory=MEMORY)
    found = index.check(cases[:8])
    assert found.recall == 1.0
    assert found.error < 1e-12
    assert sum(found.sure.values()) == 8
    assert 64 <= found.computed < 1000
    assert "recall at 10: 1.000 over 8 cases" in str(found)
    assert index.check(3, k=2).k == 2


def test_a_check_that_finds_wrong_rows_says_so(world, built) -> None:
    model, train, cases = world
    index = Index.open(built, model, train, memory=MEMORY)
    ((_, codes),) = index.relevance.workspace.cache.get(shards_module_slot(index))
    codes.kept.zero_()  # as if a disk had lied
    codes.left.zero_()
    codes.rest.zero_()
    assert index.check(cases[:8]).recall < 1


def shards_module_slot(index: Index):
    from precedents.index.recall import Recall

    return Recall(index.relevance).slot


def test_an_estimate_is_given_before_anything_is_built(world) -> None:
    model, train, _ = world
    found = Index.estimate(model, train, memory=MEMORY)
    assert 0 < found.seconds < 60
    assert found.disk < 2000 * len(train[0])


# Wrong use.


def test_a_folder_with_something_else_is_let_alone(world, tmp_path) -> None:
    model, train, _ = world
    (tmp_path / "thesis.tex").write_text("all of it")
    with pytest.raises(InputError, match="no index: nothing is written into it"):
        Index.build(model, train, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("part", ["0/3", "4/3", "half", "1"])
def test_a_part_that_is_none_is_refused(part, world, built) -> None:
    with pytest.raises(InputError, match="which of how many"):
        Index.build(*world[:2], built, memory=MEMORY, shard=part)


def test_rows_of_a_shard_other_than_planned_are_refused(world, built) -> None:
    model, train, _ = world
    with pytest.raises(InputError, match=r"was planned with 500 rows in a shard, not 400\. Leave rows out"):
        Index.build(model, train, built, memory=MEMORY, rows=400)
    assert Index.build(model, train, built, memory=MEMORY, rows=500).state.complete
    assert Index.build(model, train, built, memory=MEMORY).state.shards == 6


def test_any_rows_that_make_one_shard_of_a_set_are_the_same(tmp_path) -> None:
    x, y = torch.randn(300, 5), torch.arange(300) % 2
    model = torch.nn.Linear(5, 2)
    Index.build(model, (x, y), tmp_path / "one", memory=MEMORY)
    assert Index.build(model, (x, y), tmp_path / "one", memory=MEMORY, rows=1000).state.shards == 1


@pytest.mark.parametrize("row", [0, 301, 598])
def test_a_finished_index_refuses_changed_rows_when_it_is_built_again(row, tmp_path) -> None:
    x, y, model = torch.randn(600, 5), torch.arange(600) % 2, torch.nn.Linear(5, 2)
    Index.build(model, (x.clone(), y), tmp_path / "one", memory=MEMORY, rows=200)
    assert Index.build(model, (x.clone(), y), tmp_path / "one", memory=MEMORY).state.complete
    x[row] += 1
    with pytest.raises(StaleError, match="rows or labels of the training set"):
        Index.build(model, (x, y), tmp_path / "one", memory=MEMORY)


def test_less_memory_than_was_planned_is_refused(world, built) -> None:
    with pytest.raises(InputError, match=r"was planned for 95.4 MiB of memory, not 50 MB"):
        Index.build(*world[:2], built, memory="50 MB")


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        ("cos_x", "compared as they are"),
        ("cos_if", "The nearest that can be indexed is cosine:gradient/ekfac"),
        ("dot_fisher", "The nearest that can be indexed is dot:gradient/ekfac"),
    ],
)
def test_what_cannot_be_indexed_is_refused_with_what_can(metric, said, world, tmp_path) -> None:
    with pytest.raises(InputError, match=said):
        Index.build(*world[:2], tmp_path / "none", metric)
    assert not list(tmp_path.iterdir())


def test_a_small_training_set_is_refused(world, tmp_path) -> None:
    model, (x, y), _ = world
    with pytest.raises(InputError, match="keeps the whole vectors of a small set"):
        Index.build(model, (x[:100], y[:100]), tmp_path / "none")
    assert not list(tmp_path.iterdir())


def test_keywords_that_are_none_are_named(world, tmp_path) -> None:
    with pytest.raises(InputError, match="Did you mean 'memory'"):
        Index.build(*world[:2], tmp_path / "none", memry="1 GB")


def test_the_index_of_ekfac_gives_the_answers_of_a_full_pass(world, tmp_path) -> None:
    model, (x, y), cases = world
    train, metric = (x[:1500], y[:1500]), "cosine:gradient/ekfac"
    Index.build(model, train, tmp_path / "index", metric, memory=MEMORY)
    loaded = Explainer.load(tmp_path / "index", model, train, memory=MEMORY)
    expected = Explainer(model, train, metric, index=False).explain(cases[:4], 10)
    Counting.passed = 0
    found = loaded.explain(cases[:4], 10)
    assert Counting.passed < 1200  # and the matrix was not fitted again
    assert all(each.startswith("exact") for each in found.completeness)
    assert found.top.indices.tolist() == expected.top.indices.tolist()
    torch.testing.assert_close(found.top.scores, expected.top.scores, rtol=1e-9, atol=1e-12)
    with pytest.raises(InputError, match=r"the matrix of .* was fitted to all that are there"):
        Index.open(tmp_path / "index", model, train, memory=MEMORY).remove([3])


def test_a_hessian_that_is_ekfac_here_is_indexed_as_that(world, tmp_path) -> None:
    model, (x, y), cases = world
    train, metric = (x[:1000], y[:1000]), "dot:gradient/hessian(kind=ekfac)"
    index = Index.build(model, train, tmp_path / "index", metric, memory=MEMORY)
    assert index.check(cases[:4]).recall == 1.0


class Largest(TorchDispatchMode):
    """How many numbers the largest tensor has that is made meanwhile."""

    numbers = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        self.numbers = max(self.numbers, found.numel() if isinstance(found, Tensor) else 0)
        return found


def test_a_gradient_is_told_in_the_memory_of_one_gradient() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 4000), nn.ReLU(), nn.Linear(4000, 4))
    explainer = Explainer(model, (torch.randn(6, 64), torch.arange(6) % 4), index=False)
    size = sum(p.numel() for p in model.parameters())
    with Largest() as largest:
        told = vectors_told(explainer.relevance, [0])["vectors"][0]
    assert largest.numbers <= size
    gradient = next(explainer.relevance.vectors.rows(explainer.subject.train.selected([0])))[1].dense()
    assert told[-1] == size
    assert told[-2] == pytest.approx(float(gradient.norm()), rel=1e-5)

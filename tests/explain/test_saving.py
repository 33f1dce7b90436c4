import json
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import snapshot
import torch
from conftest import mlp, trained
from torch import nn

from precedents import (
    METRICS,
    BudgetError,
    Explainer,
    Explanation,
    FormatError,
    InputError,
    Kernel,
    Metric,
    StaleError,
    StoreError,
)
from precedents.explain import saving as store
from precedents.metrics.features.inputs import inputs
from precedents.metrics.preconditioners._inverse import Preconditioner
from precedents.metrics.preconditioners.identity import Unchanged
from precedents.metrics.similarities.dot import dot
from precedents.metrics.vectors import ROWS, Vectors
from precedents.runtime import budget as memory
from precedents.runtime.cost import Cost
from precedents.runtime.sealed import sealed

OTHERS = [
    "cosine:gradient/ekfac",
    "cosine:gradient/lanczos(rank=10)",
    "dot:gradient/fisher(kind=true)",
    "dot:gradient/fisher(kind=mean_gradient)",
    "cosine:gradient/hessian(kind=gauss_newton, damping=0.1)",
]


def same(a: Explanation, b: Explanation) -> bool:
    pairs = [(a.top.indices, b.top.indices), (a.top.scores, b.top.scores), (a.percentiles, b.percentiles)]
    return all(torch.equal(one, other) for one, other in pairs) and a.to_json() == b.to_json()


@pytest.fixture
def small_blocks(monkeypatch) -> None:
    """The training set comes in blocks of seven instances."""
    monkeypatch.setattr(memory, "MOST", 7)


@pytest.fixture
def saved(model, train, tmp_path) -> Path:
    Explainer(model, train, "dot_fisher", classes=["ant", "bee", "cat"]).save(tmp_path / "saved")
    return tmp_path / "saved"


@pytest.mark.parametrize("metric", [*METRICS, *OTHERS])
def test_a_loaded_explainer_gives_the_same_numbers(metric, model, train, cases, tmp_path, small_blocks) -> None:
    Explainer(model, train, metric).save(tmp_path / "saved")
    loaded, fresh = Explainer.load(tmp_path / "saved", model, train), Explainer(model, train, metric)
    assert same(loaded.explain(cases), fresh.explain(cases))
    assert torch.equal(loaded.scores(cases), fresh.scores(cases))
    assert loaded.relevance.inverse.description == fresh.relevance.inverse.description


class Words(nn.Module):
    """Layers whose gradients are kept as factors: a table of many words, and a wide layer after it."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.wide = nn.Embedding(400, 30), nn.Linear(30, 300)
        self.norm, self.head = nn.LayerNorm(300), nn.Linear(300, 3)

    def forward(self, tokens):
        return self.head(self.norm(self.wide(self.table(tokens).mean(dim=1)).relu()))


@pytest.mark.parametrize("metric", ["cos_grad", "dot_fisher", "cosine:gradient/ekfac"])
def test_gradients_that_are_factors_are_kept_as_factors(metric, tmp_path, small_blocks) -> None:
    model, tokens = Words(), torch.randint(400, (30, 6))
    train = tokens[:25], torch.arange(25) % 3
    explainer = Explainer(model, train, metric)
    vectors = Vectors.of(explainer.relevance.workspace, METRICS["cos_grad"].features)
    assert vectors.row_bytes // vectors.itemsize < 10_000 < sum(p.numel() for p in model.parameters())
    explainer.save(tmp_path / "saved")
    loaded = Explainer.load(tmp_path / "saved", model, train)
    assert same(loaded.explain(tokens), Explainer(model, train, metric).explain(tokens))
    size = sum(file.stat().st_size for file in (tmp_path / "saved").glob("*.safetensors"))
    assert abs(size - explainer.estimate().disk) < 0.2 * size


def test_what_does_not_fit_into_memory_is_kept_too(model, train, cases, tmp_path) -> None:
    calls = []

    def counted(model, batch):
        calls.extend(batch.indices)
        return inputs(model, batch)

    metric = Metric(counted, dot)
    explainer = Explainer(model, train, metric, memory=4000)
    assert explainer.relevance.workspace.room < 8 * 45 * 5
    explainer.save(tmp_path / "saved")
    calls.clear()
    loaded = Explainer.load(tmp_path / "saved", model, train, metric=metric, memory=4000)
    scores = [loaded.scores(cases[:1]) for _ in range(3)]
    assert calls == 9 * [0] + 3 * [0]  # one to know the size of vectors by, eight to know them by, and the case
    assert torch.equal(scores[0], cases[:1] @ train[0].T)


def test_a_metric_of_your_own_is_passed_again(model, train, tmp_path) -> None:
    def own(model, batch):
        return inputs(model, batch)

    Explainer(model, train, Metric(own, dot)).save(tmp_path / "saved")
    with pytest.raises(InputError, match="No feature map is named 'own'"):
        Explainer.load(tmp_path / "saved", model, train)


def test_saving_again_what_was_loaded_writes_the_same(saved, model, train, cases) -> None:
    before = {file.name: file.read_bytes() for file in saved.iterdir()}
    loaded = Explainer.load(saved, model, train)
    loaded.save(saved)
    assert {file.name: file.read_bytes() for file in saved.iterdir()} == before
    assert same(loaded.explain(cases), Explainer.load(saved, model, train).explain(cases))


def test_the_names_of_the_classes_come_back(saved, model, train) -> None:
    assert Explainer.load(saved, model, train).classes == ["ant", "bee", "cat"]
    assert Explainer.load(saved, model, train, classes=["a", "b", "c"]).classes == ["a", "b", "c"]


def test_nothing_of_the_user_is_touched(train, tmp_path) -> None:
    model = trained(mlp, train).train()
    before = snapshot.of(model)
    Explainer(model, train, "cos_if").save(tmp_path / "saved")
    Explainer.load(tmp_path / "saved", model, train).explain(train[0][0])
    assert snapshot.of(model) == before


@dataclass(frozen=True)
class Halved(Preconditioner):
    """A preconditioner of the user's own, whose inverse no file of ours can hold."""

    def fit(self, vectors):
        return Half()

    def cost(self, vectors, m):
        return Cost()


class Half(Unchanged):
    def kernels(self, question):
        return (replace(kernel, cross=kernel.cross / 2) for kernel in super().kernels(question))


def test_an_inverse_that_cannot_be_written_is_fitted_again(model, train, cases, tmp_path) -> None:
    metric = Metric(inputs, dot, Halved())
    Explainer(model, train, metric).save(tmp_path / "saved")
    loaded = Explainer.load(tmp_path / "saved", model, train, metric=metric)
    assert ROWS.at(inputs) in loaded.relevance.workspace.cache
    assert torch.equal(loaded.scores(cases), Explainer(model, train, "dot_x").scores(cases) / 2)


def test_a_metric_of_parts_of_ones_own_is_asked_for_when_it_is_read(model, train, tmp_path) -> None:
    Explainer(model, train, Metric(inputs, dot, Halved())).save(tmp_path / "saved")
    with pytest.raises(InputError, match=r"dot:inputs/Halved, has a part that no text names: .*metric="):
        Explainer.load(tmp_path / "saved", model, train)


def test_a_metric_that_would_be_read_as_another_is_not_saved(model, train, tmp_path) -> None:
    def cosine(kernel: Kernel) -> torch.Tensor:
        return kernel.cross

    with pytest.raises(InputError, match="cosine:inputs cannot be saved: its text is that of"):
        Explainer(model, train, Metric(inputs, cosine)).save(tmp_path / "saved")
    assert not (tmp_path / "saved").exists()


def test_there_is_no_pickle_in_the_folder(saved) -> None:
    names = sorted(file.name for file in saved.iterdir())
    assert names == [
        "0000.safetensors",
        "0001.safetensors",
        "index.json",
        "train.safetensors",
    ]


# What has changed.


def changed(model, train, what: str):
    """The model and the training set with one thing changed, and the text that names it."""
    x, y = train[0].clone(), train[1].clone()
    other = mlp().double().eval()
    other.load_state_dict(model.state_dict())
    if what == "weight":
        with torch.no_grad():
            other[2].weight[0, 0] += 1e-12
        return other, (x, y), r"the weights \(2.weight\)"
    if what == "weights":
        return trained(mlp, train, steps=2), (x, y), r"the weights \(0.weight and 5 more\)"
    if what == "architecture":
        other[1] = nn.ReLU()
        return other, (x, y), "the architecture of the model"
    if what == "label":
        y[[7, 9]] = (y[[7, 9]] + 1) % 3
        return other, (x, y), r"the labels of the training set \(2 of 45, the first at 7\)"
    if what == "row":
        x[11, 3] += 1e-9
        return other, (x, y), r"the rows of the training set \(1 of 45, the first at 11\)"
    if what == "order":
        order = torch.tensor([1, 0, *range(2, 45)])
        return (
            other,
            (x[order], y[order]),
            r"the labels .*\(2 of 45, the first at 0\); the rows .*\(2 of 45",
        )
    return other, (x[:-1], y[:-1]), r"the number of training instances \(45 then, 44 now\)"


@pytest.mark.parametrize("what", ["weight", "weights", "architecture", "label", "row", "order", "number"])
def test_what_has_changed_is_refused_and_named(what, saved, model, train) -> None:
    other, instances, named = changed(model, train, what)
    with pytest.raises(StaleError, match=rf"does not fit, for these differ: .*{named}.* Save it again"):
        Explainer.load(saved, other, instances)


@pytest.mark.parametrize("metric", ["cos_grad", "dot:gradient/fisher(damping=0.1)"])
def test_other_features_or_preconditioners_are_refused(metric, saved, model, train) -> None:
    with pytest.raises(StaleError, match=r"the metric \(gradient/fisher then, gradient.* now\)"):
        Explainer.load(saved, model, train, metric=metric)


def test_another_similarity_is_answered(saved, model, train, cases) -> None:
    loaded = Explainer.load(saved, model, train, metric="cos_fisher")
    assert same(
        loaded.explain(cases), Explainer(model, train, "cos_fisher", classes=loaded.classes).explain(cases)
    )


def test_the_same_metric_may_be_named(saved, model, train) -> None:
    Explainer.load(saved, model, train, metric="FK")


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ({"hidden": ["0"]}, r"the hidden layers \(0 then, what 4 receives now\)"),
        ({"vectorise": lambda x: 2 * x}, "the vectors of the inputs, so pass the same vectorise"),
    ],
)
def test_options_that_change_the_vectors_must_be_passed_again(option, said, model, train, tmp_path) -> None:
    metric = "cos_last" if "hidden" in option else "cos_x"
    Explainer(model, train, metric, **option).save(tmp_path / "saved")
    with pytest.raises(StaleError, match=said):
        Explainer.load(tmp_path / "saved", model, train)
    Explainer.load(tmp_path / "saved", model, train, **option)


# What is damaged.


def explained(folder: Path, model, train) -> None:
    Explainer.load(folder, model, train).explain(train[0][0])


FILES = ["0000.safetensors", "0001.safetensors", "train.safetensors"]


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_is_found(name, saved, model, train) -> None:
    file = saved / name
    content = bytearray(file.read_bytes())
    content[-3] ^= 1
    file.write_bytes(content)
    with pytest.raises(FormatError, match=rf"{name} is damaged: its checksum differs. Save it again"):
        explained(saved, model, train)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("kept", [0, 5, 100])
def test_a_truncated_file_is_found_at_once(name, kept, saved, model, train) -> None:
    file = saved / name
    size = file.stat().st_size
    file.write_bytes(file.read_bytes()[:kept])
    with pytest.raises(FormatError, match=rf"{name} has {kept} bytes instead of {size}. Save it again"):
        Explainer.load(saved, model, train)


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_found_at_once(name, saved, model, train) -> None:
    (saved / name).unlink()
    with pytest.raises(FormatError, match=rf"{name} is missing. Save it again"):
        Explainer.load(saved, model, train)


def rewritten(folder: Path, **changes: object) -> None:
    file = folder / "index.json"
    content = json.loads(file.read_text())
    content.pop("checksum")
    file.write_text(sealed(json.dumps(content | changes)))


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"format": 99}, "has the format 99 of version"),
        ({"version": "9.9"}, "of version 9.9; this is version"),
        ({"kept": 3}, "is damaged"),
        ({"files": []}, "is damaged"),
        ({"nonsense": 1}, "is damaged"),
        ({"inverse": {"value": {"class": ["os", "system"], "fields": {}}}}, "is no class of a stored value"),
        ({"inverse": {"value": {"class": ["precedents.gradients.nothing", "X"], "fields": {}}}}, "is damaged"),
        ({"inverse": {"value": {"call": []}}}, "'call' is no kind of value"),
    ],
)
def test_a_manifest_that_was_not_written_is_refused(changes, named, saved, model, train) -> None:
    rewritten(saved, **changes)
    with pytest.raises(FormatError, match=rf"{named}.*Save it again"):
        explained(saved, model, train)


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", "3"])
def test_a_manifest_that_is_none_is_refused(content, saved, model, train) -> None:
    (saved / "index.json").write_text(content)
    with pytest.raises(FormatError, match="is no manifest of an explainer"):
        Explainer.load(saved, model, train)


def test_a_folder_without_an_explainer_is_refused(tmp_path, model, train) -> None:
    with pytest.raises(InputError, match=r"has no saved explainer in it. Save one there: explainer.save\("):
        Explainer.load(tmp_path, model, train)
    with pytest.raises(InputError, match="is no folder"):
        Explainer.load(tmp_path / "nothing", model, train)


# Where it is kept.


def test_a_folder_with_something_else_is_not_overwritten(tmp_path, model, train) -> None:
    (tmp_path / "thesis.tex").write_text("all of it")
    with pytest.raises(InputError, match="no saved explainer: it is not overwritten"):
        Explainer(model, train).save(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_folder_that_cannot_be_made_is_refused(tmp_path, model, train) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"cannot be written: .* Name a folder that can be"):
        Explainer(model, train).save(tmp_path / "file" / "saved")


def test_a_disk_without_room_is_refused_before_anything_is_written(tmp_path, model, train, monkeypatch) -> None:
    monkeypatch.setattr(memory, "MOST", 7)
    monkeypatch.setattr(store, "disk_usage", lambda folder: type("Usage", (), {"free": 1000}))
    with pytest.raises(BudgetError, match=r"needs 32 KiB, but the disk has 0.977 KiB left"):
        Explainer(model, train).save(tmp_path / "saved")
    assert not list(tmp_path.iterdir())


def test_saving_that_breaks_off_leaves_what_was_there(saved, model, train, small_blocks) -> None:
    before = {file.name: file.read_bytes() for file in saved.iterdir()}

    def failing(model, batch):
        if 20 in batch.indices:
            raise KeyboardInterrupt
        return inputs(model, batch)

    with pytest.raises(KeyboardInterrupt):
        Explainer(model, train, Metric(failing, dot)).save(saved)
    assert {file.name: file.read_bytes() for file in saved.iterdir()} == before
    assert [file.name for file in saved.parent.iterdir()] == ["saved"]

"""A stale index is refused, by what has changed since it was built."""

from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
import torch
from hugging import BUILD, texts, tokenizer
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tokenizers import normalizers, processors
from torch import Tensor, nn

from precedents import Explainer, FormatError, Index, InputError, StaleError
from precedents.index.plan import PLAN, IndexPlan

from .worlds import Set

MEMORY = "100 MB"


class Scaled(nn.Module):
    """With a buffer, and an attribute that no state has."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = nn.Linear(6, 12), nn.Linear(12, 3)
        self.register_buffer("mean", torch.zeros(6))
        self.slope = 1.0

    def forward(self, x: Tensor) -> Tensor:
        return self.last((self.slope * self.first(x - self.mean)).tanh())


@pytest.fixture(scope="module")
def known(tmp_path_factory) -> tuple[nn.Module, Set, Path]:
    """A model, its training set and their index."""
    torch.manual_seed(0)
    model, train = Scaled(), (torch.randn(600, 6), torch.arange(600) % 3)
    folder = tmp_path_factory.mktemp("stale") / "index"
    Index.build(model, train, folder, memory=MEMORY, rows=250)
    return model, train, folder


def changed(model: nn.Module, train: Set, what: str) -> tuple[nn.Module, Set, str]:
    """With one thing changed, and the text that names it."""
    other, (x, y) = deepcopy(model), (train[0].clone(), train[1].clone())
    if what == "weight":
        other.last.weight.data[0, 0] += 1e-6
        return other, (x, y), r"the weights \(last.weight\)"
    if what == "buffer":
        other.mean += 0.1
        return other, (x, y), r"the weights \(mean\)"
    if what == "attribute":
        other.slope = 1.5
        return other, (x, y), r"an attribute \(slope: 1.0 then, 1.5 now\)"
    if what == "label":
        y[7] = (y[7] + 1) % 3
        return other, (x, y), r"the labels of the training set \(1 of 600, the first at 7\)"
    if what == "row":
        x[411, 2] += 1e-4
        return other, (x, y), r"the rows of the training set \(1 of 600, the first at 411\)"
    if what == "order":
        order = torch.tensor([*range(300), 303, *range(301, 303), 300, *range(304, 600)])
        return other, (x[order], y[order]), r"the rows of the training set \(2 of 600, the first at 300\)"
    return other, (x[:-1], y[:-1]), r"the number of training instances \(600 then, 599 now\)"


WHAT = ["weight", "buffer", "attribute", "label", "row", "order", "number"]


@pytest.mark.parametrize("what", WHAT)
def test_what_has_changed_is_refused_and_named(what, known) -> None:
    model, train, folder = known
    other, instances, said = changed(model, train, what)
    with pytest.raises(StaleError, match=rf"does not fit, for these differ: .*{said}.* Build it again"):
        Explainer.load(folder, other, instances, memory=MEMORY)
    Explainer.load(folder, model, train, memory=MEMORY)


@pytest.mark.parametrize("what", ["weight", "buffer", "attribute", "label", "row", "order", "number"])
def test_a_build_does_not_go_on_with_what_has_changed(what, known, tmp_path) -> None:
    model, train, _ = known
    Index.build(model, train, tmp_path / "index", memory=MEMORY, rows=250, shard="1/3")
    other, instances, _ = changed(model, train, what)
    with pytest.raises(StaleError, match="does not fit"):
        Index.build(other, instances, tmp_path / "index", memory=MEMORY)
    assert len(list((tmp_path / "index" / "shards").iterdir())) < 3


@pytest.mark.parametrize("metric", ["cosine:gradient/ekfac", "cos_last"])
def test_other_features_and_another_preconditioner_are_refused(metric, known) -> None:
    model, train, folder = known
    with pytest.raises(StaleError, match=r"the metric \(gradient then, .* now\)"):
        Explainer.load(folder, model, train, metric=metric, memory=MEMORY)


def test_another_damping_is_refused(known, tmp_path) -> None:
    model, train, _ = known
    Index.build(model, train, tmp_path / "index", "cosine:gradient/ekfac", memory=MEMORY)
    with pytest.raises(
        StaleError, match=r"the metric \(gradient/ekfac then, gradient/ekfac\(damping=0.1\) now"
    ):
        Explainer.load(
            tmp_path / "index", model, train, metric="cosine:gradient/ekfac(damping=0.1)", memory=MEMORY
        )


def test_another_loss_is_refused(known) -> None:
    model, train, folder = known
    with pytest.raises(StaleError, match="the architecture of the model or its loss"):
        Explainer.load(folder, model, train, loss=nn.CrossEntropyLoss(label_smoothing=0.1), memory=MEMORY)


def test_other_hidden_layers_are_refused(known, tmp_path) -> None:
    model, train, _ = known
    Index.build(model, train, tmp_path / "index", "cos_last", memory=MEMORY, hidden=["first"])
    with pytest.raises(StaleError, match=r"the hidden layers \(first then, last now\)"):
        Explainer.load(tmp_path / "index", model, train, memory=MEMORY, hidden=["last"])
    Explainer.load(tmp_path / "index", model, train, memory=MEMORY, hidden=["first"])


def of_width_six() -> tuple[nn.Module, Set]:
    """A model with two hidden layers that are equal for quiet rows, of which the first is one."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 40), nn.Hardtanh(), nn.Linear(40, 3))
    with torch.no_grad():
        model[0].weight *= 3
        model[0].bias *= 0.3
    x, y = torch.randn(600, 6), torch.arange(600) % 3
    x[0] = 0.01
    return model, (x, y)


@pytest.mark.parametrize("kept", ["index", "vectors"])
def test_other_hidden_layers_are_named_where_an_instance_has_the_same_in_both(kept, tmp_path) -> None:
    model, train = of_width_six()
    if kept == "index":
        Index.build(model, train, tmp_path / "h", "cos_last", hidden=["0"], memory=MEMORY)
    else:
        Explainer(model, train, "cos_last", hidden=["0"]).save(tmp_path / "h")
    with pytest.raises(StaleError, match=r"the hidden layers \(0 then, 1 now\)"):
        Explainer.load(tmp_path / "h", model, train, hidden=["1"], memory=MEMORY)
    Explainer.load(tmp_path / "h", model, train, hidden=["0"], memory=MEMORY)


@pytest.mark.parametrize("kept", ["index", "vectors"])
def test_hidden_layers_are_not_asked_of_gradients(kept, known, tmp_path) -> None:
    model, train, _ = known
    if kept == "index":
        Index.build(model, train, tmp_path / "h", memory=MEMORY)
    else:
        Explainer(model, train).save(tmp_path / "h")
    Explainer.load(tmp_path / "h", model, train, hidden=["last"], memory=MEMORY)


class Stopping(nn.Module):
    """Its gradients stop where a tensor says so, which is no plain value; its logits are the same."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = nn.Linear(6, 12, bias=False), nn.Linear(12, 3, bias=False)
        self.stops = torch.tensor(0)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.relu(self.first(x))
        return self.last(h.detach() + 0 * h if self.stops else h)


@pytest.mark.parametrize("kept", ["index", "vectors"])
@pytest.mark.parametrize("blank", [range(1), range(0, 600, 2)], ids=["the first", "every second"])
def test_other_gradients_are_refused_although_some_rows_have_none(kept, blank, tmp_path) -> None:
    model, x, y = Stopping(), torch.randn(600, 6), torch.arange(600) % 3
    x[list(blank)] = 0
    if kept == "index":
        Index.build(model, (x, y), tmp_path / "g", memory=MEMORY)
    else:
        Explainer(model, (x, y)).save(tmp_path / "g")
    Explainer.load(tmp_path / "g", model, (x, y), memory=MEMORY)
    model.stops = torch.tensor(1)
    with pytest.raises(StaleError, match="the gradients of the training set, so forward or what it uses"):
        Explainer.load(tmp_path / "g", model, (x, y), memory=MEMORY)


@pytest.mark.parametrize("kept", ["index", "vectors"])
def test_an_attribute_that_moves_logits_by_less_than_rounding_may_is_named(kept, told, tmp_path) -> None:
    model, folder = told
    if kept == "vectors":
        folder = tmp_path / "saved"
        Explainer((model, tokenizer()), TEXTS).save(folder)
    other = deepcopy(model)
    other.distilbert.transformer.layer[0].attention.scaling *= 1.0000001
    said = r"an attribute \(.*layer.0.attention.scaling: 0.3535533905932738 then, 0.3535534259486\d+ now\)"
    with pytest.raises(StaleError, match=said):
        Explainer.load(folder, (other, tokenizer()), TEXTS, memory=MEMORY)
    other.distilbert.transformer.layer[0].attention.scaling = 0.3535533905932738
    other.distilbert.gradient_checkpointing = True
    other.name_or_path = other.note = "elsewhere"
    Explainer.load(folder, (other, tokenizer()), TEXTS, memory=MEMORY)


TEXTS = texts(420, seed=1)


@pytest.fixture(scope="module")
def told(tmp_path_factory) -> tuple[nn.Module, Path]:
    """A transformer that reads texts by a tokenizer, and its index."""
    torch.manual_seed(0)
    model, folder = BUILD["distilbert"](), tmp_path_factory.mktemp("told") / "index"
    Index.build((model, tokenizer()), TEXTS, folder, memory=MEMORY, rows=250)
    return model, folder


def other_tokenizer(what: str):
    """One that reads some texts otherwise."""
    if what == "the special tokens":
        found = tokenizer()
        found.backend_tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A", pair="[CLS] $A $B:1", special_tokens=[("[CLS]", 2)]
        )
        return found
    found = tokenizer()
    found.backend_tokenizer.normalizer = normalizers.Replace("rain", "snow")
    return found


@pytest.mark.parametrize("what", ["the special tokens", "one word"])
def test_another_tokenizer_is_refused_and_named(what, told) -> None:
    model, folder = told
    other = other_tokenizer(what)
    changed = [row["text"] for row in TEXTS if what == "the special tokens" or "rain" in row["text"].split()]
    said = rf"the rows of the training set \({len(changed)} of 420, .*\) or the tokenizer, which makes them"
    assert len(changed) > 0
    with pytest.raises(StaleError, match=said):
        Explainer.load(folder, (model, other), TEXTS, memory=MEMORY)
    with pytest.raises(StaleError, match=r"rows or labels of the training .* or the tokenizer, which makes"):
        Index.build((model, other), TEXTS, folder, memory=MEMORY)
    Explainer.load(folder, (model, tokenizer()), TEXTS, memory=MEMORY)


def fitted_on_texts(*between: Any):
    """A pipeline of scikit-learn that reads texts by a vectorizer."""
    x, y = [row["text"] for row in TEXTS], [row["label"] for row in TEXTS]
    classifier = MLPClassifier((6,), tol=1, n_iter_no_change=2, random_state=0)
    return make_pipeline(TfidfVectorizer(), *between, classifier).fit(x, y), (x, y)


def test_another_vectorizer_of_texts_is_refused_and_named(tmp_path) -> None:
    pipeline, train = fitted_on_texts(TruncatedSVD(8, random_state=0))
    Index.build(pipeline, train, tmp_path / "index", memory=MEMORY)
    Explainer.load(tmp_path / "index", pipeline, train, memory=MEMORY)
    pipeline[0].idf_ = pipeline[0].idf_ * 1.5 ** (pipeline[0].get_feature_names_out() == "rain")
    said = r"the rows of the training set .* or TfidfVectorizer or TruncatedSVD, which makes them"
    with pytest.raises(StaleError, match=said):
        Explainer.load(tmp_path / "index", pipeline, train, memory=MEMORY)


def test_another_vectorizer_of_sparse_texts_is_refused_and_named(tmp_path) -> None:
    pipeline, train = fitted_on_texts()
    with pytest.raises(InputError, match="Gradients by sparse inputs are compared as they are"):
        Index.build(pipeline, train, tmp_path / "index", memory=MEMORY)
    Explainer(pipeline, train, memory=MEMORY).save(tmp_path / "saved")
    Explainer.load(tmp_path / "saved", pipeline, train, memory=MEMORY)
    pipeline[0].idf_ = pipeline[0].idf_ * 1.5 ** (pipeline[0].get_feature_names_out() == "rain")
    with pytest.raises(
        StaleError, match=r"the rows of the training set .* or TfidfVectorizer, which makes them"
    ):
        Explainer.load(tmp_path / "saved", pipeline, train, memory=MEMORY)


def test_another_scaler_is_refused_and_named(tmp_path) -> None:
    x = torch.randn(400, 5, generator=torch.Generator().manual_seed(0)).numpy()
    y = (x[:, 0] > 0) * 1
    classifier = MLPClassifier((6,), tol=1, n_iter_no_change=2, random_state=0)
    pipeline = make_pipeline(StandardScaler(), classifier).fit(x, y)
    Index.build(pipeline, (x, y), tmp_path / "index", memory=MEMORY)
    pipeline[0].mean_ = pipeline[0].mean_ + 0.5
    with pytest.raises(StaleError, match=r"rows of the training set .* or StandardScaler, which makes them"):
        Explainer.load(tmp_path / "index", pipeline, (x, y), memory=MEMORY)


def test_what_is_not_prepared_is_not_said_to_be(known) -> None:
    model, (x, y), folder = known
    with pytest.raises(StaleError) as raised:
        Explainer.load(folder, model, (x + 1, y), memory=MEMORY)
    assert "which makes them" not in str(raised.value)


@pytest.mark.parametrize("what", WHAT[:3])
def test_a_complete_index_is_not_taken_for_one_of_another_model(what, known) -> None:
    model, train, folder = known
    other, instances, said = changed(model, train, what)
    with pytest.raises(StaleError, match=rf"does not fit, for these differ: .*{said}"):
        Index.build(other, instances, folder, memory=MEMORY)


def test_a_training_set_that_has_grown_is_told_how_to_add_the_new_ones(known) -> None:
    model, (x, y), folder = known
    grown = torch.cat([x, x[:50] + 1]), torch.cat([y, y[:50]])
    said = r"\(600 then, 650 now\)\. If the new .* add them: Index\.extend\(.*index\.add\(rows\)"
    with pytest.raises(StaleError, match=said):
        Explainer.load(folder, model, grown, memory=MEMORY)
    with pytest.raises(StaleError, match=said):
        Index.build(model, grown, folder, memory=MEMORY)


def test_what_was_saved_by_an_earlier_version_is_refused_in_one_line(known, tmp_path) -> None:
    model, train, _ = known
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "explainer.json").write_text('{"format": 3}')
    with pytest.raises(FormatError, match="saved by an earlier version, in another format"):
        Explainer.load(tmp_path / "old", model, train)


def test_an_index_of_an_earlier_format_is_refused_in_one_line(known, tmp_path) -> None:
    model, train, built = known
    folder = copytree(built, tmp_path / "i")
    replace(IndexPlan.read(folder / PLAN), format=1).write(folder / PLAN)
    for use in (Explainer.load, Index.open):
        with pytest.raises(
            FormatError, match=r"has the format 1 of version .*, which reads its own format 3\."
        ):
            use(folder, model, train)
    with pytest.raises(FormatError, match=r"format 3\. Build it again"):
        Index.build(model, train, folder)

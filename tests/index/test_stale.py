"""A stale index is refused, by what has changed since it was built."""

from copy import deepcopy
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from precedents import Explainer, FormatError, Index, StaleError

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
        return other, (x, y), "the logits of the model"
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
    with pytest.raises(StaleError, match="pass the same hidden"):
        Explainer.load(tmp_path / "index", model, train, memory=MEMORY, hidden=["last"])
    Explainer.load(tmp_path / "index", model, train, memory=MEMORY, hidden=["first"])


def test_another_vectorizer_is_refused(tmp_path) -> None:
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rng = torch.Generator().manual_seed(0)
    x = torch.randn(400, 5, generator=rng).numpy()
    y = (x[:, 0] > 0) * 1
    pipeline = make_pipeline(
        StandardScaler(), MLPClassifier((6,), tol=1, n_iter_no_change=2, random_state=0)
    ).fit(x, y)
    Index.build(pipeline, (x, y), tmp_path / "index", memory=MEMORY)
    pipeline[0].mean_ = pipeline[0].mean_ + 0.5
    with pytest.raises(StaleError, match="the rows of the training set"):
        Explainer.load(tmp_path / "index", pipeline, (x, y), memory=MEMORY)


def test_what_was_saved_by_an_earlier_version_is_refused_in_one_line(known, tmp_path) -> None:
    model, train, _ = known
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "explainer.json").write_text('{"format": 3}')
    with pytest.raises(FormatError, match="saved by an earlier version, in another format"):
        Explainer.load(tmp_path / "old", model, train)

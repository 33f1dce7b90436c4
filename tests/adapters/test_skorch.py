"""Nets of skorch: explained by their module, with their own loss, alone and at the end of pipelines."""

import numpy as np
import pandas as pd
import pytest
import torch
from plain import cosines
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skorch import NeuralNetBinaryClassifier, NeuralNetClassifier, NeuralNetRegressor
from skorch.dataset import Dataset
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, nll_loss

import precedents as pr

X = np.random.RandomState(0).randn(40, 5).astype("float32")
Y = (X[:, 0] > 0).astype("int64") + (X[:, 1] > 0.5)
EPS = torch.finfo(torch.float32).eps
WEIGHTS = torch.tensor([1.0, 2.0, 3.0])
NAMES = ["low", "middle", "high"]


class Logits(nn.Module):
    """A perceptron."""

    def __init__(self, outputs: int = 3) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(5, 8), nn.Linear(8, outputs)

    def forward(self, X: Tensor) -> Tensor:  # noqa: N803  as skorch calls it
        return self.head(self.body(X).tanh())


class Probabilities(Logits):
    """As skorch's default loss takes them."""

    def forward(self, X: Tensor) -> Tensor:  # noqa: N803
        return super().forward(X).softmax(dim=-1)


class OneLogit(Logits):
    """For two classes."""

    def __init__(self) -> None:
        super().__init__(1)

    def forward(self, X: Tensor) -> Tensor:  # noqa: N803
        return super().forward(X).squeeze(-1)


def fitted(module=Probabilities, kind=NeuralNetClassifier, x=X, y=Y, **options):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return kind(module, max_epochs=3, lr=0.1, verbose=0, train_split=None, **options).fit(x, y)


def of_probabilities(output: Tensor, label: Tensor) -> Tensor:
    return nll_loss((output + EPS).log(), label, reduction="none")


KINDS = {
    "softmax and NLLLoss": (lambda: fitted(), of_probabilities, Y),
    "NLLLoss with weights": (
        lambda: fitted(criterion__weight=WEIGHTS),
        lambda p, y: nll_loss((p + EPS).log(), y, WEIGHTS, reduction="none"),
        Y,
    ),
    "CrossEntropyLoss": (lambda: fitted(Logits, criterion=nn.CrossEntropyLoss), cross_entropy, Y),
    "smoothed": (
        lambda: fitted(Logits, criterion=nn.CrossEntropyLoss, criterion__label_smoothing=0.1),
        nn.CrossEntropyLoss(label_smoothing=0.1),
        Y,
    ),
    "binary": (
        lambda: fitted(OneLogit, NeuralNetBinaryClassifier, y=(Y > 0).astype("float32")),
        binary_cross_entropy_with_logits,
        (Y > 0).astype("float32"),
    ),
    "compiled": (lambda: fitted(compile=True, compile__backend="eager"), of_probabilities, Y),
    "search": (lambda: GridSearchCV(fitted(), {"lr": [0.1]}, cv=2).fit(X, Y), of_probabilities, Y),
}


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")  # torch.compile's own, in fit
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_those_of_plain_autograd_with_the_nets_own_loss(kind) -> None:
    make, loss, y = KINDS[kind]
    net = make()
    explainer = pr.Explainer(net, (X, y))
    inner = getattr(net, "best_estimator_", net).module_
    wanted = cosines(getattr(inner, "_orig_mod", inner), torch.tensor(X), torch.tensor(y), loss)
    found = explainer.scores(X[:5], labels=y[:5].astype(int))
    torch.testing.assert_close(found, wanted[:5], rtol=0, atol=1e-6)
    assert explainer.subject.classifier.predicted(explainer.subject.train).tolist() == net.predict(X).tolist()


def test_a_net_is_printed_drawn_exported_saved_and_audited(tmp_path) -> None:
    net = fitted(classes=NAMES)
    words = [NAMES[label] for label in Y]
    explainer = pr.Explainer(net, (X, words))
    explanation = explainer.explain(X[0], k=2, labels="high")
    assert "high" in str(explanation)
    assert explanation.to_json()
    assert len(explanation.to_frame()) == 2
    explanation.plot()
    explainer.save(tmp_path / "kept")
    again = pr.Explainer.load(tmp_path / "kept", net, (X, words))
    assert torch.equal(again.scores(X[:3]), explainer.scores(X[:3]))
    with pytest.raises(pr.StaleError):
        pr.Explainer.load(tmp_path / "kept", fitted(y=2 - Y, classes=NAMES), (X, words))
    audit = pr.audit(net, (X, words), (X[:6], words[:6]), metrics=["cos_grad", "cos_last"])
    assert audit.recommendation is not None
    assert pr.Explainer(net, (X, words), hidden=["body"]).scores(X[0]).shape == (1, 40)


def test_a_net_stays_what_it_was() -> None:
    net = fitted()
    net.module_.train()
    before = {name: value.clone() for name, value in net.module_.state_dict().items()}
    pr.Explainer(net, (X, Y)).explain(X[0])
    assert net.module_.training
    assert all(torch.equal(before[name], value) for name, value in net.module_.state_dict().items())


def test_a_pipeline_that_ends_in_a_net_explains_rows_as_they_are_given() -> None:
    frame = pd.DataFrame(X, columns=list("abcde"))
    pipeline = make_pipeline(StandardScaler().set_output(transform="default"), fitted()).fit(frame, Y)
    explainer = pr.Explainer(pipeline, (frame, Y))
    scaled = pipeline[:-1].transform(frame)
    wanted = pr.Explainer(pipeline[-1], (scaled, Y)).scores(scaled[:4])
    torch.testing.assert_close(explainer.scores(frame[:4]), wanted, rtol=0, atol=1e-6)
    assert "a " in str(explainer.explain(frame[:1], k=1))


def test_a_class_that_cannot_be_pickled_is_explained_and_a_net_may_be_fitted_again() -> None:
    class Local(Probabilities):
        """As in a notebook's cell."""

    net = fitted(Local)
    pipeline = make_pipeline(StandardScaler(), net).fit(X, Y)
    explainers = pr.Explainer(net, (X, Y)), pr.Explainer(pipeline, (X, Y))
    before = [each.scores(X[0]) for each in explainers]
    net.fit(X, 2 - Y)
    assert all(torch.equal(each.scores(X[0]), own) for each, own in zip(explainers, before, strict=True))


class Columns(nn.Module):
    """Takes columns by name, as skorch feeds a frame."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(2, 3)

    def forward(self, u: Tensor, v: Tensor) -> Tensor:
        return self.head(torch.cat([u, v], dim=1)).softmax(dim=1)


@pytest.mark.filterwarnings("ignore:Creating a tensor from a list of numpy:UserWarning")
def test_frames_dicts_and_datasets_are_fed_as_skorch_feeds_them() -> None:
    frame, columns = pd.DataFrame({"u": X[:, 0], "v": X[:, 1]}), {"u": X[:, :1], "v": X[:, 1:2]}
    net = fitted(Columns, x=columns)
    wanted = pr.Explainer(net, (columns, Y)).scores({"u": X[0, :1], "v": X[0, 1:2]})
    framed = pr.Explainer(net, (frame, Y))
    assert torch.equal(framed.scores(frame[:1]), wanted)
    assert torch.equal(framed.scores(frame.iloc[0]), wanted)
    assert "u " in str(framed.explain(frame[:1], k=1))
    plain = fitted()
    assert torch.equal(
        pr.Explainer(plain, Dataset(X, Y)).scores(X[0]), pr.Explainer(plain, (X, Y)).scores(X[0])
    )


class OwnLoss(NeuralNetClassifier):
    """With a penalty."""

    def get_loss(self, *args, **kwargs):
        return super().get_loss(*args, **kwargs) + sum(p.abs().sum() for p in self.module_.parameters())


class OwnInfer(NeuralNetClassifier):
    """Feeds its module something else."""

    def infer(self, x, **fit_params):
        return super().infer(-3 * x, **fit_params)


REFUSED = {
    "is not fitted. Call net.fit": lambda: NeuralNetClassifier(Probabilities),
    "predicts numbers": lambda: fitted(OneLogit, NeuralNetRegressor, y=X[:, :1].copy()),
    "get_loss of its own.*loss=": lambda: fitted(kind=OwnLoss),
    "an infer or a predict_nonlinearity of its own": lambda: fitted(kind=OwnInfer),
    "another threshold": lambda: fitted(
        OneLogit, NeuralNetBinaryClassifier, y=(Y > 0).astype("float32"), threshold=0.3
    ),
    "do not sum to 1. End the module with a softmax": lambda: fitted(Logits),
}


@pytest.mark.filterwarnings("ignore:Using a target size:UserWarning")
@pytest.mark.parametrize("words", REFUSED)
def test_what_cannot_be_explained_is_refused_with_the_reason(words) -> None:
    with pytest.raises(pr.InputError, match=words):
        pr.Explainer(REFUSED[words](), (X, Y))


def test_an_unfitted_net_in_a_pipeline_and_names_without_a_net_of_names_are_refused() -> None:
    with pytest.raises(pr.InputError, match="NeuralNetClassifier is not fitted"):
        pr.Explainer(make_pipeline(StandardScaler(), NeuralNetClassifier(Probabilities)), (X, Y))
    with pytest.raises(pr.InputError, match=r"'middle'.*numbers: encode y"):
        pr.Explainer(fitted(), (X, [NAMES[label] for label in Y]))
    assert pr.Explainer(fitted(), (X, [NAMES[label] for label in Y]), classes=NAMES).classes == NAMES


def test_labels_beside_the_training_set_are_told_from_a_metric() -> None:
    with pytest.raises(pr.InputError, match=r"metric is a ndarray.*Explainer\(model, \(X, y\)\)"):
        pr.Explainer(fitted(), X, Y)


def test_a_loss_that_is_said_comes_before_the_nets_own() -> None:
    net = fitted(kind=OwnLoss)
    loss = pr.Explainer(net, (X, Y), loss=lambda p, y: -p.log()[torch.arange(len(y)), y]).scores(X[0])
    torch.testing.assert_close(loss, pr.Explainer(net.module_, (X, Y), loss=of_probabilities).scores(X[0]))

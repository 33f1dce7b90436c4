"""Votes, stacks and calibrations of explained models are one module; others are refused, with what to type."""

import re

import numpy as np
import oracle
import pytest
import sklearn.pipeline
import torch
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier, StackingClassifier, VotingClassifier
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC

import precedents as pr
from precedents import Explainer, InputError
from precedents.runtime.sparse import SparseRows

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

WINE = load_wine()
X = StandardScaler().fit_transform(WINE.data)[::4, :5]  # 45 rows
Y = np.array(["barolo", "grignolino", "barbera"])[WINE.target[::4]]
TWO = Y != "barbera"
LINEAR = ("linear", LogisticRegression())
PARTS = [LINEAR, ("network", MLPClassifier((3,), max_iter=30, random_state=0))]
TREES = ("trees", RandomForestClassifier(3, random_state=0))
PIPED = ("piped", make_pipeline(StandardScaler(), LogisticRegression()))
OTHER = ("other", make_pipeline(PCA(2), MinMaxScaler(), LogisticRegression()))
UNNAMED = ("unnamed", make_pipeline(FunctionTransformer(lambda x: 2 * x), LogisticRegression()))

EXACT = {
    "vote": lambda: VotingClassifier(PARTS, voting="soft"),
    "weighted vote": lambda: VotingClassifier([*PARTS, ("none", "drop")], voting="soft", weights=[3, 1, 7]),
    "stack": lambda: StackingClassifier(PARTS, cv=2),
    "stack with the rows": lambda: StackingClassifier(PARTS, cv=2, passthrough=True),
    "in a pipeline": lambda: make_pipeline(StandardScaler(), VotingClassifier(PARTS, voting="soft")),
    "vote of pipelines": lambda: VotingClassifier([PIPED, OTHER, *PARTS], voting="soft", weights=[1, 2, 1, 1]),
    "vote of equal pipelines": lambda: VotingClassifier([PIPED, ("same", PIPED[1])], voting="soft"),
    "vote of functions": lambda: VotingClassifier([UNNAMED, ("other", UNNAMED[1])], voting="soft"),
    "stack of pipelines": lambda: StackingClassifier([PIPED, OTHER], cv=2),
    "stack of pipelines with the rows": lambda: StackingClassifier([PIPED, OTHER], cv=2, passthrough=True),
    "sigmoids": lambda: CalibratedClassifierCV(LogisticRegression(), cv=2),
    "sigmoids of one": lambda: CalibratedClassifierCV(LogisticRegression(), cv=2, ensemble=False),
    "sigmoids of probabilities": lambda: CalibratedClassifierCV(PARTS[1][1], cv=2),
    "sigmoids of a frozen model": lambda: CalibratedClassifierCV(FrozenEstimator(LogisticRegression()), cv=2),
    "sigmoids of a support vector machine": lambda: CalibratedClassifierCV(LinearSVC(), cv=2),
    "sigmoids of a ridge": lambda: CalibratedClassifierCV(RidgeClassifier(), cv=2),
    "sigmoids of pipelines": lambda: CalibratedClassifierCV(PIPED[1], cv=2),
    "temperature": lambda: CalibratedClassifierCV(LogisticRegression(), cv=2, method="temperature"),
    "temperature of probabilities": lambda: CalibratedClassifierCV(PARTS[1][1], cv=2, method="temperature"),
    "calibrated in a vote": lambda: make_pipeline(
        StandardScaler(),
        VotingClassifier([("sure", CalibratedClassifierCV(OTHER[1], cv=2)), PIPED], voting="soft"),
    ),
}


@pytest.mark.parametrize("rows", [slice(None), TWO], ids=["three classes", "two classes"])
@pytest.mark.parametrize("kind", EXACT)
def test_an_ensemble_is_explained_by_all_of_its_parameters(kind, rows) -> None:
    x, y = X[rows], Y[rows]
    model = EXACT[kind]()
    if "frozen" in kind:
        model.estimator.estimator.fit(x, y)
    model.fit(x, y)
    explainer = Explainer(model, (x, y))
    explanation = explainer.explain(x[:6], k=2)
    assert [explanation.name(i) for i in explanation.predictions.tolist()] == model.predict(x[:6]).tolist()
    module, fed = explainer.subject.adapter.module, explainer.subject.train.take(range(len(x)))
    probabilities = module(fed.inputs).softmax(dim=1).detach().numpy()
    np.testing.assert_allclose(probabilities, model.predict_proba(x), rtol=0, atol=1e-12)
    gradients = [oracle.gradient(module, *pair) for pair in zip(fed.inputs, fed.labels.tolist(), strict=True)]
    case = oracle.gradient(module, fed.inputs[3], int(explanation.predictions[3]))
    expected = [oracle.cosine(case, gradient) for gradient in gradients]
    np.testing.assert_allclose(explainer.scores(x[3])[0].numpy(), expected, rtol=0, atol=1e-6)


def test_sparse_rows_of_an_ensemble_score_as_dense_ones() -> None:
    rows = sparse.random(len(Y), 200, 0.03, format="csr", random_state=0)
    for kind in ("vote", "stack", "stack with the rows"):
        model = EXACT[kind]().fit(rows, Y)
        found = Explainer(model, (rows, Y)).scores(rows[:3])
        dense = Explainer(model, (rows.toarray(), Y)).scores(rows[:3].toarray())
        assert torch.allclose(found, dense, rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", ["vote", "vote of pipelines", "stack of pipelines", "sigmoids", "temperature"])
def test_an_ensemble_is_audited(kind) -> None:
    model = EXACT[kind]().fit(X, Y)
    found = pr.audit(model, (X, Y), (X[:8], Y[:8]), metrics=["gc"], criteria=["identical_class"])
    assert "cos_grad" in str(found)
    explanation = Explainer(model, (X, Y)).explain(X[:2], k=2)
    assert "because of" in str(explanation)
    assert "Precedents by cos_grad" in explanation.to_html()
    assert len(explanation.plot().axes) == 6
    assert len(explanation.to_frame()) == 4


def test_pipelines_of_texts_in_a_vote_stay_sparse_and_equal_ones_are_done_once() -> None:
    texts = [f"{'good' if i % 2 else 'bad'} wine of {1990 + i % 5}" for i in range(16)]
    labels = ["bad", "good"] * 8
    words = make_pipeline(TfidfVectorizer(), LogisticRegression())
    counts = make_pipeline(CountVectorizer(), LogisticRegression())
    for parts, width in (([words, words], 9), ([words, counts], 18)):
        model = VotingClassifier([(str(i), part) for i, part in enumerate(parts)], voting="soft").fit(
            texts, labels
        )
        explainer = Explainer(model, (texts, labels))
        assert isinstance(explainer.subject.train.first, SparseRows)
        assert explainer.subject.train.first.shape[-1] == width
        assert explainer.explain("a good one", k=1).precedents()[0].agrees
        assert "does not know any word of it" in str(explainer.explain("qwxyz", k=1))


REFUSED = {
    "hard": (VotingClassifier(PARTS), "counts votes", "model.estimators_[0]"),
    "trees": (VotingClassifier([TREES, LINEAR], voting="soft"), "RandomForest", "model.estimators_[1]"),
    "piped trees": (
        VotingClassifier([("a", make_pipeline(StandardScaler(), TREES[1])), PIPED], voting="soft"),
        "a RandomForestClassifier among",
        "model.estimators_[1]",
    ),
    "last piped": (StackingClassifier([PIPED], PIPED[1], cv=2), "last model is a Pipe", "model.estimators_[0]"),
    "last": (StackingClassifier([LINEAR], TREES[1], cv=2), "last model is a RandomF", "model.estimators_[0]"),
    "votes of one": (
        StackingClassifier([LINEAR], cv=2, stack_method="decision_function"),
        "Not all of its models give probabilities",
        "model.estimators_[0]",
    ),
    "calibrated": (
        CalibratedClassifierCV(LogisticRegression(), cv=2, method="isotonic"),
        "Its isotonic calibration goes in steps",
        "model.calibrated_classifiers_[0].estimator",
    ),
    "frozen": (
        CalibratedClassifierCV(FrozenEstimator(LogisticRegression().fit(X, Y)), cv=2, method="isotonic"),
        "Its isotonic calibration goes in steps",
        "model.calibrated_classifiers_[0].estimator.estimator",
    ),
    "in a pipeline": (
        make_pipeline(StandardScaler(), CalibratedClassifierCV(LogisticRegression(), cv=2, method="isotonic")),
        "Its isotonic calibration goes in steps",
        "sklearn.pipeline.make_pipeline(model[:-1], model[-1].calibrated_classifiers_[0].estimator)",
    ),
    "fewer classes": (
        CalibratedClassifierCV(LogisticRegression(), cv=[(np.arange(25), np.arange(45)), (np.arange(45),) * 2]),
        "One of its models was fitted on fewer classes",
        "model.calibrated_classifiers_[1].estimator",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_not_exact_is_refused_with_the_part_to_take(kind) -> None:
    model, reason, part = REFUSED[kind]
    for labels in (Y, np.unique(Y, return_inverse=True)[1]):
        if kind == "frozen" and labels is not Y:
            continue
        model.fit(X, labels)
        with pytest.raises(InputError, match=re.escape(reason)) as error:
            Explainer(model, (X, labels))
        typed = str(error.value).partition("Pass one of its models: ")[2].removesuffix(".")
        assert typed.startswith(f"pr.Explainer({part}, (X, ")
        names = {"model": model, "numpy": np, "X": X, "y": labels, "pr": pr, "sklearn": sklearn}
        assert len(eval(typed, names).explain(X[:2], k=1).predictions) == 2


def test_an_ensemble_without_any_part_to_take_says_so() -> None:
    calibrations = [CalibratedClassifierCV(SVC(), cv=2), CalibratedClassifierCV(TREES[1], cv=2)]
    for model in (*calibrations, VotingClassifier([TREES], voting="soft")):
        with pytest.raises(
            InputError, match=r"None of its models can be explained either: fit a LogisticRegression"
        ):
            Explainer(model.fit(X, Y), (X, Y))

"""Votes and stacks of explained models are one module; other ensembles are refused with the part to take."""

import re

import numpy as np
import oracle
import pytest
import torch
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier, StackingClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import precedents as pr
from precedents import Explainer, InputError

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

WINE = load_wine()
X = StandardScaler().fit_transform(WINE.data)[::4, :5]  # 45 rows
Y = np.array(["barolo", "grignolino", "barbera"])[WINE.target[::4]]
TWO = Y != "barbera"
LINEAR = ("linear", LogisticRegression())
PARTS = [LINEAR, ("network", MLPClassifier((3,), max_iter=30, random_state=0))]
TREES = ("trees", RandomForestClassifier(3, random_state=0))
PIPED = ("piped", make_pipeline(StandardScaler(), LogisticRegression()))

EXACT = {
    "vote": lambda: VotingClassifier(PARTS, voting="soft"),
    "weighted vote": lambda: VotingClassifier([*PARTS, ("none", "drop")], voting="soft", weights=[3, 1, 7]),
    "stack": lambda: StackingClassifier(PARTS, cv=2),
    "stack with the rows": lambda: StackingClassifier(PARTS, cv=2, passthrough=True),
    "in a pipeline": lambda: make_pipeline(StandardScaler(), VotingClassifier(PARTS, voting="soft")),
}


@pytest.mark.parametrize("rows", [slice(None), TWO], ids=["three classes", "two classes"])
@pytest.mark.parametrize("kind", EXACT)
def test_an_ensemble_is_explained_by_all_of_its_parameters(kind, rows) -> None:
    x, y = X[rows], Y[rows]
    model = EXACT[kind]().fit(x, y)
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


def test_an_ensemble_is_audited() -> None:
    model = EXACT["vote"]().fit(X, Y)
    found = pr.audit(model, (X, Y), (X[:8], Y[:8]), metrics=["gc"], criteria=["identical_class"])
    assert "cos_grad" in str(found)


REFUSED = {
    "hard": (VotingClassifier(PARTS), "counts votes", "model.estimators_[0]"),
    "trees": (VotingClassifier([TREES, LINEAR], voting="soft"), "RandomForest", "model.estimators_[1]"),
    "piped": (StackingClassifier([PIPED], cv=2), "a Pipeline among", "model.estimators_[0]"),
    "last": (StackingClassifier([LINEAR], TREES[1], cv=2), "last model is a RandomF", "model.estimators_[0]"),
    "votes of one": (
        StackingClassifier([LINEAR], cv=2, stack_method="decision_function"),
        "Not all of its models give probabilities",
        "model.estimators_[0]",
    ),
    "calibrated": (
        CalibratedClassifierCV(LogisticRegression(), cv=2),
        "fitted after its models",
        "model.calibrated_classifiers_[0].estimator",
    ),
    "frozen": (
        CalibratedClassifierCV(FrozenEstimator(LogisticRegression().fit(X, Y)), cv=2),
        "fitted after its models",
        "model.calibrated_classifiers_[0].estimator.estimator",
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
        taken, _, own = typed.partition(" with the labels ")
        assert taken == part
        names = {"model": model, "numpy": np, "y": labels}
        y = eval(own, names) if own else labels
        assert len(Explainer(eval(taken, names), (X, y)).explain(X[:2], k=1).predictions) == 2


def test_an_ensemble_without_any_part_to_take_says_so() -> None:
    for model in (CalibratedClassifierCV(LinearSVC(), cv=2), VotingClassifier([TREES], voting="soft")):
        with pytest.raises(
            InputError, match=r"None of its models can be explained either: fit a LogisticRegression"
        ):
            Explainer(model.fit(X, Y), (X, Y))

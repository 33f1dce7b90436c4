"""Estimators of scikit-learn become modules with the same probabilities; their data are taken as they are."""

import inspect
import pickle
import subprocess
import sys

import numpy as np
import oracle
import pytest
import torch
from scipy import sparse
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
)
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    LogisticRegressionCV,
    Perceptron,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, TunedThresholdClassifierCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import all_estimators

from precedents import Explainer, InputError
from precedents.adapters._find import adapter_of

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

KINDS = np.array(["barolo", "grignolino", "barbera"])
WINE = load_wine()
X = StandardScaler().fit_transform(WINE.data)[::3, :5]  # 60 rows
Y = KINDS[WINE.target[::3]]
TWO = Y != "barbera"


def perceptron(**settings) -> MLPClassifier:
    return MLPClassifier(**{"hidden_layer_sizes": (4, 3), "max_iter": 20, "random_state": 0} | settings)


def sgd(**settings) -> SGDClassifier:
    """Not so certain that plain autograd would lose the digits of its residuals."""
    return SGDClassifier(loss="log_loss", random_state=0, alpha=0.05, **settings)


SERVED = {
    "logistic": LogisticRegression(),
    "no intercept": LogisticRegression(fit_intercept=False),
    "weighted": LogisticRegression(class_weight="balanced", C=0.1),
    "saga": LogisticRegression(solver="saga", C=0.3, max_iter=500),
    "sgd": sgd(),
    "averaged": sgd(average=True, fit_intercept=False),
    "one-vs-rest": OneVsRestClassifier(LogisticRegression()),
    "one-vs-rest of sgd": OneVsRestClassifier(sgd(fit_intercept=False)),
    "relu": perceptron(),
    "tanh": perceptron(activation="tanh"),
    "sigmoid": perceptron(activation="logistic"),
    "identity": perceptron(activation="identity"),
    "no hidden layer": perceptron(hidden_layer_sizes=()),
    "pipeline": make_pipeline(MinMaxScaler(), PCA(3), LogisticRegression()),
    "pipeline in a pipeline": make_pipeline(StandardScaler(), make_pipeline(PCA(4), perceptron())),
    "alone in a pipeline": make_pipeline(LogisticRegression()),
    "searched": GridSearchCV(make_pipeline(PCA(4), LogisticRegression()), {"pca__n_components": [2, 3]}, cv=2),
}


@pytest.fixture(params=SERVED)
def name(request) -> str:
    return request.param


@pytest.fixture(params=["two classes", "three classes"])
def data(request) -> tuple[np.ndarray, np.ndarray]:
    return (X[TWO], Y[TWO]) if request.param == "two classes" else (X, Y)


@pytest.fixture
def fitted(name, data) -> object:
    return clone(SERVED[name]).fit(*data)


def features(model, x) -> torch.Tensor:
    """What the last step of a pipeline receives, by scikit-learn alone."""
    model = getattr(model, "best_estimator_", model)
    if hasattr(model, "steps"):
        return features(model.steps[-1][1], model[:-1].transform(x) if len(model.steps) > 1 else x)
    return torch.tensor(x.toarray() if sparse.issparse(x) else np.asarray(x), dtype=torch.double)


def one(model, x, y) -> Explainer:
    return Explainer(model, (x, y), "dot_grad")


def probabilities(explainer: Explainer) -> np.ndarray:
    workspace = explainer.relevance.workspace
    logits = [workspace.classifier.finite_logits(batch) for batch in workspace.train.batches(7)]
    return torch.cat(logits).softmax(dim=1).numpy()


def test_probabilities_are_those_of_predict_proba(fitted, data) -> None:
    np.testing.assert_allclose(probabilities(one(fitted, *data)), fitted.predict_proba(data[0]), atol=1e-12)


def test_predictions_are_those_of_predict(fitted, data) -> None:
    explanation = one(fitted, *data).explain(data[0])
    assert [explanation.name(int(label)) for label in explanation.predictions] == fitted.predict(
        data[0]
    ).tolist()


@pytest.mark.parametrize("metric", ["dot_grad", "cos_grad"])
def test_scores_are_those_of_plain_autograd(fitted, data, metric) -> None:
    x, y = data
    module, cases = adapter_of(fitted).module, features(fitted, x)[::9]
    labels = torch.tensor([sorted(set(y)).index(label) for label in y])
    ours = Explainer(fitted, data, metric).scores(x[::9]).numpy()
    theirs = oracle.relevance(metric, module, (features(fitted, x), labels), cases)
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-9 * np.abs(theirs).max())


@pytest.mark.parametrize("metric", ["dot_if", "cos_fisher", "cos_x"])
@pytest.mark.parametrize("name", ["logistic", "pipeline"], indirect=True)
def test_every_metric_sees_the_transformed_features(fitted, data, metric) -> None:
    x, y = data
    labels = torch.tensor([sorted(set(y)).index(label) for label in y])
    ours = Explainer(fitted, data, metric).scores(x[::9]).numpy()
    theirs = oracle.relevance(
        metric, adapter_of(fitted).module, (features(fitted, x), labels), features(fitted, x)[::9]
    )
    np.testing.assert_allclose(ours, theirs, atol=1e-6 * np.abs(theirs).max())


def test_the_company_of_a_case_changes_nothing(fitted, data) -> None:
    explainer = one(fitted, *data)
    together = explainer.scores(data[0][:7])
    alone = torch.cat([explainer.scores(row) for row in data[0][:7]])
    torch.testing.assert_close(alone, together, rtol=1e-9, atol=1e-12)


def test_the_company_of_a_training_instance_changes_nothing(fitted, data) -> None:
    x, y = data
    whole = one(fitted, x, y).scores(x[:3])
    part = one(fitted, x[5:], y[5:]).scores(x[:3])
    torch.testing.assert_close(part, whole[:, 5:], rtol=1e-9, atol=1e-12)


def closed_form(model, x, y, cases) -> np.ndarray:
    """Grad-Dot of a logistic regression by numpy: <r, r'> (<x, x'> + 1)."""

    def residual(rows, labels):
        return model.predict_proba(rows) - (labels[:, None] == model.classes_)

    inner = cases @ x.T + 1
    return (residual(cases, model.predict(cases)) @ residual(x, y).T) * inner


def test_gradients_of_a_logistic_regression_have_their_closed_form(data) -> None:
    model = LogisticRegression().fit(*data)
    expected = closed_form(model, *data, data[0][:5])
    np.testing.assert_allclose(one(model, *data).scores(data[0][:5]), expected, rtol=1e-8, atol=1e-12)


def test_cosines_of_two_classes_are_those_of_the_one_weight_vector() -> None:
    x, y = X[TWO], Y[TWO]
    model = LogisticRegression().fit(x, y)
    p = expit(model.decision_function(x))
    with_one = np.c_[x, np.ones(len(x))]
    train = (p - (y == model.classes_[1]))[:, None] * with_one
    cases = (p - (p > 0.5))[:, None] * with_one
    unit = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (cases, train)]
    ours = Explainer(model, (x, y), "cos_grad").scores(x)
    np.testing.assert_allclose(ours, unit[0] @ unit[1].T, atol=1e-12)
    np.testing.assert_allclose(one(model, x, y).scores(x), 2 * cases @ train.T, atol=1e-12)


def test_damping_can_stand_for_the_penalty(data) -> None:
    """IF by numpy, with the Hessian of the penalised loss by the estimator's own weights."""
    x, y = data
    model = LogisticRegression(C=0.5, fit_intercept=False).fit(x, y)
    n, p = len(x), model.predict_proba(x)
    if len(model.classes_) == 2:
        hessian = (x * (p[:, :1] * p[:, 1:])).T @ x / n
        rows = (p[:, 1] - (y == model.classes_[1]))[:, None] * x
        case = (p[:, 1] - (p[:, 1] > 0.5))[:, None] * x
    else:
        curvature = np.stack([np.diag(each) - np.outer(each, each) for each in p])
        hessian = np.einsum("nab,ni,nj->aibj", curvature, x, x).reshape(15, 15) / n
        rows = np.einsum("na,ni->nai", p - (y[:, None] == model.classes_), x).reshape(n, 15)
        case = np.einsum("na,ni->nai", p - np.eye(3)[p.argmax(axis=1)], x).reshape(n, 15)
    penalty = 1 / (n * 0.5)
    expected = case[:5] @ np.linalg.inv(hessian + penalty * np.eye(len(hessian))) @ rows.T
    damping = (2 if len(model.classes_) == 2 else 1) * penalty / np.diag(hessian).mean()
    ours = Explainer(model, data, f"dot:gradient/hessian(damping={damping})").scores(x[:5])
    np.testing.assert_allclose(ours, expected, rtol=1e-6, atol=1e-9 * np.abs(expected).max())


def test_a_logistic_regression_is_one_linear_layer(data) -> None:
    model = one(LogisticRegression().fit(*data), *data).relevance.workspace.classifier
    assert model.only_layer == ""


def test_a_perceptron_of_two_classes_has_its_own_parameters_alone() -> None:
    model = perceptron().fit(X[TWO], Y[TWO])
    ours = one(model, X[TWO], Y[TWO]).relevance.workspace.classifier
    assert ours.size == sum(part.size for part in [*model.coefs_, *model.intercepts_])
    assert len(ours.taps) == 2


def test_single_precision_is_served_in_double() -> None:
    x = X.astype(np.float32)
    for model in (LogisticRegression().fit(x, Y), perceptron().fit(x, Y)):
        np.testing.assert_allclose(probabilities(one(model, x, Y)), model.predict_proba(x), atol=1e-6)


@pytest.mark.filterwarnings("ignore::FutureWarning")  # its defaults will change
def test_cross_validated_and_sparsified_estimators_are_served() -> None:
    for model in (LogisticRegressionCV(Cs=[0.1, 1], cv=2).fit(X, Y), sgd(penalty="l1").fit(X, Y).sparsify()):
        np.testing.assert_allclose(probabilities(one(model, X, Y)), model.predict_proba(X), atol=1e-12)


def test_one_vs_rest_whose_probabilities_vanish_predicts_as_scikit_learn_does() -> None:
    model = sgd().fit(X, Y)
    model.coef_, model.intercept_ = 1e4 * model.coef_, np.full(3, -1e5)
    explanation = one(model, X, Y).explain(X)
    assert list(map(explanation.name, explanation.predictions)) == model.predict(X).tolist()


# What is refused.

MANY = np.c_[TWO, ~TWO].astype(int)


class Third(ClassifierMixin, BaseEstimator):
    """A classifier from elsewhere."""


REFUSED = [
    (RandomForestClassifier(), "trees"),
    (GradientBoostingClassifier(), "trees"),
    (HistGradientBoostingClassifier(), "trees"),
    (DecisionTreeClassifier(), "a tree"),
    (VotingClassifier([("a", LogisticRegression())]), "several models"),
    (CalibratedClassifierCV(), "several models"),
    (OneVsOneClassifier(LogisticRegression()), "several models"),
    (KNeighborsClassifier(), r"model\.kneighbors"),
    (SVC(), "no likelihood|without a likelihood"),
    (LinearSVC(), "without a likelihood.*Fit a LogisticRegression"),
    (RidgeClassifier(), "without a likelihood.*Fit a LogisticRegression"),
    (Perceptron(), "without a likelihood"),
    (SGDClassifier(), r"loss='hinge'.*SGDClassifier\(loss='log_loss'\)"),
    (SGDClassifier(loss="modified_huber"), "clipped"),
    (GaussianNB(), "class by class"),
    (LinearDiscriminantAnalysis(), "class by class"),
    (GaussianProcessClassifier(), "kernel"),
    (DummyClassifier(), "does not look"),
    (LinearRegression(), "predicts numbers"),
    (RandomForestRegressor(), "predicts numbers"),
    (KMeans(), "no classifier"),
    (StandardScaler(), "no classifier"),
    (make_pipeline(StandardScaler(), "passthrough"), "no classifier"),
    (make_pipeline(StandardScaler(), RandomForestClassifier()), "The RandomForestClassifier .*trees"),
    (MultiOutputClassifier(LogisticRegression()), r"several labels at once.*model\.estimators_\[0\]"),
    (OneVsRestClassifier(LogisticRegression()).fit(X, MANY), r"several labels.*model\.estimators_\[0\]"),
    (OneVsRestClassifier(LinearSVC()).fit(X, Y), "by LinearSVCs"),
    (OneVsRestClassifier(SGDClassifier()).fit(X, Y), "loss='hinge'"),
    (MLPClassifier((2,), max_iter=2), "several labels"),
    (FixedThresholdClassifier(LogisticRegression()), r"threshold.*model\.estimator_"),
    (TunedThresholdClassifierCV(LogisticRegression()).fit(X, TWO), r"threshold.*model\.estimator_"),
    (GridSearchCV(LogisticRegression(), {}), "refit=True"),
    (Third(), "not known here"),
    (LogisticRegression(), r"not fitted.*model\.fit\(X, y\)"),
    (make_pipeline(StandardScaler(), MLPClassifier()), "The MLPClassifier is not fitted"),
]


@pytest.mark.parametrize(("model", "said"), REFUSED, ids=lambda value: type(value).__name__)
def test_what_cannot_be_explained_is_refused_with_the_reason(model, said) -> None:
    if said == "several labels":
        model.fit(X, MANY)
    with pytest.raises(InputError, match=said):
        Explainer(model, (X, Y))


@pytest.mark.filterwarnings("ignore::FutureWarning")  # some of them are deprecated
def test_every_estimator_that_is_not_fitted_is_refused_with_a_sentence() -> None:
    tried = 0
    for _, kind in all_estimators():
        needed = [
            name
            for name, parameter in inspect.signature(kind).parameters.items()
            if parameter.default is inspect.Parameter.empty
        ]
        given = {"estimator": LogisticRegression(), "estimators": [("a", LogisticRegression())]}
        if set(needed) <= set(given):
            tried += 1
            with pytest.raises(InputError, match=r"^The \w+ (is not fitted|cannot be explained).*\.$"):
                adapter_of(kind(**{name: given[name] for name in needed}))
    assert tried > 150


def test_a_model_of_one_class_is_refused() -> None:
    model = perceptron().fit(X, Y)
    model.classes_ = model.classes_[:1]
    with pytest.raises(InputError, match="fitted on one class"):
        Explainer(model, (X, Y))


def test_probabilities_that_are_not_the_parameters_own_are_refused() -> None:
    class Sharpened(LogisticRegression):
        def predict_proba(self, rows):
            return np.eye(3)[super().predict_proba(rows).argmax(axis=1)]

    with pytest.raises(InputError, match=r"Sharpened\.predict_proba are not those"):
        Explainer(Sharpened().fit(X, Y), (X, Y))


def test_a_transformer_that_looks_at_the_other_rows_is_refused() -> None:
    centred = FunctionTransformer(lambda x: x - x.mean(axis=0))
    model = make_pipeline(centred, LogisticRegression()).fit(X, Y)
    with pytest.raises(InputError, match="alone than among others"):
        Explainer(model, (X, Y))


# What is asked of the surroundings.

ALONE = """
import sys, torch
from precedents import Explainer
Explainer(torch.nn.Linear(3, 2), (torch.rand(4, 3), torch.arange(4) % 2)).explain(torch.rand(3), k=1)
print("sklearn" in sys.modules, "pandas" in sys.modules)
"""


def test_models_of_torch_do_not_import_scikit_learn() -> None:
    said = subprocess.check_output([sys.executable, "-c", ALONE], text=True, timeout=100)
    assert said.split() == ["False", "False"]


def test_a_model_that_is_fitted_again_explains_as_before() -> None:
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)
    explainer = one(model, X, Y)
    before = explainer.scores(X[:3])
    model.fit(X[::-1] * 3 + 1, Y)
    assert torch.equal(explainer.scores(X[:3]), before)


class Sampler(BaseEstimator):
    """Draws instances anew for `fit` alone, as those of imbalanced-learn do."""

    def fit_resample(self, x, y):
        return np.concatenate([x, x[y == "barolo"]]), np.concatenate([y, y[y == "barolo"]])


class Sampled(Pipeline):
    """A pipeline that knows samplers, as imbalanced-learn's does."""

    def fit(self, x, y):
        for _, step in self.steps[:-1]:
            x, y = step.fit_resample(x, y) if hasattr(step, "fit_resample") else (step.fit_transform(x), y)
        self.steps[-1][1].fit(x, y)
        return self

    def predict_proba(self, x):
        for _, step in self.steps[:-1]:
            x = x if hasattr(step, "fit_resample") else step.transform(x)
        return self.steps[-1][1].predict_proba(x)


@pytest.mark.parametrize("order", [(0, 1), (1, 0), (1,)])
def test_samplers_of_a_pipeline_act_in_fit_alone(order) -> None:
    names = ("scale", StandardScaler()), ("draw", Sampler())
    model = Sampled([*(names[i] for i in order), ("decide", LogisticRegression())]).fit(X, Y)
    scaled = model[0].transform(X) if order == (0, 1) else model[-2].transform(X) if order == (1, 0) else X
    wanted = one(model[-1], scaled, Y).scores(scaled[:3])
    assert torch.equal(one(model, X, Y).scores(X[:3]), wanted)


def test_weights_that_are_written_to_afterwards_change_no_explanation() -> None:
    model = LogisticRegression().fit(X, Y)
    explainer = Explainer(model, (X, Y))
    before = explainer.scores(X[:3])
    model.coef_ *= -2
    assert torch.equal(explainer.scores(X[:3]), before)


def test_nothing_is_drawn_and_the_estimator_stays_as_it_was() -> None:
    model = make_pipeline(StandardScaler(), perceptron()).fit(X, Y)
    before = pickle.dumps(model), torch.get_rng_state(), repr(np.random.get_state())  # noqa: NPY002
    Explainer(model, (X, Y)).explain(X[:2])
    assert before[0] == pickle.dumps(model)
    assert torch.equal(before[1], torch.get_rng_state())
    assert before[2] == repr(np.random.get_state())  # noqa: NPY002

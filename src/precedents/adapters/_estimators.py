"""scikit-learn's estimators as modules with the same probabilities, or the reason why there is none.

LogisticRegression and SGDClassifier have, for two classes, one weight vector w; the module is a Linear of two
rows, -w/2 and w/2, so that two classes are a softmax as more are. Cosines are those of the one vector, inner
products of gradients twice as large. One-vs-rest probabilities are sigmoids divided by their sum: the logits
are log sigmoid(z).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from precedents.errors import InputError

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "identity": nn.Identity,
    "logistic": nn.Sigmoid,
    "relu": nn.ReLU,
    "tanh": nn.Tanh,
}
INSTEAD = (
    "Fit a LogisticRegression, an SGDClassifier(loss='log_loss') or an MLPClassifier on the same data and "
    "explain that one, or pass a torch.nn.Module."
)
NO_LIKELIHOOD = "It gives decision values without a likelihood, so there is no loss whose gradients compare."
NO_LOSS = "Its parameters are estimated class by class, not by the loss of its predictions."
UNKNOWN = "Its parameters and its loss are not known here."
SEVERAL = "It decides by several models, which have no common parameters."
REASONS = {  # by the part of scikit-learn, or the package, that the estimator is from
    "calibration": SEVERAL,
    "discriminant_analysis": NO_LOSS,
    "dummy": "It does not look at its inputs.",
    "ensemble": "It decides by trees or by several models, which have no parameters with a gradient in common.",
    "gaussian_process": "It decides by a kernel with its training instances and has no weights.",
    "lightgbm": "It decides by trees, which have no gradient by their parameters.",
    "linear_model": NO_LIKELIHOOD,
    "model_selection": "It predicts by another threshold than the likeliest class.",
    "multiclass": SEVERAL,
    "multioutput": "It predicts several labels at once, and a precedent is relevant to one prediction.",
    "naive_bayes": NO_LOSS,
    "neighbors": "It has no weights: it decides by its nearest training instances, see model.kneighbors(x).",
    "svm": NO_LIKELIHOOD,
    "tree": "It decides by a tree, which has no gradient by its parameters.",
    "xgboost": "It decides by trees, which have no gradient by their parameters.",
}
WRAPPERS = {  # what to pass instead of an estimator that holds others
    "model_selection": "Pass the fitted model inside: model.estimator_.",
    "multioutput": "Explain one output at a time: model.estimators_[0] with the labels y[:, 0].",
}


class OneLogit(nn.Module):
    """The logit of the second of two classes as logits of both; the first has zero."""

    def forward(self, logit: Tensor) -> Tensor:
        """From [b, 1] to [b, 2]."""
        return pad(logit, (1, 0))


def module_of(estimator: Any) -> nn.Module:
    """In float64, with the estimator's own probabilities; refuses what has none that can be explained."""
    from sklearn.linear_model import LogisticRegression, SGDClassifier
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.neural_network import MLPClassifier

    makers: dict[type, Callable[[Any], nn.Module]] = {
        LogisticRegression: _logistic_regression,
        SGDClassifier: _linear_classifier,
        OneVsRestClassifier: _one_vs_rest,
        MLPClassifier: _perceptron,
    }
    for kind, make in makers.items():
        if isinstance(estimator, kind):
            _check_likelihood(estimator)
            _check_fitted(estimator)
            return make(estimator).requires_grad_(requires_grad=True)
    searches = hasattr(estimator, "refit") and not hasattr(estimator, "estimator_")  # not for a threshold
    raise _search(estimator) if searches else refused(estimator)


def linear_of(estimator: Any) -> nn.Linear | None:
    """The decision values of a linear classifier, whatever it was fitted by; none of any other."""
    home = type(estimator).__module__.split(".")
    if home[:2] not in (["sklearn", "linear_model"], ["sklearn", "svm"]) or not hasattr(estimator, "coef_"):
        return None
    if getattr(estimator, "kernel", "linear") != "linear" or not hasattr(estimator, "fit_intercept"):
        return None
    weight, bias = _affine(estimator)
    return _linear(np.atleast_2d(weight), None if bias is None else np.atleast_1d(bias))


def _search(search: Any) -> InputError:
    """The error for a search without a best estimator."""
    name = type(search).__name__
    if not hasattr(search, "cv_results_"):
        return InputError(f"The {name} is not fitted. Call model.fit(X, y) first, with refit=True.")
    again = (
        "Fit the best one: sklearn.base.clone(model.estimator).set_params(**model.best_params_).fit(X, y), or "
        "search with refit=True."
        if hasattr(search, "best_params_")
        else f"Search with refit={next(iter(search.scorer_))!r}, or another one of its scorings."
    )
    return InputError(
        f"The {name} cannot be explained by its precedents. It was fitted with refit=False, so that it holds "
        f"no model. {again}"
    )


def refused(estimator: Any, reason: str | None = None, instead: str = INSTEAD) -> InputError:
    """The error for an estimator that cannot be explained."""
    from sklearn.base import ClassifierMixin, RegressorMixin

    name = type(estimator).__name__
    if reason is None and isinstance(estimator, RegressorMixin):
        reason, instead = "It predicts numbers, not classes.", f"Cut them into classes first. {INSTEAD}"
    elif reason is None and not isinstance(estimator, ClassifierMixin):
        reason, instead = "It is no classifier.", f"End the pipeline with one. {INSTEAD}"
    homes = [part for kind in type(estimator).__mro__ for part in kind.__module__.split(".")]
    reason = reason or next((REASONS[home] for home in homes if home in REASONS), UNKNOWN)
    instead = WRAPPERS.get(homes[1], instead) if homes[0] == "sklearn" else instead
    return InputError(f"The {name} cannot be explained by its precedents. {reason} {instead}")


def _check_likelihood(estimator: Any) -> None:
    loss = getattr(estimator, "loss", "log_loss")
    if loss == "modified_huber":
        reason = "Its probabilities are clipped to 0 and 1, where a likelihood has no gradient."
        raise refused(estimator, f"It has loss='modified_huber'. {reason}")
    if loss != "log_loss":
        raise refused(estimator, f"It has loss={loss!r}. {NO_LIKELIHOOD}")


def _check_fitted(estimator: Any) -> None:
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(estimator)
    except NotFittedError:
        raise InputError(f"The {type(estimator).__name__} is not fitted. Call model.fit(X, y) first.") from None
    if len(estimator.classes_) < 2:
        raise InputError(
            f"The {type(estimator).__name__} was fitted on one class, {estimator.classes_[0]!r}. "
            "Fit it on data with at least two."
        )


def _logistic_regression(estimator: Any) -> nn.Module:
    several = getattr(estimator, "multi_class", "auto")  # which releases from 1.8 on do not have
    if several == "ovr" or estimator.solver == "liblinear":
        return _linear_classifier(estimator)
    weight, bias = _affine(estimator)
    if len(weight) > 1:
        return _linear(weight, bias)
    return _two(weight, bias, 1.0 if several == "multinomial" else 0.5)  # softmax of -z and z, or sigmoid of z


def _linear_classifier(estimator: Any) -> nn.Module:
    return _sigmoids(*_affine(estimator))


def _one_vs_rest(estimator: Any) -> nn.Module:
    from sklearn.linear_model import LogisticRegression, SGDClassifier

    if estimator.multilabel_:
        raise refused(
            estimator,
            "It was fitted on several labels for each instance, and a precedent is relevant to one prediction.",
            "Explain one label at a time: model.estimators_[0] with the labels Y[:, 0].",
        )
    for each in estimator.estimators_:
        if not isinstance(each, (LogisticRegression, SGDClassifier)):
            raise refused(estimator, f"It decides by {type(each).__name__}s; LogisticRegressions would do.")
        _check_likelihood(each)
    weights, biases = zip(*map(_affine, estimator.estimators_), strict=True)
    return _sigmoids(np.concatenate(weights), None if biases[0] is None else np.concatenate(biases))


def _perceptron(estimator: Any) -> nn.Module:
    one = estimator.out_activation_ == "logistic"
    if one and estimator.n_outputs_ > 1:
        raise refused(
            estimator,
            "It was fitted on several labels for each instance, and a precedent is relevant to one prediction.",
            "Fit an MLPClassifier for each label.",
        )
    layers: list[nn.Module] = []
    for weight, bias in zip(estimator.coefs_, estimator.intercepts_, strict=True):
        layers += [_linear(weight.T, bias), ACTIVATIONS[estimator.activation]()]
    return nn.Sequential(*layers[:-1], *[OneLogit()] * one)


def _affine(estimator: Any) -> tuple["np.ndarray[Any, Any]", "np.ndarray[Any, Any] | None"]:
    """The weights [rows, d], and the bias [rows] if it was fitted."""
    weight = estimator.coef_
    weight = weight.toarray() if hasattr(weight, "toarray") else weight  # after estimator.sparsify()
    return np.asarray(weight), np.asarray(estimator.intercept_) if estimator.fit_intercept else None


def _sigmoids(weight: Any, bias: Any) -> nn.Module:
    """One row says how likely the second of two classes is; several say it of one class each."""
    return _two(weight, bias) if len(weight) == 1 else nn.Sequential(_linear(weight, bias), nn.LogSigmoid())


def _two(weight: Any, bias: Any, part: float = 0.5) -> nn.Linear:
    parts = np.array([-part, part])
    return _linear(parts[:, None] * weight, None if bias is None else parts * bias)


def _linear(weight: Any, bias: Any) -> nn.Linear:
    """Over the memory of what is given, where that is in float64; without a draw of random numbers."""
    rows, columns = weight.shape
    made = nn.Linear(columns, rows, bias=bias is not None, device="meta")
    made.weight = nn.Parameter(torch.as_tensor(weight, dtype=torch.double))
    if bias is not None:
        made.bias = nn.Parameter(torch.as_tensor(bias, dtype=torch.double))
    return made

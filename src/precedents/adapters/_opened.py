"""Fitted classifiers of scikit-learn, opened: pipelines, searches and ensembles down to modules."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from torch import nn

from precedents.adapters._ensembles import Opened, Probabilities, Whereabouts, calibrated, stacking, voting
from precedents.adapters._estimators import linear_of, module_of, refused


def opened(model: Any, place: Whereabouts | None = None, *, decisions: bool = False) -> Opened:
    """What is done to a model's rows, and the module that decides; refuses what has none that is exact.

    `decisions` asks for what calibrations are given in place of logits: decision values, or probabilities.
    """
    steps, last, here = unwrapped(model, Whereabouts() if place is None else place)
    found = _decisions(last) if decisions else _module(last, here)
    return Opened((*steps, *found.steps), found.module.requires_grad_(requires_grad=True), found.width)


def unwrapped(model: Any, place: Whereabouts) -> tuple[tuple[Any, ...], Any, Whereabouts]:
    """The transformers before the estimator that decides, that estimator, and where it is."""
    from sklearn.pipeline import Pipeline

    if hasattr(model, "best_estimator_"):
        return unwrapped(model.best_estimator_, Whereabouts(f"{place.part}.best_estimator_", place.before))
    if type(model).__name__ == "FrozenEstimator":
        return unwrapped(model.estimator, Whereabouts(f"{place.part}.estimator", place.before))
    if not isinstance(model, Pipeline):
        return (), model, place
    # what draws instances anew, as the samplers of imbalanced-learn, acts in `fit` alone
    steps = [step for step in model.steps[:-1] if not hasattr(step[1], "fit_resample")]
    own = (f"{place.part}[:-1]",) if steps else ()
    before, last, here = unwrapped(model.steps[-1][1], Whereabouts(f"{place.part}[-1]", (*place.before, *own)))
    return (*([_pipeline(model, steps)] if own else []), *before), last, here


def _pipeline(model: Any, steps: list[tuple[str, Any]]) -> Any:
    """Steps of a fitted pipeline as one."""
    return model[:-1] if len(steps) == len(model.steps) - 1 else type(model)(steps)


def _module(estimator: Any, place: Whereabouts) -> Opened:
    """Of an ensemble, or of an estimator by itself."""
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.ensemble import StackingClassifier, VotingClassifier

    ensembles = {VotingClassifier: voting, StackingClassifier: stacking, CalibratedClassifierCV: calibrated}
    for kind, join in ensembles.items():
        if isinstance(estimator, kind) and hasattr(estimator, "classes_"):
            return join(estimator, opened, place)
    return Opened((), module_of(estimator), getattr(estimator, "n_features_in_", 0))


def _decisions(estimator: Any) -> Opened:
    """Decision values if the estimator has them and is linear; else, if it has none, its probabilities."""
    if not hasattr(estimator, "decision_function"):
        found = _module(estimator, Whereabouts())
        return Opened(found.steps, Probabilities(found.module), found.width)
    linear: nn.Module | None = linear_of(estimator)
    if linear is None:
        raise refused(estimator)
    return Opened((), linear, estimator.n_features_in_)


def step_names(transformers: Sequence[Any]) -> Iterator[str]:
    """The types of what is done to rows, in its order; of pipelines, those of their steps."""
    for each in transformers:
        if hasattr(each, "steps"):
            yield from step_names([step for _, step in each.steps if not isinstance(step, str)])
        elif each is not None:
            yield type(each).__name__


def by_columns(estimator: Any) -> dict[int, Any]:
    """Copies, by the id of what is copied: weights [c, d] laid out by columns, as sparse rows read them."""
    weight = getattr(estimator, "coef_", None)
    plain = type(weight) is np.ndarray and weight.ndim == 2
    return {id(weight): np.array(weight, order="F")} if plain else {}

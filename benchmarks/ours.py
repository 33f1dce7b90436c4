"""What is measured of precedents: everything is made anew, so that nothing is left over from before."""

from collections.abc import Callable

import numpy as np
from torch import Tensor, nn

import precedents as pr

Scores = Callable[..., np.ndarray]  # of a model, training instances, their labels, cases, theirs; and a budget


def explained(metric: str) -> Scores:
    """The scores [m, n] by one metric."""

    def scores(
        model: nn.Module,
        x_train: Tensor,
        y_train: Tensor,
        x_cases: Tensor,
        _: Tensor,
        memory: str | None = None,
    ) -> np.ndarray:
        explainer = pr.Explainer(model, (x_train, y_train), metric=metric, memory=memory)
        return explainer.scores(x_cases).detach().numpy()

    return scores


def fitted_once(*metrics: str) -> Scores:
    """The scores [metrics, m, n] by several metrics of one preconditioner, which is fitted once."""

    def scores(
        model: nn.Module,
        x_train: Tensor,
        y_train: Tensor,
        x_cases: Tensor,
        y_cases: Tensor,
        memory: str | None = None,
    ) -> np.ndarray:
        trial = pr.Trial.of(model, (x_train, y_train), (x_cases, y_cases), memory=memory)
        return np.stack([trial.scores(pr.metric(name)).detach().numpy() for name in metrics])

    return scores


OURS: dict[str, Scores] = {
    "dot_grad": explained("dot_grad"),
    "cos_grad": explained("cos_grad"),
    "fisher": fitted_once("dot_fisher", "cos_fisher", "l2_fisher"),
    "curvature": fitted_once(
        "dot:gradient/hessian(kind=gauss_newton)", "cosine:gradient/hessian(kind=gauss_newton)"
    ),
}

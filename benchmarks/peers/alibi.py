"""alibi: GradientSimilarity with its PyTorch backend, one example at a time."""

import numpy as np
from alibi.explainers import GradientSimilarity
from torch import Tensor, nn

KEPT = 2**28  # numbers up to which the training gradients are precomputed: one gigabyte


def scores(
    model: nn.Module,
    x_train: Tensor,
    y_train: Tensor,
    x_cases: Tensor,
    y_cases: Tensor,
    *,
    batch: int,  # noqa: ARG001
) -> np.ndarray:
    """Grad-Dot [m, n]; it comes sorted and is put back into the training set's order."""
    parameters = sum(p.numel() for p in model.parameters())
    explainer = GradientSimilarity(
        model,
        nn.CrossEntropyLoss(),
        sim_fn="grad_dot",
        precompute_grads=len(x_train) * parameters <= KEPT,
        backend="pytorch",
    )
    explainer.fit(x_train.numpy(), y_train.numpy())
    explanation = explainer.explain(x_cases.numpy(), y_cases.numpy())
    found = np.empty_like(explanation.scores)
    np.put_along_axis(found, explanation.ordered_indices, explanation.scores, axis=1)
    return found

"""What can be indexed: scores that rise with plain inner products; and why the rest cannot, and what could."""

from shlex import quote

from torch import Tensor

from precedents.gradients.rows import Rows
from precedents.metrics.features.inputs import inputs
from precedents.metrics.preconditioners._inverse import Coordinates
from precedents.metrics.preconditioners.ekfac import InverseEKFAC
from precedents.metrics.preconditioners.hessian import InverseHessian
from precedents.metrics.preconditioners.identity import identity
from precedents.metrics.relevance import Relevance
from precedents.metrics.similarities.cosine import cosine
from precedents.metrics.similarities.dot import dot
from precedents.metrics.similarities.l2 import l2
from precedents.registry import written
from precedents.runtime.advice import typed
from precedents.runtime.sparse import SparseRows

RISING = (cosine, dot, l2)  # similarities that are larger where the inner product is


def has_coordinates(relevance: Relevance) -> bool:
    """Whether there is a basis in which the metric's inner products are plain ones: that of EK-FAC."""
    recipe = relevance.metric.preconditioner
    if isinstance(recipe, InverseHessian):
        return recipe.chosen(relevance.workspace) == "ekfac"
    return isinstance(recipe, InverseEKFAC)


def coordinates(relevance: Relevance, rows: Rows) -> Rows:
    """Rows whose plain inner products are the metric's: M^(-1/2) g in the basis of M, or g itself."""
    if relevance.metric.preconditioner == identity:
        return rows
    inverse = relevance.inverse
    assert isinstance(inverse, Coordinates)
    turned: Tensor | Rows = inverse.coordinates(rows)
    return Rows.of(turned)


def refusal(relevance: Relevance) -> str | None:
    """Why the metric has no index here, and the nearest thing that there is; None if it has one."""
    metric, workspace = relevance.metric, relevance.workspace
    kept = typed(
        "Explainer(model, train, metric).save(folder) keeps whole vectors",
        f"It is asked without an index: precedents explain {{of}} --metric {quote(str(metric))} --case 0",
    )
    if metric.similarity not in RISING:
        known = ", ".join(sorted(written(each) for each in RISING))
        return (
            f"{metric} cannot be indexed: it may fall where an inner product rises. An index serves {known}. "
            f"{kept}."
        )
    if metric.features is inputs or isinstance(workspace.classifier.sample, SparseRows):
        what = "Inputs" if metric.features is inputs else "Gradients by sparse inputs"
        return f"{metric} is not indexed: {what} are compared as they are, which is cheaper than codes. {kept}."
    if metric.preconditioner != identity and not has_coordinates(relevance):
        nearest = f"{written(metric.similarity)}:{written(metric.features)}/ekfac"
        return (
            f"{metric} cannot be indexed: its matrix is held whole and compares whole vectors. {kept}, where "
            f"the model is small enough for the matrix. The nearest that can be indexed is {nearest}."
        )
    if workspace.train.ordered:
        return (
            "The training set is a stream, which has no places to read at: rows are computed again for every "
            "question. Pass a map-style dataset, a DataLoader of one, or a pair of tensors."
        )
    return None

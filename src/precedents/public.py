"""The public names. The package imports them from here when the first of them is asked for."""

from precedents.audit.audit import Audit
from precedents.audit.front_door import audit
from precedents.classifier.classifier import Classifier
from precedents.criteria._judgement import CRITERIA, Judgement, judge
from precedents.criteria._result import Result
from precedents.criteria._trial import Trial
from precedents.data.examples import Examples
from precedents.errors import (
    BudgetError,
    DataFileError,
    FormatError,
    IndefiniteKernelError,
    InputError,
    MissingExtraError,
    NotApplicable,
    NumericalError,
    PrecedentsError,
    StaleError,
    StoreError,
    UnknownNameError,
)
from precedents.explain.explainer import Explainer
from precedents.explain.explanation import Explanation, Precedent
from precedents.metrics.metric import FEATURES, PRECONDITIONERS, SIMILARITIES, Metric
from precedents.metrics.names import ALIASES
from precedents.metrics.paper import METRICS, metric
from precedents.metrics.preconditioners.fisher import InverseFisher
from precedents.metrics.preconditioners.hessian import InverseHessian
from precedents.metrics.relevance import Relevance
from precedents.metrics.workspace import Workspace
from precedents.views.render import images, tables, texts

__all__ = [
    "ALIASES",
    "CRITERIA",
    "FEATURES",
    "METRICS",
    "PRECONDITIONERS",
    "SIMILARITIES",
    "Audit",
    "BudgetError",
    "Classifier",
    "DataFileError",
    "Examples",
    "Explainer",
    "Explanation",
    "FormatError",
    "IndefiniteKernelError",
    "InputError",
    "InverseFisher",
    "InverseHessian",
    "Judgement",
    "Metric",
    "MissingExtraError",
    "NotApplicable",
    "NumericalError",
    "Precedent",
    "PrecedentsError",
    "Relevance",
    "Result",
    "StaleError",
    "StoreError",
    "Trial",
    "UnknownNameError",
    "Workspace",
    "audit",
    "images",
    "judge",
    "metric",
    "tables",
    "texts",
]

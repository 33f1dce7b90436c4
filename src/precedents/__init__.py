"""Explain a classifier's prediction by its precedents, and put the relevance metric itself on trial."""

from precedents.audit import Audit, audit
from precedents.criteria._result import Result
from precedents.criteria._trial import Trial
from precedents.data import Examples
from precedents.errors import (
    IndefiniteKernelError,
    InputError,
    MissingExtraError,
    NotApplicable,
    NumericalError,
    PrecedentsError,
    UnknownNameError,
)
from precedents.evidence import Evidence
from precedents.explain import Explainer, Explanation, Precedent
from precedents.judgement import CRITERIA, Judgement, judge
from precedents.metric import FEATURES, PRECONDITIONERS, SIMILARITIES, Metric, Relevance
from precedents.model import Classifier
from precedents.paper import ALIASES, METRICS, metric
from precedents.preconditioners.fisher import InverseFisher
from precedents.preconditioners.hessian import InverseHessian

__version__ = "0.1.0"

__all__ = [
    "ALIASES",
    "CRITERIA",
    "FEATURES",
    "METRICS",
    "PRECONDITIONERS",
    "SIMILARITIES",
    "Audit",
    "Classifier",
    "Evidence",
    "Examples",
    "Explainer",
    "Explanation",
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
    "Trial",
    "UnknownNameError",
    "audit",
    "judge",
    "metric",
]

"""The public names. The package imports them from here when the first of them is asked for."""

from precedents.audit import Audit, audit
from precedents.criteria._result import Result
from precedents.criteria._trial import Trial
from precedents.data import Examples
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
from precedents.evidence import Evidence
from precedents.explain import Explainer
from precedents.explanation import Explanation, Precedent
from precedents.judgement import CRITERIA, Judgement, judge
from precedents.metric import FEATURES, PRECONDITIONERS, SIMILARITIES, Metric, Relevance
from precedents.model import Classifier
from precedents.names import ALIASES
from precedents.paper import METRICS, metric
from precedents.preconditioners.fisher import InverseFisher
from precedents.preconditioners.hessian import InverseHessian
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
    "Evidence",
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
    "audit",
    "images",
    "judge",
    "metric",
    "tables",
    "texts",
]

"""The public names. The package imports them from here when the first of them is asked for.

For who explains and audits: Explainer, audit and what they give. For who adds a part: what a similarity, a
feature map, a preconditioner, a criterion, a layer rule or an adapter is given and gives.
"""

from precedents.adapters._adapter import Adapter
from precedents.adapters._subject import Subject
from precedents.audit.audit import Audit
from precedents.audit.front_door import audit
from precedents.classifier.classifier import Classifier
from precedents.criteria import CRITERIA
from precedents.criteria._criterion import Criterion
from precedents.criteria._judgement import Judgement, judge
from precedents.criteria._result import Result, correlation, rate
from precedents.criteria._trial import Trial
from precedents.data.examples import Batch, Examples
from precedents.errors import (
    BudgetError,
    DataFileError,
    FormatError,
    IndefiniteKernelError,
    InputError,
    KeywordError,
    MissingExtraError,
    NotApplicable,
    NumericalError,
    PrecedentsError,
    StaleError,
    StoreError,
    UnknownNameError,
    UserCodeError,
)
from precedents.explain.explainer import Explainer
from precedents.explain.explanation import Explanation, Precedent
from precedents.explain.jobs.answers import Answers
from precedents.explain.jobs.compare import ExplainerComparison, compare
from precedents.explain.jobs.contrast import Contrast
from precedents.explain.jobs.groups import Group, Groups
from precedents.explain.jobs.near_duplicates import Duplicate, NearDuplicates
from precedents.explain.jobs.self_relevance import SelfRelevance
from precedents.explain.jobs.suspects import Suspects
from precedents.explain.shares import LayerShares, Shares
from precedents.explorer.front_door import explore
from precedents.gradients.factors import Dense, Outer
from precedents.gradients.layers._rule import Rule
from precedents.gradients.lookups import Lookup
from precedents.gradients.rows import Rows
from precedents.index.index import Index
from precedents.metrics.features import FEATURES
from precedents.metrics.kernel import Kernel
from precedents.metrics.metric import Metric
from precedents.metrics.names import ALIASES
from precedents.metrics.paper import METRICS, metric
from precedents.metrics.preconditioners import PRECONDITIONERS
from precedents.metrics.preconditioners._inverse import Description, Inverse, Preconditioner
from precedents.metrics.preconditioners.fisher import InverseFisher
from precedents.metrics.preconditioners.hessian import InverseHessian
from precedents.metrics.ranking import TopK, top_k
from precedents.metrics.relevance import Relevance
from precedents.metrics.similarities import SIMILARITIES
from precedents.metrics.vectors import Question, Vectors
from precedents.metrics.workspace import Workspace
from precedents.runtime.cost import Cost, Estimate
from precedents.views.render import images, tables, texts

__all__ = [
    "ALIASES",
    "CRITERIA",
    "FEATURES",
    "METRICS",
    "PRECONDITIONERS",
    "SIMILARITIES",
    "Adapter",
    "Answers",
    "Audit",
    "Batch",
    "BudgetError",
    "Classifier",
    "Contrast",
    "Cost",
    "Criterion",
    "DataFileError",
    "Dense",
    "Description",
    "Duplicate",
    "Estimate",
    "Examples",
    "Explainer",
    "ExplainerComparison",
    "Explanation",
    "FormatError",
    "Group",
    "Groups",
    "IndefiniteKernelError",
    "Index",
    "InputError",
    "Inverse",
    "InverseFisher",
    "InverseHessian",
    "Judgement",
    "Kernel",
    "KeywordError",
    "LayerShares",
    "Lookup",
    "Metric",
    "MissingExtraError",
    "NearDuplicates",
    "NotApplicable",
    "NumericalError",
    "Outer",
    "Precedent",
    "PrecedentsError",
    "Preconditioner",
    "Question",
    "Relevance",
    "Result",
    "Rows",
    "Rule",
    "SelfRelevance",
    "Shares",
    "StaleError",
    "StoreError",
    "Subject",
    "Suspects",
    "TopK",
    "Trial",
    "UnknownNameError",
    "UserCodeError",
    "Vectors",
    "Workspace",
    "audit",
    "compare",
    "correlation",
    "explore",
    "images",
    "judge",
    "metric",
    "rate",
    "tables",
    "texts",
    "top_k",
]

"""The audit: which relevance metrics may be believed on this model and these data."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from precedents.adapters._subject import Subject
from precedents.audit.agenda import Agenda
from precedents.audit.audit import Audit
from precedents.audit.ledger import Ledger
from precedents.audit.pieces import audited
from precedents.audit.scope import Scope, facts_of, manifest, settings_of, told
from precedents.classifier.classifier import Vectorise
from precedents.classifier.outputs import Place
from precedents.criteria._criterion import Criterion, Judge
from precedents.criteria._trial import Fresh, Retrain, Trial
from precedents.metrics.metric import Metric
from precedents.runtime.door import door
from precedents.runtime.given import path, real
from precedents.views.instance import Render


@door
def audit(
    model: Any,
    train: Any,
    test: Any,
    *,
    metrics: Sequence[str | Metric] | None = None,
    criteria: Sequence[str | Criterion | Judge] | None = None,
    subclasses: tuple[Any, Any] | None = None,
    retrain: Retrain | None = None,
    fresh: Fresh | None = None,
    hidden: Sequence[str] | None = None,
    vectorise: Vectorise | None = None,
    classes: Sequence[str] | None = None,
    render: Render | None = None,
    k: int = 10,
    afford: float | None = None,
    memory: int | str | None = None,
    keep: str | Path | None = None,
    name: str | None = None,
    loss: Any = None,
    output: Place | None = None,
) -> Audit:
    """Puts the metrics on trial on this model, with the instances of `test` as cases.

    All eighteen metrics of the paper run unless `metrics` names some, and all criteria that can: identical
    class for the first and the first `k` precedents, identical instance and model randomization always;
    identical subclass when `subclasses` (finer labels of the training instances and of the cases) or
    `retrain` (trains such a model on merged classes, the same for the same seed) is given. `fresh`, `hidden`,
    `vectorise`, `classes`, `render`, `memory`, `loss` and `output` are as for `Trial.of` and `Explainer`.
    `afford` is how many seconds explaining one case may take, `name` what the model is called. The rule of the
    recommendation is in `audit.recommendation`.

    With a folder as `keep`, every finished piece of work is recorded there, and the same call goes on where
    it stopped; a folder of another model, other data or other settings is refused.

    >>> import torch
    >>> x, y = torch.eye(2).repeat(3, 1), torch.arange(6) % 2
    >>> model = torch.nn.Linear(2, 2, bias=False)
    >>> _ = model.weight.data.copy_(2 * torch.eye(2))
    >>> found = audit(model, (x, y), (x, y), metrics=["cos_x"], criteria=["identical_class"], k=1)
    >>> found
    Audit(1 metrics, 1 criteria, 6 cases, recommended: cos_x)
    >>> found["cos_x", "identical_class"].verdict
    'passed'
    """
    if afford is not None:
        afford = real(afford, "afford", "Pass the seconds that explaining one case may take, as 0.5")
    subject = Subject.of(
        model,
        train,
        classes=classes,
        render=render,
        hidden=hidden,
        vectorise=vectorise,
        memory=memory,
        loss=loss,
        output=output,
    )
    trial = Trial.about(subject, test, subclasses, retrain, fresh)
    agenda = Agenda.of(trial, metrics, criteria, k)
    facts, settings = facts_of(trial, name or subject.name), settings_of(agenda, hidden)
    scope = Scope.of(agenda, facts | told(settings))
    return audited(
        agenda, scope, Ledger(None if keep is None else path(keep, "keep"), manifest(facts, settings)), afford
    )

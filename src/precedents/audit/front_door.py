"""The audit: which relevance metrics may be believed on this model and these data."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

from precedents.adapters._columns import Columns
from precedents.adapters._subject import Subject
from precedents.audit.agenda import Agenda
from precedents.audit.audit import Audit
from precedents.audit.by_engine import do_on
from precedents.audit.kept import curvature_of, opened, pinned, witnessed
from precedents.audit.limits import WITHIN, Limits
from precedents.audit.pieces import audited
from precedents.audit.scope import Scope, facts_of, manifest, settings_of, told
from precedents.classifier.classifier import Vectorise
from precedents.classifier.outputs import Place
from precedents.criteria._criterion import Criterion, Judge
from precedents.criteria._trial import Fresh, Retrain, Trial
from precedents.criteria._verdict import VerdictRule
from precedents.metrics.metric import Metric
from precedents.runtime.budget import Budget
from precedents.runtime.door import door
from precedents.runtime.engines._engine import Engine
from precedents.runtime.engines._find import engine_of
from precedents.runtime.given import path
from precedents.views.instance import Render


@door
def audit(
    model: Any,
    train: Any = None,
    test: Any = None,
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
    within: float | str | None = WITHIN,
    memory: int | str | None = None,
    keep: str | Path | None = None,
    name: str | None = None,
    loss: Any = None,
    output: Place | None = None,
    rule: VerdictRule = "interval",
    text: str | Sequence[str] | None = None,
    image: str | None = None,
    labels: Any = None,
    ids: Any = None,
    engine: str | Engine | None = None,
) -> Audit:
    """Puts the metrics on trial on this `model` and its `train`, with the instances of `test` as cases.

    All eighteen metrics of the paper run unless `metrics` names some, and all criteria that can: identical
    class for the first and the first `k` precedents, identical instance and model randomization always;
    identical subclass when `subclasses` (finer labels of the training instances and of the cases) or
    `retrain` (trains such a model on merged classes, the same for the same seed) is given. `fresh`, `hidden`,
    `vectorise`, `classes`, `render`, `memory`, `loss` and `output` are as for `Trial.of` and `Explainer`.
    `text`, `image` and `labels` name columns, also of the test set; `ids` are what the training instances are
    called, or the column that has them in both sets. A Trainer brings its training set with it,
    and its `eval_dataset` as the test set. `name` is what the model is called. The rule of the recommendation
    is in `audit.recommendation`; `rule` is that of the verdicts: "interval", by which they are earned and
    otherwise undecided, or "paper", by the means alone.

    An audit always ends: what cannot be afforded is left out before its work begins, by name and reason, and so
    is what fails. `memory` bounds the bytes that may be used. `within` bounds the seconds of all work, of
    reading the data, of estimates and by an `engine`, too, also as a text such as "10 min" (None for any):
    metrics of the least work come first, one whose estimate does not fit into the rest of the time, where work
    so far took longer than its estimate as many times that, is left out, and what is not done when the time is
    over is broken off between two blocks. A step that has no parts, as your own functions, ends all the same.
    `afford` is how many seconds explaining one case may take: a metric by which the first case, fit included,
    is estimated to take more than twice as long is left out, and of the others one is recommended by which one
    case more was measured to take no longer.

    With a folder as `keep`, every finished piece of work is recorded there, also the partial sums of long fits,
    and the same call goes on where it stopped; what was left out or failed is tried again. A folder of another
    model, other data, functions that do something else or other settings is refused. Where no `memory` is
    given, it goes on with the kind of curvature that it began with.

    With an `engine`, as "processes", "ray" or "dask(address=tcp://host:8786)", the metrics of a kernel are a
    task for one of its workers, and are recorded when all are done. Numbers do not depend on it. `memory` is
    what a worker may use; the model and the data must be able to travel.

    >>> import torch
    >>> x, y = torch.eye(2).repeat(3, 1), torch.arange(6) % 2
    >>> model = torch.nn.Linear(2, 2, bias=False)
    >>> _ = model.weight.data.copy_(2 * torch.eye(2))
    >>> found = audit(model, (x, y), (x, y), metrics=["cos_x"], criteria=["identical_class"], k=1)
    >>> found
    Audit(1 metrics, 1 criteria, 6 cases, recommended: cos_x)
    >>> found["cos_x", "identical_class"].verdict
    'undecided'
    """
    began, keep = monotonic(), None if keep is None else path(keep, "keep")
    limits = Limits.of(afford, within)
    chosen = None if engine is None else engine_of(engine)
    shared = None if chosen is None else replace(Budget.of(memory), sharers=chosen.at_once)
    subject = Subject.of(
        model,
        train,
        classes=classes,
        render=render,
        hidden=hidden,
        vectorise=vectorise,
        memory=memory if shared is None else shared,
        loss=loss,
        output=output,
        columns=Columns.of(text, image, labels, ids),
    )
    trial = Trial.about(subject, test, subclasses, retrain, fresh)
    pinned(trial, keep)
    agenda = Agenda.of(trial, metrics, criteria, k, rule)
    facts, settings = facts_of(trial, name or subject.name), settings_of(agenda, hidden)
    scope = Scope.of(agenda, facts | told(settings) | curvature_of(agenda))
    with opened(agenda, keep, manifest(facts, settings)) as ledger:
        work = None if chosen is None else partial(do_on, chosen)
        limits = replace(limits, before=monotonic() - began)
        return audited(witnessed(agenda, ledger), scope, ledger, limits, work)

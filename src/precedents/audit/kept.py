"""Kept work of an audit: what it is known by, so that nothing of another model, data or function is taken for
it.

The model, its loss, `vectorise` and random models are known by what they make of the training set and of the
cases; `retrain`, which is dear, by its code and the files that it reads, and where one of them differs,
by the model that it trains; criteria,
feature maps and other parts that a user wrote, by their code.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import nn

from precedents.adapters._find import adapter_of
from precedents.adapters._subject import Subject
from precedents.audit.agenda import Agenda
from precedents.audit.audit import NO_ROOM
from precedents.audit.ledger import MANIFEST, WITNESS, Ledger, read_manifest
from precedents.classifier.behaviour import Behaviour, behaviour, logits, tolerance
from precedents.criteria._criterion import Unlisted
from precedents.criteria._trial import Retrain, Trial
from precedents.data.examples import Examples
from precedents.errors import NotApplicable, PrecedentsError
from precedents.metrics.features.inputs import inputs
from precedents.metrics.metric import Metric
from precedents.metrics.preconditioners.hessian import CURVATURE, NAMES, InverseHessian
from precedents.runtime.code import code_mark, is_foreign
from precedents.runtime.files_read import files_read, stamps

RETRAIN = "retrain, seed "
CODE = "code of retrain"
FILES = "files"  # the first word of pieces that are what retrain read


def settled(metric: Metric, trial: Trial) -> str:
    """The metric as it is computed here: of the kind of curvature that was chosen."""
    try:
        return str(trial.relevance(metric).metric)
    except PrecedentsError:  # it has none here
        return str(metric)


def curvature_of(agenda: Agenda) -> dict[str, str]:
    """A fact in words: what the Hessian is here, and what the memory had no room for; none without one."""
    trial = agenda.trial
    for metric in agenda.metrics.values():
        recipe = metric.preconditioner
        if isinstance(recipe, InverseHessian) and recipe.kind == "auto":
            try:
                kind, lacking = NAMES[recipe.chosen(trial.workspace)], recipe.instead_of(trial.workspace)
            except PrecedentsError:  # it has none here
                return {}
            return {"curvature": kind if lacking is None else f"{kind}, {NO_ROOM} {lacking}"}
    return {}


def pinned(trial: Trial, keep: str | Path | None) -> None:
    """Where no memory was given, the kind of curvature is the one that the kept work began with."""
    budget, cache = trial.workspace.classifier.budget, trial.workspace.cache
    if keep is not None and budget.given is None and (Path(keep) / MANIFEST).is_file():
        kind = read_manifest(Path(keep)).get("kind of curvature")
        if kind is not None:
            cache.put(CURVATURE, kind)


def opened(agenda: Agenda, keep: str | Path | None, known: Mapping[str, Any]) -> Ledger:
    """The ledger of an audit; with a folder, of kept work that is the same. `known` are facts and settings."""
    if keep is None:
        return Ledger(None, {})
    model = agenda.trial.workspace.classifier
    ledger = Ledger(keep, {**known, **_marks(agenda)}, _behaviour(agenda), tolerance(model))
    try:
        _same_retrain(agenda.trial, ledger)
    except BaseException:
        ledger.close()
        raise
    return ledger


def witnessed(agenda: Agenda, ledger: Ledger) -> Agenda:
    """The agenda with a `retrain` whose models are compared with what it gave before."""
    trial = agenda.trial
    if trial.retrain is None or ledger.log is None:
        return agenda
    return replace(agenda, trial=_watched(trial, ledger))


def _watched(trial: Trial, ledger: Ledger) -> Trial:
    assert trial.retrain is not None
    return replace(trial, retrain=Witnessed(trial.retrain, trial.workspace.subject, ledger))


@dataclass(frozen=True, eq=False)
class Witnessed:
    """A `retrain` that must give what it gave before."""

    retrain: Retrain
    subject: Subject
    ledger: Ledger

    def __reduce__(self) -> tuple[Any, ...]:
        """Elsewhere it is the user's own: what it gives was witnessed here."""
        return _plain_retrain, (self.retrain,)

    def __call__(self, train: Examples, seed: int) -> nn.Module:
        """The trained model."""
        with files_read() as files:
            model = self.retrain(train, seed)
        self.ledger.once((FILES, f"{RETRAIN}{seed}"), lambda: files)
        if isinstance(model, nn.Module):
            loss = self.subject.classifier.loss.merged()
            made = self.subject.classifier.another(adapter_of(model).module, train, loss)
            self.ledger.witness(f"{RETRAIN}{seed}", logits(made, train))
        return model


def _plain_retrain(retrain: Retrain) -> Retrain:
    return retrain


def _same_retrain(trial: Trial, ledger: Ledger) -> None:
    """A function of other code or files is asked for the models that were recorded: it may do the same."""
    if trial.retrain is None:
        return
    mark = code_mark(trial.retrain)
    read = [files for piece, files in ledger.values.items() if piece[0] == FILES]
    if ledger.once((WITNESS, CODE), lambda: mark) != mark or any(stamps(files) != files for files in read):
        watched = _watched(trial, ledger)
        seeds = [name.removeprefix(RETRAIN) for _, name in _witnesses(ledger) if name.startswith(RETRAIN)]
        for seed in map(int, seeds):
            watched.merged(seed)


def _witnesses(ledger: Ledger) -> list[tuple[str, ...]]:
    return [piece for piece in ledger.values if piece[0] == WITNESS and len(piece) == 2]


def _marks(agenda: Agenda) -> dict[str, Any]:
    """What else the numbers depend on, in plain values."""
    trial = agenda.trial
    model = trial.workspace.classifier
    curvature = {name: settled(metric, trial) for name, metric in agenda.metrics.items()}
    parts = dict(_parts(agenda))
    return {
        "curvature": {name: text for name, text in curvature.items() if text != str(agenda.metrics[name])},
        "kind of curvature": trial.workspace.cache.get(CURVATURE),
        "trainable": [name for name, p in model.module.named_parameters() if p.requires_grad],
        "hidden layers": [str(tap) for tap in model.taps],
        "own parts": {name: code_mark(part) for name, part in parts.items() if is_foreign(part)},
    }


def _parts(agenda: Agenda) -> Iterator[tuple[str, Any]]:
    for name, metric in agenda.metrics.items():
        for kind in ("features", "preconditioner", "similarity"):
            yield f"{kind} of {name}", getattr(metric, kind)
    for text, criterion in agenda.criteria.items():
        yield text, criterion.judge if isinstance(criterion, Unlisted) else criterion


def _behaviour(agenda: Agenda) -> Behaviour:
    """What the model, its loss, its vectors and a random model make of the training set and the cases."""
    trial = agenda.trial
    workspace, seen = trial.workspace, any(each.features is inputs for each in agenda.metrics.values())
    try:
        found = behaviour(workspace.classifier, workspace.train, seen=seen)
    except NotApplicable:
        found = behaviour(workspace.classifier, workspace.train, seen=False)
    found["logits of the cases"] = logits(workspace.classifier, trial.cases)
    for each in agenda.criteria.values():
        for name, model in each.others(trial).items():
            found[name] = logits(model, workspace.train)
    return found

"""Scope: what was audited, with what and by which settings."""

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import torch

from precedents.audit.agenda import Agenda
from precedents.classifier.behaviour import logits, summary
from precedents.criteria._trial import Trial
from precedents.data.examples import Examples
from precedents.seen import clipped


@dataclass(frozen=True)
class Scope:
    """What was audited: how much of everything, the names of the classes, and facts in words."""

    train: int  # training instances
    cases: int
    classes: int
    k: int
    names: Sequence[str] | None  # of the classes
    facts: Mapping[str, str]  # versions, fingerprints, settings

    @classmethod
    def of(cls, agenda: Agenda, facts: Mapping[str, str]) -> "Scope":
        """The scope of what is on the agenda; `facts` are about it, in words."""
        workspace = agenda.trial.workspace
        return cls(
            train=len(workspace.train),
            cases=len(agenda.trial.cases),
            classes=workspace.classifier.classes,
            k=agenda.k,
            names=workspace.subject.classes,
            facts=facts,
        )

    def name(self, label: int) -> str:
        """The name of the class with this label, or its number."""
        return str(label) if self.names is None else clipped(self.names[label])


def facts_of(trial: Trial, name: str) -> dict[str, str]:
    """What is audited with what; the fingerprints tell it from anything else. `name` is the model's."""
    import precedents

    test = Examples(trial.cases.source, trial.truth)
    return {
        "model": name,
        "model fingerprint": trial.workspace.classifier.fingerprint(),
        "training set fingerprint": trial.workspace.train.fingerprint(),
        "test set fingerprint": test.fingerprint(),
        "logits": summary(logits(trial.workspace.classifier, trial.workspace.train)),
        "precedents": precedents.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


def settings_of(agenda: Agenda, hidden: Sequence[str] | None) -> dict[str, Any]:
    """What else the numbers depend on, in words; what functions do is compared elsewhere, see `kept`.

    `hidden` are the hidden layers that the user named, none if they were found.
    """
    trial, classifier = agenda.trial, agenda.trial.workspace.classifier
    finer = b"".join(part.numpy().tobytes() for part in trial.subclasses or ())
    return {
        "metrics": {name: str(metric) for name, metric in agenda.metrics.items()},
        "criteria": list(agenda.criteria),
        "k": agenda.k,
        "rule": agenda.rule,
        "hidden": None if hidden is None else list(hidden),
        "subclasses": blake2b(finer, digest_size=16).hexdigest() if finer else None,
        "retrain": trial.retrain is not None,
        "fresh": trial.fresh is not None,
        "vectorise": classifier.vectorise is not None,
        "loss": str(classifier.loss),
    }


def manifest(facts: Mapping[str, str], settings: Mapping[str, Any]) -> dict[str, Any]:
    """What kept work is recognised by: all but the model's name, the Python and what rounding changes."""
    marks = {name: text for name, text in facts.items() if name not in ("model", "python", "logits")}
    return {**marks, **settings}


def told(settings: Mapping[str, Any]) -> dict[str, str]:
    """Settings in words, as the report shows them."""
    return {name: _word(value) for name, value in settings.items()}


def _word(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return "given" if value else "not given"
    return ", ".join(value) if isinstance(value, (dict, list)) else str(value)

"""The audit: which relevance metrics may be believed on this model and these data."""

import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import torch

from precedents.adapters._find import read
from precedents.audit.agreement import agreement
from precedents.audit.audit import Audit, Case, Scope
from precedents.audit.json import (
    plain_agreement,
    plain_outcome,
    read_agreement,
    read_outcome,
    read_profile,
)
from precedents.audit.ledger import Ledger
from precedents.audit.profile import Profile, example_places, kernel_name, norms, profile
from precedents.audit.recommendation import recommend
from precedents.audit.report import shown_instances
from precedents.classifier.classifier import Vectorise
from precedents.classifier.outputs import Place
from precedents.criteria._judgement import CRITERIA, Inapplicable, Judgement, attempted
from precedents.criteria._result import Criterion
from precedents.criteria._trial import Fresh, Retrain, Trial
from precedents.data.examples import Examples
from precedents.errors import InputError
from precedents.explain.explainer import checked_names
from precedents.metrics.metric import Metric
from precedents.metrics.paper import METRICS, name_of
from precedents.metrics.paper import metric as metric_of
from precedents.metrics.ranking import checked_k
from precedents.registry import written
from precedents.runtime.cost import elapsed
from precedents.runtime.progress import tracked
from precedents.views.comparison import spread_of
from precedents.views.shown import Render, Shown, shown

EACH = 2  # right and wrong predictions that are shown


def audit(
    model: Any,
    train: Any,
    test: Any,
    *,
    metrics: Sequence[str | Metric] | None = None,
    criteria: Sequence[str | Criterion] | None = None,
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
    """
    if afford is not None and not afford > 0:
        raise InputError(f"afford is {afford!r}. Pass the seconds that explaining one case may take, as 0.5.")
    trial = Trial.of(
        model,
        train,
        test,
        hidden=hidden,
        vectorise=vectorise,
        subclasses=subclasses,
        retrain=retrain,
        fresh=fresh,
        memory=memory,
        loss=loss,
        output=output,
    )
    k = checked_k(k, len(trial.workspace.train))
    reading = read(model)
    names = checked_names(classes or reading.classes, trial.workspace.classifier)
    render = render or reading.render
    wanted = list(METRICS) if metrics is None else [metrics] if isinstance(metrics, (str, Metric)) else metrics
    chosen = {name_of(each): each for each in map(metric_of, wanted)}
    laws = _laws(trial, criteria, k)
    if not chosen or not laws:
        raise InputError("There is nothing to audit. Name at least one metric and one criterion, or neither.")
    facts, settings = _facts(trial, name or reading.name), _settings(trial, chosen, laws, k, hidden)
    marks = {name: text for name, text in facts.items() if name not in ("model", "python")}
    ledger = Ledger(keep, marks | settings)
    examples = _examples(trial)
    shown_cases = [case.index for case in examples]
    for piece, work in tracked(list(_pieces(trial, chosen, laws, k, shown_cases)), "audit"):
        ledger.once(piece, work)
    made = _made(ledger, chosen, laws)
    selecting = {name: each for name, each in chosen.items() if isinstance(made["profiles"][name], Profile)}
    agreed = ledger.once(("agreement",), lambda: plain_agreement(agreement(trial, selecting, k)))
    costs = {name: ledger.values["portrait", name]["seconds"] for name in selecting}
    return Audit(
        scope=Scope(
            train=len(trial.workspace.train),
            cases=len(trial.cases),
            classes=trial.workspace.classifier.classes,
            k=k,
            names=names,
            facts=facts | {name: _told(value) for name, value in settings.items()},
        ),
        **made,
        agreement=read_agreement(agreed),
        duplicates=_duplicates(trial),
        examples=examples,
        recommendation=recommend(made["judgement"], made["profiles"], costs, afford),
        costs=costs,
        pictures=_pictures(trial, shown_cases, made["profiles"], render),
        spread=spread_of(trial.workspace.train, render),
    )


def _laws(trial: Trial, criteria: Sequence[str | Criterion] | None, k: int) -> dict[str, Criterion]:
    """The criteria by their texts: those given, or all that can run."""
    if criteria is None:
        finer = trial.subclasses is not None or trial.retrain is not None
        criteria = ["model_randomization", "model_randomization(label=shared)"]
        for name in ("identical_class", "identical_subclass")[: 1 + finer]:
            criteria += [name, f"{name}(k={k})"]
        criteria.append("identical_instance")
    given = [criteria] if isinstance(criteria, str) else criteria
    laws = [CRITERIA.read(each) if isinstance(each, str) else each for each in given]
    return {written(law): law for law in laws}


def _pieces(
    trial: Trial, metrics: Mapping[str, Metric], laws: Mapping[str, Criterion], k: int, cases: Sequence[int]
) -> Iterator[tuple[tuple[str, ...], Callable[[], Any]]]:
    """The work, each piece with its name; what is cheap and shared by the others comes first."""
    kernels = {kernel_name(metric): metric for metric in metrics.values()}
    for name, metric in metrics.items():
        yield ("portrait", name), partial(_profile, trial, metric, k, cases)
    for name, metric in kernels.items():
        yield ("norms", name), partial(_norms, trial, metric)
    for name, metric in metrics.items():
        for criterion, law in laws.items():
            yield (
                ("outcome", name, criterion),
                partial(lambda law, metric: plain_outcome(attempted(lambda: law(trial, metric))), law, metric),
            )


def _profile(trial: Trial, metric: Metric, k: int, cases: Sequence[int]) -> dict[str, Any]:
    """With the measured seconds of explaining one more case beside it."""
    made = attempted(lambda: profile(trial, metric, k, cases))
    if isinstance(made, Inapplicable):
        return asdict(made)
    relevance, one = trial.relevance(metric), trial.cases.selected([0])
    return asdict(made) | {"seconds": elapsed(lambda: relevance.top(one, k), times=1)}


def _norms(trial: Trial, metric: Metric) -> list[float]:
    made = attempted(lambda: norms(trial, metric))
    return [] if isinstance(made, Inapplicable) else made


def _made(ledger: Ledger, metrics: Mapping[str, Metric], laws: Mapping[str, Criterion]) -> dict[str, Any]:
    """What the pieces come to."""
    value, kernels = ledger.values, dict.fromkeys(map(kernel_name, metrics.values()))
    outcomes = {
        (name, criterion): read_outcome(value["outcome", name, criterion] | {"criterion": criterion})
        for criterion in laws
        for name in metrics
    }
    return {
        "judgement": Judgement(outcomes),
        "profiles": {name: read_profile(value["portrait", name]) for name in metrics},
        "norms": {kernel: value["norms", kernel] for kernel in kernels},
    }


def _examples(trial: Trial) -> list[Case]:
    """The first cases that are predicted right, and the first that are not."""
    places = example_places(trial, EACH)
    return [Case(i, int(trial.cases.labels[i]), int(trial.truth[i])) for i in places]


def _duplicates(trial: Trial) -> list[tuple[int, int]]:
    """Cases and training instances whose inputs are equal, byte for byte."""
    places: dict[bytes, list[int]] = {}
    for index, mark in enumerate(trial.workspace.train.marks()):
        places.setdefault(mark, []).append(index)
    return [(case, index) for case, mark in enumerate(trial.cases.marks()) for index in places.get(mark, [])]


def _pictures(
    trial: Trial,
    cases: Sequence[int],
    profiles: Mapping[str, Profile | Inapplicable],
    render: Render | None,
) -> dict[tuple[str, int], Shown]:
    """What a person sees of the cases and training instances on the report page."""
    instances = shown_instances([each for each in profiles.values() if isinstance(each, Profile)])
    pictures = {}
    for kind, examples, places in (("case", trial.cases, cases), ("train", trial.workspace.train, instances)):
        for place, instance in zip(places, examples.seen(places), strict=True):
            pictures[kind, place] = shown(instance, render)
    return pictures


def _facts(trial: Trial, name: str | None) -> dict[str, str]:
    """What was audited with what; the fingerprints tell it from anything else."""
    import precedents

    model = trial.workspace.classifier
    test = Examples(trial.cases.source, trial.truth)
    return {
        "model": type(model.module).__name__ if name is None else name,
        "model fingerprint": model.fingerprint(),
        "training set fingerprint": trial.workspace.train.fingerprint(),
        "test set fingerprint": test.fingerprint(),
        "precedents": precedents.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


def _settings(
    trial: Trial,
    metrics: Mapping[str, Metric],
    laws: Mapping[str, Criterion],
    k: int,
    hidden: Sequence[str] | None,
) -> dict[str, Any]:
    """What else the numbers depend on; functions are known by their presence alone."""
    finer = b"".join(part.numpy().tobytes() for part in trial.subclasses or ())
    return {
        "metrics": {name: str(metric) for name, metric in metrics.items()},
        "criteria": list(laws),
        "k": k,
        "hidden": None if hidden is None else list(hidden),
        "subclasses": blake2b(finer, digest_size=16).hexdigest() if finer else None,
        "retrain": trial.retrain is not None,
        "fresh": trial.fresh is not None,
        "vectorise": trial.workspace.classifier.vectorise is not None,
        "loss": str(trial.workspace.classifier.loss),
    }


def _told(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return "given" if value else "not given"
    return ", ".join(value) if isinstance(value, (dict, list)) else str(value)

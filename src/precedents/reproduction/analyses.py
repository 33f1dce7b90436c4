"""What a repeat tells besides the criteria: norms, hubs, residuals, a map, examples, stability."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from precedents.audit.profile import (
    OFFERED,
    Offered,
    example_places,
    firsts,
    kernel_name,
    lengths,
    offered,
)
from precedents.criteria._spearman import spearman
from precedents.criteria._trial import Trial
from precedents.data.examples import Examples
from precedents.data.inputs import mapped
from precedents.errors import BudgetError, NotApplicable, NumericalError
from precedents.metrics.features.all_hidden import all_hidden
from precedents.metrics.metric import Metric
from precedents.metrics.paper import METRICS
from precedents.metrics.preconditioners.fisher import InverseFisher
from precedents.metrics.preconditioners.hessian import InverseHessian
from precedents.metrics.ranking import top_k
from precedents.metrics.similarities.cosine import cosine
from precedents.reproduction.records import Piece
from precedents.views.instance import as_png, shown
from precedents.zoo.dataset import Dataset

if TYPE_CHECKING:
    from precedents.reproduction.protocol import Repeat

FIRST = ("dot_if", "dot_fisher", "dot_grad", "cos_grad")  # whose first precedents are looked at
HUBS, EACH, POINTS, K = 5, 3, 500, 10
QUANTILES = torch.linspace(0, 1, 21, dtype=torch.double)
AGAIN = 2  # repeats in which a second model is trained on the same instances

Made = tuple[Piece, Callable[[], Any]]
Ready = Callable[[], Trial]


def pieces(repeat: "Repeat", part: str, metrics: Mapping[str, Metric]) -> Iterator[Made]:
    """The analyses of one of the two models; what is one picture is made in the first repeat."""
    trial = partial(repeat.trial, part)
    if "cos_grad" in metrics:
        yield ("residuals", part), lambda: _residuals(trial())
    if part == "merged":
        if repeat.index == 0 and "cos_all" in metrics and find_spec("umap") is not None:
            yield ("umap",), lambda: _umap(trial(), repeat.dataset)
        return
    for name in FIRST:
        if name in metrics:
            kernel = _kernel(name)
            sharing = {each: repeat.metric(each) for each in FIRST if _kernel(each) == kernel}
            yield ("hubs", name), partial(_hubs, trial, metrics[name])
            yield ("norms", kernel), partial(_norms, trial, sharing)
    dear = (InverseHessian, InverseFisher) if repeat.setting.curvature == "ekfac" else InverseHessian
    cheap = {name: m for name, m in METRICS.items() if not isinstance(m.preconditioner, dear)}
    if repeat.index == 0 and "cos_grad" in metrics:
        yield ("gallery",), lambda: _gallery(trial(), cheap, repeat.dataset)
    if repeat.index < AGAIN and not repeat.setting.pretraining:
        for name in (each for each in cheap if each in metrics):
            yield ("stability", name), partial(_stability, trial, partial(repeat.trial, "again"), cheap[name])


def _kernel(name: str) -> str:
    return kernel_name(METRICS[name]).partition("(")[0]


def _hubs(ready: Ready, metric: Metric) -> list[list[float]]:
    trial = ready()
    norms = lengths(trial, metric)
    if not len(norms):
        return []
    first, angles = _first(trial, metric), cosine(trial.kernel(metric))
    rows = []
    for hub in firsts(first, trial.workspace.train.labels)[:HUBS]:
        near = float(angles[first == hub.index, hub.index].mean())
        norm = norms[hub.index]
        shorter = 100 * float((norms < norm).double().mean())
        rows.append([hub.index, hub.count, hub.label, near, float(norm), shorter])
    return rows


def _norms(ready: Ready, metrics: Mapping[str, Metric]) -> dict[str, Any]:
    trial = ready()
    norms = lengths(trial, next(iter(metrics.values()))).clamp(min=1e-300).log10()
    chosen = {name: quantiles(norms[_first(trial, m)]) for name, m in metrics.items() if len(norms)}
    return {"all": quantiles(norms), "chosen": chosen}


def _first(trial: Trial, metric: Metric) -> Tensor:
    """The first precedent of each case [m]."""
    return top_k([trial.scores(metric)], 1).indices[:, 0]


def quantiles(values: Tensor) -> list[float]:
    """The values at 0, 5, ..., 100 percent."""
    return torch.quantile(values.double(), QUANTILES).tolist() if len(values) else []


def _residuals(trial: Trial) -> dict[str, Any]:
    residual = trial.scores(Metric.read("cosine:residual"))
    gradient = trial.scores(METRICS["cos_grad"])
    case, train = trial.cases.labels, trial.workspace.train.labels
    if trial.subclasses is not None:
        train, case = trial.subclasses
    same = case[:, None] == train[None, :]
    return {
        name: {"residual": quantiles(residual[pairs]), "gradient": quantiles(gradient[pairs])}
        for name, pairs in (("same", same), ("other", ~same))
    }


def _umap(trial: Trial, dataset: Dataset) -> dict[str, Any]:
    from umap import UMAP

    assert trial.subclasses is not None
    model, train = trial.workspace.classifier, trial.workspace.train
    if not model.taps:
        return {}
    some = train.take(range(min(POINTS, len(train))))
    threads = torch.get_num_threads()
    try:
        xy = UMAP(random_state=0, n_jobs=1).fit_transform(all_hidden(model, some).numpy())
    finally:
        torch.set_num_threads(threads)  # UMAP's numba changes it for the whole process
    return {
        "xy": [[float(x), float(y)] for x, y in xy],
        "subclass": [dataset.classes[i] for i in trial.subclasses[0][: len(some.labels)].tolist()],
        "superclass": some.labels.tolist(),
    }


def _gallery(trial: Trial, metrics: Mapping[str, Metric], dataset: Dataset) -> dict[str, Any]:
    places, train = example_places(trial, EACH), trial.workspace.train
    tops = {
        name: top_k([trial.scores(metric)[places]], OFFERED)
        for name, metric in metrics.items()
        if _works(trial, metric)
    }
    return {
        "cases": [
            {
                "case": case,
                "predicted": dataset.classes[int(trial.cases.labels[case])],
                "truth": dataset.classes[int(trial.truth[case])],
                "shown": _shown(dataset, trial.cases, case),
                "by": {
                    name: [_precedent(dataset, train, each) for each in offered(top, train.labels, row)]
                    for name, top in tops.items()
                },
            }
            for row, case in enumerate(places)
        ]
    }


def _precedent(dataset: Dataset, train: Examples, each: Offered) -> dict[str, Any]:
    return {
        "index": each.index,
        "label": dataset.classes[each.label],
        "score": each.score,
        "shown": _shown(dataset, train, each.index),
    }


def _works(trial: Trial, metric: Metric) -> bool:
    try:
        trial.scores(metric)
    except (NotApplicable, NumericalError, BudgetError):
        return False
    return True


def _shown(dataset: Dataset, examples: Examples, place: int) -> dict[str, Any]:
    instance = mapped(lambda leaf: leaf[0], examples.take([place]).inputs)
    value = shown(instance, dataset.render)
    if isinstance(value, str):
        return {"text": value}
    if isinstance(value, Mapping):
        return {"table": {name: float(number) for name, number in value.items()}}
    return {"png": as_png(value).partition(",")[2]}


def _stability(ready: Ready, again: Ready, metric: Metric) -> dict[str, Any]:
    """Whether a model trained on the same instances from another seed cites the same precedents."""
    trial, other = ready(), again()
    if not _works(trial, metric):
        return {}
    alike = trial.cases.labels == other.cases.labels
    first, second = (each.scores(metric)[alike] for each in (trial, other))
    tops = [top_k([scores], K).indices for scores in (first, second)]
    shared = (tops[0][:, :, None] == tops[1][:, None, :]).any(dim=2).double().mean()
    return {
        "overlap": float(shared),
        "correlation": float(spearman(first, second).mean()),
        "cases": int(alike.sum()),
    }

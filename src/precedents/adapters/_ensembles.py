"""scikit-learn's ensembles of explained models: soft votes, stacks and calibrations, as one module each.

It has the probabilities of the whole. Parts may be pipelines: what these do to the rows is done side by side,
and each part is fed its own columns. What is not exact so (hard votes, isotonic calibrations, parts that are
trees) is refused with the part to take. The loss is the cross entropy of what the ensemble predicts; its parts
were fitted by their own. The numbers that a calibration was fitted to after its models are no parameters.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid, pad

from precedents.errors import InputError

SMALL = 1e-12  # what scikit-learn adds to probabilities before it takes their logarithm


@dataclass(frozen=True, eq=False)
class Opened:
    """A fitted classifier: what is done to its rows, and the module that is fed what comes out."""

    steps: tuple[Any, ...]  # transformers, in their order
    module: nn.Module
    width: int  # of what the module is fed


@dataclass(frozen=True)
class Whereabouts:
    """Where in a user's model a part of it is, and what comes before it, as one would type it."""

    part: str = "model"
    before: tuple[str, ...] = ()

    def typed(self, part: str) -> str:
        """What to type for a part of it that takes the same rows."""
        return f"sklearn.pipeline.make_pipeline({', '.join([*self.before, part])})" if self.before else part


Opener = Callable[..., Opened]  # of a part, its place, and whether its decision values are meant


class SomeColumns(nn.Module):
    """A part that is fed some of the columns."""

    def __init__(self, part: nn.Module, start: int, stop: int) -> None:
        super().__init__()
        self.part, self.start, self.stop = part, start, stop

    def forward(self, x: Tensor) -> Tensor:
        """From [b, d] to [b, classes]."""
        return self.part(x[:, self.start : self.stop])


class SoftVote(nn.Module):
    """The logarithm of the weighted mean of the parts' probabilities."""

    shares: Tensor

    def __init__(self, parts: Sequence[nn.Module], weights: Any = None) -> None:
        super().__init__()
        self.parts = nn.ModuleList(parts)
        given = torch.ones(len(parts)) if weights is None else torch.as_tensor(np.asarray(weights))
        self.register_buffer("shares", given.double() / given.double().sum())

    def forward(self, x: Tensor) -> Tensor:
        """From [b, d] to [b, classes]."""
        each = torch.stack([part(x).log_softmax(dim=1) for part in self.parts])
        return (each + self.shares.log()[:, None, None]).logsumexp(dim=0)


class Stack(nn.Module):
    """What the last model makes of the parts' probabilities, and of the rows if they are passed through."""

    def __init__(self, parts: Sequence[nn.Module], last: nn.Module, rows: nn.Module | None) -> None:
        super().__init__()
        self.parts, self.last, self.rows = nn.ModuleList(parts), last, rows

    def forward(self, x: Tensor) -> Tensor:
        """From [b, d] to [b, classes]; of two classes the second one's probability stands for both."""
        each = [part(x).softmax(dim=1) for part in self.parts]
        each = [found[:, 1:] if found.shape[1] == 2 else found for found in each]
        return self.last(torch.cat(each if self.rows is None else [*each, self.rows(x)], dim=1))


class Probabilities(nn.Module):
    """A module with the probabilities of the classes, where another has their logits."""

    def __init__(self, part: nn.Module) -> None:
        super().__init__()
        self.part = part

    def forward(self, x: Tensor) -> Tensor:
        """From [b, d] to [b, classes]."""
        return self.part(x).softmax(dim=1)


class Sigmoids(nn.Module):
    """Platt's scaling: for each class the sigmoid of a line in its decision value, divided by their sum."""

    slopes: Tensor
    offsets: Tensor

    def __init__(self, part: nn.Module, calibrators: Sequence[Any]) -> None:
        super().__init__()
        self.part = part
        self.register_buffer("slopes", _numbers(each.a_ for each in calibrators))
        self.register_buffer("offsets", _numbers(each.b_ for each in calibrators))

    def forward(self, x: Tensor) -> Tensor:
        """From [b, d] to [b, classes]; of two classes the second one's value is enough."""
        values = self.part(x)
        lines = -(self.slopes * values[:, -len(self.slopes) :] + self.offsets)
        return pad(lines, (1, 0)) if len(self.slopes) == 1 else logsigmoid(lines)


class Temperature(nn.Module):
    """All logits times one number; decision values of two classes are one column, probabilities have two."""

    scale: Tensor

    def __init__(self, part: nn.Module, calibrators: Sequence[Any]) -> None:
        super().__init__()
        self.part = part
        self.register_buffer("scale", _numbers([calibrators[0].beta_]))

    def forward(self, x: Tensor) -> Tensor:
        """From [b, d] to [b, classes]."""
        values = self.part(x)
        if isinstance(self.part, Probabilities):
            values = (values + SMALL).log()
        return self.scale * (torch.cat([-values, values], dim=1) if values.shape[1] == 1 else values)


CALIBRATIONS = {"sigmoid": Sigmoids, "temperature": Temperature}


def voting(model: Any, opened: Opener, place: Whereabouts) -> Opened:
    """A soft vote of some models as one module: the mean of their probabilities."""
    if model.voting != "soft":
        raise instead(model, "It counts votes, which have no likelihood.", opened, place)
    steps, modules, width = beside(_parts(model, opened, place))
    return Opened(steps, SoftVote(modules, model._weights_not_none), width)


def stacking(model: Any, opened: Opener, place: Whereabouts) -> Opened:
    """Of a stack on probabilities."""
    if set(model.stack_method_) != {"predict_proba"}:
        raise instead(model, "Not all of its models give probabilities to the last one.", opened, place)
    final = model.final_estimator_
    if not _can(final, opened) or (last := opened(final, place)).steps:
        raise instead(model, f"Its last model is a {type(final).__name__}.", opened, place)
    parts = _parts(model, opened, place)
    if not model.passthrough:
        steps, modules, width = beside(parts)
        return Opened(steps, Stack(modules, last.module, None), width)
    given = getattr(model, "n_features_in_", parts[0].width)
    steps, [*modules, rows], width = beside([*parts, Opened((), nn.Identity(), given)])
    return Opened(steps, Stack(modules, last.module, rows), width)


def calibrated(model: Any, opened: Opener, place: Whereabouts) -> Opened:
    """Of sigmoids or a temperature on decision values that a module has, or on its probabilities."""
    parts = []
    for each in model.calibrated_classifiers_:
        if each.method not in CALIBRATIONS:
            reason = f"Its {each.method} calibration goes in steps, which have no gradient."
            raise instead(model, reason, opened, place)
        if len(each.estimator.classes_) != len(model.classes_):
            raise instead(model, "One of its models was fitted on fewer classes.", opened, place)
        try:
            found = opened(each.estimator, decisions=True)
        except InputError:
            reason = f"It calibrates what a {type(each.estimator).__name__} says, which no module does."
            raise instead(model, reason, opened, place) from None
        module = CALIBRATIONS[each.method](found.module, each.calibrators)
        parts.append(Opened(found.steps, module, found.width))
    steps, modules, width = beside(parts)
    return Opened(steps, SoftVote(modules) if len(modules) > 1 else modules[0], width)


def beside(parts: Sequence[Opened]) -> tuple[tuple[Any, ...], list[nn.Module], int]:
    """The steps before all parts, their modules, and the width of what these are fed.

    Different steps are done side by side, equal ones once, and each module gets its own columns.
    """
    from sklearn.pipeline import FeatureUnion

    marks = [_mark(part.steps) for part in parts]
    own = dict(zip(marks, parts, strict=True))
    if len(own) == 1:
        return parts[0].steps, [part.module for part in parts], parts[0].width
    starts = dict(zip(own, np.cumsum([0, *(part.width for part in own.values())]).tolist(), strict=False))
    modules: list[nn.Module] = [
        SomeColumns(part.module, starts[mark], starts[mark] + part.width)
        for mark, part in zip(marks, parts, strict=True)
    ]
    union = FeatureUnion([(f"part {i}", _one(part.steps)) for i, part in enumerate(own.values())])
    return (union,), modules, sum(part.width for part in own.values())


def _mark(steps: tuple[Any, ...]) -> str:
    """A text that equal steps share; what cannot be compared, as an unnamed function, is equal to nothing."""
    import joblib  # type: ignore[import-untyped]

    try:
        return str(joblib.hash(steps)) if steps else ""
    except Exception:
        return str(id(steps))


def _one(steps: tuple[Any, ...]) -> Any:
    """Fitted transformers as one."""
    from sklearn.pipeline import make_pipeline

    return "passthrough" if not steps else steps[0] if len(steps) == 1 else make_pipeline(*steps)


def instead(model: Any, reason: str, opened: Opener, place: Whereabouts) -> InputError:
    """The error that names the first part which can be explained, and what to type."""
    found = next((typed for typed, part in _named(model, place) if _can(part, opened)), None)
    advice = (
        "None of its models can be explained either: fit a LogisticRegression on the same data."
        if found is None
        else f"Pass one of its models: {found}."
    )
    return InputError(f"The {type(model).__name__} cannot be explained by its precedents. {reason} {advice}")


def _parts(model: Any, opened: Opener, place: Whereabouts) -> list[Opened]:
    for part in model.estimators_:
        if not _can(part, opened):
            last = part.steps[-1][1] if hasattr(part, "steps") else part
            reason = f"It decides by several models, and a {type(last).__name__} among them is no module."
            raise instead(model, reason, opened, place)
    return [opened(part, place) for part in model.estimators_]


def _named(model: Any, place: Whereabouts) -> Iterator[tuple[str, Any]]:
    """The fitted parts, and what to type for each."""
    if hasattr(model, "calibrated_classifiers_"):
        frozen = [type(each.estimator).__name__ == "FrozenEstimator" for each in model.calibrated_classifiers_]
        names = [f"calibrated_classifiers_[{i}].estimator{'.estimator' * own}" for i, own in enumerate(frozen)]
        parts = [each.estimator for each in model.calibrated_classifiers_]
        parts = [part.estimator if own else part for part, own in zip(parts, frozen, strict=True)]
    else:
        parts = model.estimators_
        names = [f"estimators_[{i}]" for i in range(len(parts))]
    for name, part in zip(names, parts, strict=True):
        if len(part.classes_) < len(model.classes_):
            continue
        encoded = part.classes_.tolist() != model.classes_.tolist()
        labels = f"numpy.searchsorted({place.part}.classes_, y)" if encoded else "y"
        yield f"pr.Explainer({place.typed(f'{place.part}.{name}')}, (X, {labels}))", part


def _numbers(values: Iterable[Any]) -> Tensor:
    return torch.tensor([float(value) for value in values], dtype=torch.double)


def _can(part: Any, opened: Opener) -> bool:
    """Whether a model can be explained."""
    try:
        opened(part)
    except InputError:
        return False
    return True

"""Origin: what kept numbers were made of, so that nothing is answered from what is stale.

A model is known by its weights, its architecture, the attributes that its forward reads and what it makes of
instances; a training set by its labels and by a mark of each row; a metric by its features, the hidden layers
that these are of, and its preconditioner: similarities share what is kept.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from precedents.classifier.attributes import CHANGING
from precedents.classifier.behaviour import COLUMNS, SAID, sketched
from precedents.classifier.classifier import Classifier
from precedents.data.examples import Examples, fingerprint
from precedents.gradients.rows import Rows
from precedents.index.codes import Coder
from precedents.metrics.features.gradient import gradient
from precedents.metrics.features.inputs import inputs
from precedents.metrics.features.last_hidden import last_hidden
from precedents.metrics.features.residual import residual
from precedents.metrics.metric import Metric
from precedents.metrics.relevance import Relevance
from precedents.runtime.sparse import SparseRows

FROZEN, MISSING = " frozen", "missing"
VECTORS = 8  # by which features are known
ALIKE = 30  # tolerances of logits, of its length, within which a vector is the same on another machine


@dataclass(frozen=True)
class Origin:
    """What kept numbers were made of, apart from the training set."""

    compares: str  # features and preconditioner, as texts of metrics have them
    model: str  # the fingerprint of the classifier
    weights: Mapping[str, str]  # a mark of each weight and buffer; frozen ones are in no gradient
    torch: str
    attributes: Mapping[str, str]  # values that forward reads beside them
    hidden: Sequence[str]  # the layers that the features are of

    @classmethod
    def of(cls, relevance: Relevance) -> "Origin":
        """Of what there is now."""
        model, metric = relevance.workspace.classifier, relevance.metric
        marks = weights(model, metric.features is gradient)
        layers = hidden_layers(model, metric)
        return cls(
            compared(metric), model.fingerprint(), marks, str(torch.__version__), model.attributes, layers
        )

    def differences(self, now: "Origin") -> Iterator[str]:
        """In words what is no longer what it was."""
        for name, then, here in (
            ("metric", self.compares, now.compares),
            ("version of torch", self.torch, now.torch),
            ("hidden layers", ", ".join(self.hidden), ", ".join(now.hidden)),
        ):
            if then != here:
                yield f"the {name} ({then} then, {here} now)"
        both = {**self.weights, **now.weights}
        pairs = {name: (self.weights.get(name, ""), now.weights.get(name, "")) for name in both}
        changed = [
            name for name, marks in pairs.items() if len({mark.removesuffix(FROZEN) for mark in marks}) > 1
        ]
        frozen = [
            name for name, (then, here) in pairs.items() if then.endswith(FROZEN) != here.endswith(FROZEN)
        ]
        others = list(self._other_attributes(now))
        if others:
            yield f"an attribute ({_first(others)})"
        if changed:
            yield f"the weights ({_first(changed)})"
        elif frozen:
            yield f"which parameters are frozen ({_first(frozen)})"
        elif self.model != now.model and not others:
            yield "the architecture of the model or its loss"

    def _other_attributes(self, now: "Origin") -> Iterator[str]:
        """Each with what it was and what it is, but what a pass changes; of other layers those of both."""
        for name in {**self.attributes, **now.attributes}:
            then, here = (each.attributes.get(name, MISSING) for each in (self, now))
            known = self.model == now.model or MISSING not in (then, here)
            if known and then != here and CHANGING not in (then, here):
                yield f"{name}: {then} then, {here} now"


def hidden_layers(model: Classifier, metric: Metric) -> list[str]:
    """The hidden layers that features are of, by what gives or receives them; none of gradients and inputs."""
    if metric.features in (gradient, inputs, residual):
        return []
    taps = model.taps[-1:] if metric.features is last_hidden else model.taps
    named = [tap.module if tap.returned else f"what {tap.module} receives" for tap in taps]
    return [f"{name} at call {tap.call}" if tap.call else name for name, tap in zip(named, taps, strict=True)]


def compared(metric: Metric) -> str:
    """What a metric compares: its text without the similarity.

    >>> compared(Metric.read("cosine:gradient/ekfac(damping=0.1)"))
    'gradient/ekfac(damping=0.1)'
    """
    return str(metric).partition(":")[2]


def weights(model: Classifier, gradients: bool) -> dict[str, str]:
    """A mark of each weight and buffer, by name; if it is for gradients, with a word where it is frozen."""
    state, named = model.module.state_dict().items(), model.module.named_parameters(remove_duplicate=False)
    frozen = {name for name, value in named if gradients and not value.requires_grad}
    marks = {name: fingerprint(value, 0).hex() for name, value in state if isinstance(value, Tensor)}
    return {name: mark + FROZEN if name in frozen else mark for name, mark in marks.items()}


def _first(names: Sequence[str]) -> str:
    """The first of some, and how many there are besides."""
    return f"{names[0]}{f' and {len(names) - 1} more' if names[1:] else ''}"


def row_marks(train: Examples, places: range) -> Tensor:
    """Eight bytes for each of some rows [b, 8], which differ when its input differs."""
    found = bytearray(b"".join(train.marks(places)))
    return torch.frombuffer(found, dtype=torch.uint8).reshape(len(places), -1)


def other_rows(before: Mapping[str, Tensor], now: Mapping[str, Tensor], made_by: str = "") -> Iterator[str]:
    """In words which labels and rows differ; `made_by` is what `or_made_by` says."""
    n, m = len(before["labels"]), len(now["labels"])
    if n != m:
        yield f"the number of training instances ({n} then, {m} now)"
        return
    for name, more in (("labels", ""), ("rows", made_by)):
        places = (before[name] != now[name]).reshape(n, -1).any(dim=1).nonzero().flatten().tolist()
        if places:
            yield f"the {name} of the training set ({len(places)} of {n}, the first at {places[0]}){more}"


def or_made_by(relevance: Relevance) -> str:
    """What makes rows of a user's data, if anything does, to be said after rows that differ."""
    made_by = relevance.workspace.subject.adapter.made_by
    return "" if made_by is None else f" or {made_by}, which makes them"


def vectors_told(relevance: Relevance, places: Sequence[int]) -> dict[str, Any]:
    """What tells the features of some instances: the first ones of these places whose vectors are not zero."""
    told: dict[int, list[float]] = {}
    for place in places:
        told[place] = _told(relevance, place)
        lengths = {each: numbers[-2] for each, numbers in told.items() if numbers[-2] > 0}
        if len(lengths) == VECTORS:
            break
    chosen = list(lengths or told)[:VECTORS]
    return {"places": chosen, "vectors": [told[place] for place in chosen]}


def _told(relevance: Relevance, place: int) -> list[float]:
    """A few numbers of the vector of one instance, its length and its width behind them."""
    row = next(relevance.vectors.rows(relevance.workspace.train.selected([place])))[1]
    plain = Rows.of(row.dense()) if isinstance(row.matrix, SparseRows) else row
    short = Coder.sketch_of(row.width).of(plain).double() * plain.scale[:, None]
    size = short.shape[1] ** 0.5 if short.shape[1] > COLUMNS else 1.0  # so that each is as large as the vector
    length = float(plain.squares().sqrt().nan_to_num())
    return [*(size * sketched(short)[0]).tolist(), length, float(row.width)]


def other_features(then: Mapping[str, Any], relevance: Relevance, within: float) -> list[str]:
    """In words that the vectors of some instances are others, but for rounding, if they are."""
    pairs = [(told, _told(relevance, at)) for at, told in zip(then["places"], then["vectors"], strict=True)]
    size = max(told[-2] for told, _ in pairs)  # a short vector has few digits
    near = ALIKE * within * size
    if all(
        told[-1] == here[-1] and all(abs(a - b) <= near for a, b in zip(told, here, strict=True))
        for told, here in pairs
    ):
        return []
    if relevance.metric.features is inputs:
        return [SAID["vectors"]]
    what = "gradients" if relevance.metric.features is gradient else "features"
    return [f"the {what} of the training set, so forward or what it uses is another one"]

"""Origin: what kept numbers were made of, so that nothing is answered from what is stale.

A model is known by its weights, its architecture and what it makes of instances; a training set by its labels
and by a mark of each row; a metric by its features and its preconditioner: similarities share what is kept.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from precedents.classifier.behaviour import sketched
from precedents.classifier.classifier import Classifier
from precedents.data.examples import Examples, fingerprint
from precedents.gradients.rows import Rows
from precedents.index.codes import Coder
from precedents.metrics.features.gradient import gradient
from precedents.metrics.metric import Metric
from precedents.metrics.relevance import Relevance
from precedents.metrics.vectors import Vectors

FROZEN = " frozen"
ALIKE = 30  # tolerances of logits, of its length, within which a vector is the same on another machine


@dataclass(frozen=True)
class Origin:
    """What kept numbers were made of, apart from the training set."""

    compares: str  # features and preconditioner, as texts of metrics have them
    model: str  # the fingerprint of the classifier
    weights: Mapping[str, str]  # a mark of each weight and buffer; frozen ones are in no gradient
    torch: str

    @classmethod
    def of(cls, relevance: Relevance) -> "Origin":
        """Of what there is now."""
        model, metric = relevance.workspace.classifier, relevance.metric
        marks = weights(model, metric.features is gradient)
        return cls(compared(metric), model.fingerprint(), marks, str(torch.__version__))

    def differences(self, now: "Origin") -> Iterator[str]:
        """In words what is no longer what it was."""
        for name, then, here in (
            ("metric", self.compares, now.compares),
            ("version of torch", self.torch, now.torch),
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
        if changed:
            yield f"the weights ({_first(changed)})"
        elif frozen:
            yield f"which parameters are frozen ({_first(frozen)})"
        elif self.model != now.model:
            yield "the architecture of the model or its loss"


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


def sample_vector(vectors: Vectors) -> Rows:
    """The vector of one instance, the largest where they differ."""
    train = vectors.workspace.train
    return next(vectors.rows(train.selected(train.largest[:1])))[1]


def vector_told(relevance: Relevance, place: int) -> list[float]:
    """A few numbers of the vector of one instance, its length among them."""
    row = next(relevance.vectors.rows(relevance.workspace.train.selected([place])))[1]
    short = Coder.sketch_of(row.width).of(row).double() * row.scale[:, None]
    return [*sketched(short)[0].tolist(), float(row.squares().sqrt().nan_to_num()), float(row.width)]


def told_alike(then: Sequence[float], now: Sequence[float], within: float) -> bool:
    """Whether these are of one vector, but for rounding."""
    if len(then) != len(now) or then[-1] != now[-1]:
        return False
    return all(abs(a - b) <= ALIKE * within * abs(then[-2]) for a, b in zip(then, now, strict=True))

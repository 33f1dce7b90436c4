"""Behaviour: what a model, its loss and its vectors make of a training set, by which kept work knows them.

A function is known by its values and not by its name: logits of all instances show another `forward`, a python
attribute or a buffer that is in no state; losses another loss; vectors another `vectorise`. Of each instance up
to eight numbers are kept. They are compared within a tolerance, since other machines round otherwise.
"""

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from precedents.classifier.classifier import Classifier
from precedents.data.examples import Examples
from precedents.runtime.sparse import SparseRows

COLUMNS = 8  # numbers that are kept of an instance
SEED = 5
SAID = {
    "logits": "the logits of the model",
    "losses": "the losses of the training set, so pass the same loss",
    "vectors": "the vectors of the inputs, so pass the same vectorise",
}

Behaviour = dict[str, Tensor]  # [n, at most COLUMNS], float64


@torch.no_grad()
def behaviour(model: Classifier, train: Examples, *, seen: bool) -> Behaviour:
    """Logits and losses of all instances, and if inputs are `seen` as vectors, these."""
    parts: dict[str, list[Tensor]] = {"logits": [], "losses": []}
    for batch in train.batches(model.at_once):
        logits = model.logits(batch.inputs).double().cpu()
        parts["logits"].append(sketched(logits))
        asked = [(batch.labels + shift) % model.classes for shift in (0, 1)]  # the labels and wrong ones
        parts["losses"].append(sketched(torch.stack([model.loss(logits, y) for y in asked], dim=1)))
        if seen:
            parts.setdefault("vectors", []).append(sketched(model.vectors(batch.inputs)))
    return {name: torch.cat(rows) for name, rows in parts.items()}


@torch.no_grad()
def logits(model: Classifier, examples: Examples) -> Tensor:
    """A sketch of the logits of all instances."""
    return torch.cat([sketched(model.logits(batch.inputs)) for batch in examples.batches(model.at_once)])


def sketched(rows: Tensor) -> Tensor:
    """Rows [b, d] as they are if they are short, or else as their products with a few random directions."""
    rows = rows.double() if isinstance(rows, SparseRows) else rows.double().cpu().nan_to_num(0.0, 0.0, 0.0)
    d = rows.shape[1]
    if d <= COLUMNS:
        return rows
    directions = torch.randn(d, COLUMNS, generator=torch.Generator().manual_seed(SEED), dtype=torch.double)
    return rows @ directions / d**0.5


def tolerance(model: Classifier) -> float:
    """Of the largest number, within which two behaviours are one: the root of the model's precision."""
    return float(torch.finfo(torch.double if model.itemsize > 4 else torch.float32).eps) ** 0.5


def differences(then: Mapping[str, Tensor], now: Mapping[str, Tensor], within: float) -> Iterator[str]:
    """In words what differs; what was not kept then is not compared."""
    for name, before in then.items():
        here = now.get(name)
        if here is None or here.shape != before.shape:
            yield SAID.get(name, name)
            return
        far = (here - before).abs().amax(dim=1) > within * max(1e-12, float(before.abs().max()))
        places = far.nonzero().flatten().tolist()
        if places:
            yield f"{SAID.get(name, name)} ({len(places)} of {len(before)} instances, the first at {places[0]})"
            return  # what follows from it differs as well


def summary(rows: Tensor) -> str:
    """A few numbers in words that differ when a behaviour does, see `summarised_alike`."""
    signs = torch.randint(0, 2, (len(rows), 1), generator=torch.Generator().manual_seed(SEED)) * 2.0 - 1
    values = [*((rows * signs).sum(dim=0) / len(rows) ** 0.5).tolist(), float(rows.abs().max())]
    return " ".join(f"{value:.6g}" for value in values)


def summarised_alike(one: str, other: str, within: float) -> bool:
    """Whether two summaries are of one behaviour, but for rounding."""
    try:
        left, right = ([float(each) for each in text.split()] for text in (one, other))
    except ValueError:
        return False
    size = max(1e-12, abs(left[-1])) * max(within, 1e-5) if left else 0.0
    return len(left) == len(right) and all(abs(a - b) <= size for a, b in zip(left, right, strict=True))

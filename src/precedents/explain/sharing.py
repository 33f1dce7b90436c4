"""Sharing: the score of a case and a precedent, divided exactly into what it is a sum of.

The kernel of two gradients is a sum over layers, and within a layer over pairs of positions; that of two inputs
is a sum over their columns. A cosine is the same sum divided by both lengths. What M mixes has no such parts.
"""

from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

from precedents.adapters._subject import Subject
from precedents.data.batch import Batch
from precedents.data.inputs import leaves
from precedents.errors import NotApplicable
from precedents.explain.shares import LayerShares, UsedRows
from precedents.gradients.located import Located, located
from precedents.gradients.rows import Rows
from precedents.gradients.sites import Sites
from precedents.metrics.features.gradient import gradient
from precedents.metrics.features.inputs import inputs
from precedents.metrics.kernel import Kernel
from precedents.metrics.metric import Metric
from precedents.metrics.preconditioners.identity import identity
from precedents.metrics.similarities.cosine import cosine
from precedents.metrics.similarities.dot import dot
from precedents.metrics.similarities.l2 import l2
from precedents.runtime.sparse import SparseRows

SAME = {torch.float64: 1e-9}  # how far the sum of the parts may be from the kernel, by both lengths,
NEARLY = 1e-4  # and in any other precision


def divisible(metric: Metric) -> None:
    """Refuses a metric whose score is no sum of parts, with the reason."""
    if type(metric.preconditioner) is not type(identity):
        raise NotApplicable(
            f"{metric} weighs gradients by a matrix that mixes the parameters of all layers, so that no part "
            "of the score belongs to one of them. Use the metric without the matrix: cos_grad, dot_grad."
        )
    if metric.similarity not in (cosine, dot, l2):
        raise NotApplicable(f"{metric} is no sum over layers or columns. Use the similarity cosine, dot or l2.")
    if metric.features not in (gradient, inputs):
        raise NotApplicable(
            f"{metric} compares units of hidden layers, which have no place in an instance. Use a metric on "
            "gradients or on inputs: cos_grad, cos_x."
        )


@dataclass(frozen=True, eq=False)
class Divided:
    """A score and its parts."""

    score: float
    layers: tuple[LayerShares, ...]


@torch.no_grad()
def divided(metric: Metric, subject: Subject, case: Batch, train: Batch) -> Divided:
    """The score of one case and one training instance by a metric that is `divisible`."""
    if metric.features is inputs:
        return _of_inputs(metric, subject, case, train)
    model = subject.classifier
    with torch.enable_grad():
        first = located(model, case)
        pair = first, located(model, train, held=first.bytes)
        kernel = _kernel(pair[0].rows, pair[1].rows)
        if metric.similarity is l2 or not _adds_up(kernel, *pair):
            pair = located(model, case, divided=False), located(model, train, divided=False)
    score = float(metric.similarity(kernel))
    if metric.similarity is l2:
        return Divided(score, _whole(score, _apart(subject, *pair)))
    factor = pair[0].length * pair[1].length * _factor(metric, kernel)
    return Divided(score, _whole(score, _layers(subject, pair, factor, case)))


def _whole(score: float, layers: list[LayerShares]) -> tuple[LayerShares, ...]:
    """The parts, which sum to the score: what single precision has rounded away goes to the largest of them."""
    place = max(range(len(layers)), key=lambda i: abs(layers[i].share), default=None)
    if place is None or not layers[place].share:
        return tuple(layers)
    left = score - sum(each.share for each in layers)
    layers[place] = layers[place].times(1 + left / layers[place].share)
    return tuple(layers)


def _kernel(case: Rows, train: Rows) -> Kernel:
    return Kernel(case.products(train), case.squares(), train.squares())


def _factor(metric: Metric, kernel: Kernel) -> float:
    """What the kernel is multiplied by."""
    if metric.similarity is not cosine:
        return 1.0
    lengths = float(kernel.case_sq.sqrt() * kernel.train_sq.sqrt())
    return 1 / lengths if lengths > 0 else 0.0


def _adds_up(kernel: Kernel, case: Located, train: Located) -> bool:
    """Whether the parts sum to the kernel that the metric has: every division is tried before it is used."""
    names = [name for name in case.sites if name in train.sites]
    total = sum(_product(*_exact(case, train, name)) for name in names) * case.length * train.length
    lengths = float(kernel.case_sq.sqrt() * kernel.train_sq.sqrt())
    near = SAME.get(case.rows.matrix.dtype, NEARLY) if isinstance(case.rows.matrix, Tensor) else NEARLY
    return abs(total - float(kernel.cross)) <= near * lengths


def _exact(case: Located, train: Located, name: str) -> tuple[Sites, Sites]:
    """Of one parameter, in float64: only those that are asked for are."""
    return case.sites[name].exact(), train.sites[name].exact()


def _product(case: Sites, train: Sites) -> float:
    if not case.matches(train):
        return float(case.formed().flatten() @ train.formed().flatten())
    return case.product(train)


def _grouped(subject: Subject, *pair: Located) -> dict[str, list[str]]:
    """The parameters that both use, by the layer that owns them."""
    grouped: dict[str, list[str]] = {}
    for name in subject.classifier.parameters:
        if all(name in each.sites for each in pair):
            grouped.setdefault(name.rpartition(".")[0], []).append(name)
    return grouped


def _kind(subject: Subject, layer: str) -> str:
    return type(subject.classifier.module.get_submodule(layer)).__name__


def _layers(subject: Subject, pair: tuple[Located, Located], factor: float, case: Batch) -> list[LayerShares]:
    found = []
    for layer, names in _grouped(subject, *pair).items():
        sums, tokens = _Sums(case), list[tuple[int, ...]]()
        for name in names:
            one, other = _alike(*_exact(*pair, name))
            sums.add(one, other)
            tokens = tokens or [_tokens(one), _tokens(other)]
            del one, other
        found.append(sums.layer(layer or "(model)", _kind(subject, layer), factor, (tokens[0], tokens[1])))
    return found


def _alike(one: Sites, other: Sites) -> tuple[Sites, Sites]:
    """Both as they are, or formed where they are made of different factors."""
    if one.matches(other):
        return one, other
    return Sites.whole(one.parameter, one.formed()), Sites.whole(other.parameter, other.formed())


class _Sums:
    """What the parameters of a layer add, together; positions are those of the first one that has some."""

    def __init__(self, case: Batch) -> None:
        self.asked = case
        self.share = self.whole = 0.0
        self.shapes: tuple[tuple[int, ...], tuple[int, ...]] | None = None  # of the positions of both
        self.case = self.precedent = torch.zeros(0)
        self.columns: Tensor | None = None
        self.shape: tuple[int, ...] = ()  # of the input, if the layer receives it

    def add(self, one: Sites, other: Sites) -> None:
        """One more parameter."""
        mine, theirs = one.margins(other)
        total = float(mine.sum())
        self.share += total
        shapes = None if one.shape is None or other.shape is None else (one.shape, other.shape)
        if shapes is not None and max(map(prod, shapes)) > 1 and self.shapes in (None, shapes):
            first = self.shapes is None
            self.shapes, self.case = shapes, mine if first else self.case + mine
            self.precedent = theirs if first else self.precedent + theirs
        elif self.columns is None and (own := one.columns(other)) is not None:
            self.columns, self.shape = own, _received(one, self.asked)
        else:
            self.whole += total

    def layer(self, name: str, kind: str, factor: float, tokens: UsedRows) -> LayerShares:
        """All of it as shares of the score."""
        mine, theirs = self.shapes or ((0,), (0,))
        known = self.shapes is not None
        return LayerShares(
            name,
            kind,
            self.share * factor,
            case=(self.case * factor).reshape(mine) if known else None,
            precedent=(self.precedent * factor).reshape(theirs) if known else None,
            columns=None if self.columns is None else (self.columns * factor).reshape(self.shape or (-1,)),
            of_input=bool(self.shape),
            whole=self.whole * factor,
            tokens=tokens,
        )


def _tokens(sites: Sites) -> tuple[int, ...]:
    """The rows of a table that the positions have used, as those of an embedding."""
    return () if sites.rows is None else tuple(sites.rows[0].tolist())


def _received(sites: Sites, case: Batch) -> tuple[int, ...]:
    """The shape of the input, if that is what the layer has received; else nothing."""
    fed = [leaf for leaf in leaves(case.inputs) if leaf.is_floating_point()]
    right = sites.right[0, 0, 0]
    if len(fed) != 1 or fed[0][0].numel() != right.numel():
        return ()
    own = fed[0].dense() if isinstance(fed[0], SparseRows) else fed[0]
    return tuple(own.shape[1:]) if torch.equal(own[0].flatten().double().cpu(), right) else ()


def _apart(subject: Subject, case: Located, train: Located) -> list[LayerShares]:
    """Of l2: minus the squared distance within each layer."""
    found = []
    for layer, names in _grouped(subject, case, train).items():
        pairs = ([each.formed() for each in _exact(case, train, name)] for name in names)
        apart = (one * case.length - other * train.length for one, other in pairs)
        share = -sum(float(each.square().sum()) for each in apart)
        found.append(LayerShares(layer or "(model)", _kind(subject, layer), share, whole=share))
    return found


def _of_inputs(metric: Metric, subject: Subject, case: Batch, train: Batch) -> Divided:
    """Columns of the inputs, in their shape if they were flattened."""
    model = subject.classifier
    one, other = (Rows.of(inputs(model, each)) for each in (case, train))
    kernel = _kernel(one, other)
    x, y = (each.dense()[0] for each in (one, other))
    parts = -(x - y).square() if metric.similarity is l2 else x * y * _factor(metric, kernel)
    fed = leaves(case.inputs)
    plain = model.vectorise is None and len(fed) == 1 and not isinstance(fed[0], SparseRows)
    shape = tuple(fed[0].shape[1:]) if plain else (-1,)
    share = float(parts.sum())
    layer = LayerShares("input", "Input", share, columns=parts.reshape(shape), of_input=model.vectorise is None)
    return Divided(float(metric.similarity(kernel)), (layer,))

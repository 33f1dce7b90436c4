"""EK-FAC: the Gauss-Newton matrix as a diagonal, in a basis made of each layer's two Kronecker factors.

A layer that receives a and to whose output d comes back has the gradient d a^T. Were the two independent,
its block of the matrix would be S ⊗ A, with S = E d d^T and A = E a a^T. The eigenvectors of S and A are
the basis (George et al., 2018; for influence functions Grosse et al., 2023); what stands on the diagonal
in it is computed, not assumed: the second moments of the gradients in the basis.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, get_gradient_edge
from torch.nn.functional import pad

from precedents.classifier.classifier import Classifier
from precedents.classifier.outputs import fed, placed
from precedents.curvature.going_on import batches_left
from precedents.data.examples import Batch, Examples
from precedents.data.inputs import Collated
from precedents.gradients.factors import Outer
from precedents.gradients.gradients import planned
from precedents.gradients.patches import Patched
from precedents.gradients.plan import PASS_NUMBERS
from precedents.gradients.rows import Rows
from precedents.runtime.budget import FLOAT64
from precedents.runtime.checkpoint import InPlace

KroneckerLayer: TypeAlias = nn.Linear | nn.Conv1d | nn.Conv2d | nn.Conv3d


@dataclass(frozen=True, eq=False)
class Block:
    """The basis for the gradients of one layer, and where they stand in a row.

    The gradient of the weight is a matrix [o, i], the one of the bias another column of it: [o, j] in all.
    That of the weight comes as rows [b, o i] or as its factors.
    """

    weight: slice
    bias: slice | None
    left: Tensor  # [o, o], the eigenvectors of S as columns
    right: Tensor  # [j, j], the eigenvectors of A as columns

    def rotated(self, weight: Tensor | Outer, bias: Tensor | None) -> Tensor:
        """The gradients [b, o, j] in the basis, in their precision."""
        left, whole = self._basis(weight)
        right = whole if bias is None else whole[:-1]
        if isinstance(weight, Outer):
            turned = (weight.left @ left).transpose(1, 2) @ (weight.right @ right)
        else:
            turned = left.T @ (weight.unflatten(1, (len(left), -1)) @ right)
        if bias is not None:
            turned += (bias @ left)[:, :, None] * whole[-1]
        return turned

    def _basis(self, weight: Tensor | Outer) -> tuple[Tensor, Tensor]:
        like = weight.left if isinstance(weight, Outer) else weight
        return self.left.to(like), self.right.to(like)

    def squares(self, weight: Tensor | Outer, bias: Tensor | None, scale: Tensor) -> Tensor:
        """The squares [o, j] of the rotated gradients, summed over the instances; each has its own scale."""
        if not isinstance(weight, Outer) or weight.left.shape[1] > 1 or not _is_back(bias, weight):
            turned = self.rotated(weight, bias).square_()
            largest = scale.max()
            parts = (scale / largest).nan_to_num().square().to(turned)  # so that float32 keeps its digits
            return (parts @ turned.flatten(1)).view_as(turned[0]).double() * largest.square()
        left, right = self._basis(weight)
        received = weight.right[:, 0]  # one outer product each: so is the square
        if bias is not None:
            received = _with_ones(received)
        back = (weight.left[:, 0] @ left).double() * scale[:, None]
        return back.square_().T @ (received @ right).double().square_()

    def placed(self, vectors: Tensor, turned: Tensor) -> None:
        """Writes matrices [b, o, j] into their places of the rows."""
        matrix = turned if self.bias is None else turned[:, :, :-1]
        vectors[:, self.weight] = matrix.flatten(1)
        if self.bias is not None:
            vectors[:, self.bias] = turned[:, :, -1]

    def taken(self, vectors: Tensor) -> Tensor:
        """The matrices [b, o, j] at their places of the rows."""
        matrix = vectors[:, self.weight].unflatten(1, (len(self.left), -1))
        return matrix if self.bias is None else torch.cat([matrix, vectors[:, self.bias, None]], dim=2)


def _is_back(bias: Tensor | None, weight: Outer) -> bool:
    """Whether the bias has the gradient of a layer's that is called once: what came back."""
    return bias is None or torch.equal(bias, weight.left[:, 0])


@dataclass(frozen=True, eq=False)
class Basis:
    """An orthonormal basis Q of the parameters: Kronecker products for some layers, the axes for the rest."""

    blocks: tuple[Block, ...]
    rest: tuple[slice, ...]  # the places of all other parameters

    @property
    def tensors(self) -> list[Tensor]:
        """All eigenvectors."""
        return [tensor for block in self.blocks for tensor in (block.left, block.right)]

    @torch.no_grad()
    def rotated(self, vectors: Tensor | Rows) -> Rows:
        """Q^T v for each row v [b, p], in their precision."""
        rows = Rows.of(vectors)
        turned = rows.matrix.new_empty(len(rows), rows.width)
        for place in self.rest:
            turned[:, place] = _formed(rows, place)
        for block in self.blocks:
            bias = None if block.bias is None else _formed(rows, block.bias)
            block.placed(turned, block.rotated(_columns(rows, block.weight), bias))
        return Rows(turned, rows.scale)

    @torch.no_grad()
    def squares(self, rows: Rows) -> Tensor:
        """The squares [p] of Q^T v, summed over the rows v; single outer products are not formed."""
        total = torch.empty(1, rows.width, dtype=torch.double)
        for place in self.rest:
            total[0, place] = (_formed(rows, place).double() * rows.scale[:, None]).square_().sum(dim=0)
        for block in self.blocks:
            bias = None if block.bias is None else _formed(rows, block.bias)
            block.placed(total, block.squares(_columns(rows, block.weight), bias, rows.scale)[None])
        return total[0]

    def restored(self, turned: Tensor) -> Tensor:
        """Q v for each row v [b, p]."""
        vectors = turned.clone()
        for block in self.blocks:
            block.placed(vectors, block.left @ block.taken(turned) @ block.right.T)
        return vectors


def _columns(rows: Rows, place: slice) -> Tensor | Outer:
    """The gradients of one parameter before they are scaled: formed, unless they are outer products."""
    before = 0  # columns to the left that are not in the matrix
    for other, factor in rows.factors:
        if other == place:
            factor = factor.outer() if isinstance(factor, Patched) else factor
            return factor if isinstance(factor, Outer) else factor.formed().flatten(1)
        before += other.stop - other.start if other.start < place.start else 0
    return rows.matrix[:, place.start - before : place.stop - before]


def _formed(rows: Rows, place: slice) -> Tensor:
    found = _columns(rows, place)
    return found.formed().flatten(1) if isinstance(found, Outer) else found


def _with_ones(values: Tensor) -> Tensor:
    """With one more column, for the bias."""
    return torch.cat([values, values.new_ones(len(values), 1)], dim=1)


@dataclass(eq=False)
class LayerMoments:
    """The two second moments of one layer, summed so far."""

    layer: KroneckerLayer
    received: Tensor = field(init=False)  # A [j, j]
    returned: Tensor = field(init=False)  # S [o, o]
    positions: Tensor = field(init=False)  # how many instances and positions there were

    def __post_init__(self) -> None:
        o, j = _shape(self.layer)
        self.positions = torch.zeros((), dtype=torch.long)
        self.received = torch.zeros(j, j, dtype=torch.double)
        self.returned = torch.zeros(o, o, dtype=torch.double)

    def add_received(self, x: Tensor) -> None:
        """One call's inputs; a convolution's as the patches that its kernel meets."""
        for patches in _patches(self.layer, x.detach()):
            values = patches.double().cpu()
            values = _with_ones(values) if _homogeneous(self.layer) else values
            self.received.addmm_(values.T, values)
            self.positions += len(values)

    def add_returned(self, grad: Tensor, scale: float) -> None:
        """What came back to one call's outputs, multiplied by the scale."""
        axes = len(getattr(self.layer, "kernel_size", ()))
        values = grad if axes == 0 else grad.movedim(-1 - axes, -1)
        values = values.reshape(-1, len(self.returned)).double().cpu() * scale
        self.returned.addmm_(values.T, values)

    def means(self) -> tuple[Tensor, Tensor]:
        """A and S, over instances and positions."""
        return self.received / self.positions, self.returned / self.positions


class _Moments:
    """Sums up the moments of the layers of a clone while batches go through it, forward and back."""

    def __init__(self, model: Classifier) -> None:
        self.model, self.clone = model, model.clones.fresh()
        self.layers = {name: LayerMoments(layer) for name, layer in _layers(self.clone)}
        self.caught: list[tuple[LayerMoments, GradientEdge]] = []
        self.mask: Tensor | None = None  # [b, t] of the batch, where there is one
        for moments in self.layers.values():
            hook = partial(self._note, moments)
            moments.layer.register_forward_hook(hook, prepend=True, with_kwargs=True)

    def _note(
        self, moments: LayerMoments, _: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Tensor
    ) -> None:
        """What one call of a layer receives, and where its output is in the graph."""
        if output.requires_grad:
            received = _flat(args[0] if args else kwargs["input"])
            padded = self.mask is not None and received.shape[:2] == self.mask.shape
            moments.add_received(received[self.mask != 0] if padded else received)
            self.caught.append((moments, get_gradient_edge(output)))

    def parts(self) -> Mapping[str, Tensor]:
        """The sums of all layers."""
        return {
            f"{name} {kind}": getattr(layer, kind)
            for name, layer in self.layers.items()
            for kind in ("received", "returned", "positions")
        }

    def put(self, parts: Mapping[str, Tensor]) -> None:
        """Copies the sums."""
        InPlace(self.parts()).put(parts)

    def add(self, batch: Batch) -> None:
        """Goes forward once, and back from each root of the loss's second derivatives."""
        if isinstance(batch.inputs, Collated) and len(batch.labels) > 1:  # padding is nobody's position
            for i in range(len(batch.labels)):
                self.add(batch.between(i, i + 1))
            return
        self.caught.clear()
        inputs = placed(self.clone, batch.inputs)
        self.mask = inputs.get("attention_mask") if isinstance(inputs, dict) else None  # type: ignore[assignment]
        with torch.enable_grad():
            logits = self.model.outputs.logits(fed(self.clone, inputs), len(batch.labels))
        known = self.model.checked_logits(logits.detach(), batch.indices)
        edges = [edge for _, edge in self.caught]
        for cotangent in self.model.loss.roots(known, batch.labels):
            largest = float(cotangent.abs().max())
            if largest == 0 or not edges:
                continue
            unit = (cotangent / largest).to(logits)  # so that float32 keeps its digits
            backs = torch.autograd.grad(logits, edges, unit, retain_graph=True, allow_unused=True)
            for (moments, _), back in zip(self.caught, backs, strict=True):
                if back is not None:
                    moments.add_returned(_flat(back), largest)


def _flat(values: Tensor) -> Tensor:
    """All positions in one row, where they are nested."""
    return values.values() if values.is_nested else values


def kronecker_factors(model: Classifier, train: Examples) -> dict[str, LayerMoments]:
    """A and S of every layer that has them, by name; the expectation over the model's labels is exact.

    Layers are Linear and convolutions without groups whose trainable weight nobody shares. One that is
    called several times adds up its calls; one that is never called is left out.
    """
    shapes = block_shapes(model.module)
    model.budget.required(
        3 * FLOAT64 * sum(o * o + j * j for o, j in shapes),
        "EK-FAC",
        "Use a Fisher metric, which needs no matrix of a layer's width.",
    )
    moments = _Moments(model)
    for batch in batches_left("EK-FAC factors", (model, train), planned(model).size, moments):
        moments.add(batch)
    return {name: layer for name, layer in moments.layers.items() if layer.positions}


def kronecker_basis(model: Classifier, train: Examples) -> Basis:
    """The eigenvectors of A and S for the layers that have them, the axes for all other parameters."""
    places = planned(model).places
    blocks = []
    for moments in kronecker_factors(model, train).values():
        received, returned = moments.means()
        bias = places[id(moments.layer.bias)] if _homogeneous(moments.layer) else None
        left, right = torch.linalg.eigh(returned)[1], torch.linalg.eigh(received)[1]
        blocks.append(Block(places[id(moments.layer.weight)], bias, left, right))
    covered = [place for block in blocks for place in (block.weight, block.bias)]
    return Basis(tuple(blocks), tuple(place for place in places.values() if place not in covered))


def corrected_eigenvalues(model: Classifier, train: Examples, basis: Basis) -> Tensor:
    """The exact diagonal [p] of the Gauss-Newton matrix in the basis, float64."""
    plan = planned(model)
    total = torch.zeros(model.size, dtype=torch.double)
    size = min(plan.size, model.budget.rows(2 * model.size))
    sums = InPlace({"total": total})
    for batch in batches_left("EK-FAC eigenvalues", (model, train), size, sums, lambda: basis.tensors):
        for rows in plan.pulled_back(batch, model.loss.roots, None):
            total += basis.squares(rows)
    return total / len(train)


def block_shapes(module: nn.Module) -> Iterator[tuple[int, int]]:
    """The sizes o and j of the layers that have factors."""
    return (_shape(layer) for _, layer in _layers(module))


def _shape(layer: KroneckerLayer) -> tuple[int, int]:
    o, i = layer.weight.flatten(1).shape
    return o, i + 1 if _homogeneous(layer) else i


def _homogeneous(layer: KroneckerLayer) -> bool:
    """Whether a trainable bias is a weight more, of an input that is always one."""
    return layer.bias is not None and layer.bias.requires_grad


def _layers(module: nn.Module) -> Iterator[tuple[str, KroneckerLayer]]:
    owned = (p for part in module.modules() for p in part._parameters.values() if p is not None)
    owners = Counter(map(id, owned))
    for name, part in module.named_modules():
        if type(part) not in (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d) or getattr(part, "groups", 1) > 1:
            continue
        parameters = {key: p for key, p in part._parameters.items() if p is not None}
        own = set(parameters) <= {"weight", "bias"} and all(owners[id(p)] == 1 for p in parameters.values())
        if own and part.weight.requires_grad:
            yield name, part


def _patches(layer: KroneckerLayer, x: Tensor) -> Iterator[Tensor]:
    """What the weight is multiplied with [positions, i], in pieces that stay in cache."""
    width = layer.weight[0].numel()
    if isinstance(layer, nn.Linear):
        yield from x.reshape(-1, width).split(max(1, PASS_NUMBERS // width))
        return
    axes = len(layer.kernel_size)
    x = x.reshape(-1, *x.shape[-1 - axes :])
    mode = "constant" if layer.padding_mode == "zeros" else layer.padding_mode
    x = pad(x, layer._reversed_padding_repeated_twice, mode=mode)
    for axis, size, step, gap in zip(
        range(2, 2 + axes), layer.kernel_size, layer.stride, layer.dilation, strict=True
    ):
        x = x.unfold(axis, gap * (size - 1) + 1, step)[..., ::gap]
    x = x.movedim(1, 1 + axes)  # [b, *positions, channels, *kernel], a view
    for piece in x.split(max(1, PASS_NUMBERS // x[0].numel())):
        yield piece.reshape(-1, width)

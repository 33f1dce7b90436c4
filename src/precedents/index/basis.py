"""The basis of an index in a file: the fitted matrix, if the metric has one, and what makes codes of rows.

It is made once, by the first who needs it, from the rows that the plan names: whoever makes it makes the same
bytes.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from precedents.errors import FormatError
from precedents.index.codes import Coder
from precedents.index.plan import IndexPlan, Write, again, threads
from precedents.index.recall import coder_of, sampled, some
from precedents.index.sketch import CountSketch
from precedents.metrics.preconditioners.hessian import CURVATURE, HessianKind
from precedents.metrics.preconditioners.identity import identity
from precedents.metrics.relevance import Relevance
from precedents.runtime.atomic import stored
from precedents.runtime.serialize import read, written
from precedents.runtime.tensor_files import sealed_tensors, unsealed_tensors

BASIS, MARK = "basis.safetensors", "mark"


@dataclass(frozen=True, eq=False)
class CodeBasis:
    """What codes are made with."""

    coder: Coder
    curvature: HessianKind | None = None  # the kind that was chosen, which the memory may have decided
    mark: Tensor | None = None  # of its file, if it was written: in every shard that is coded with it

    def write(self, path: Path, plan: IndexPlan, relevance: Relevance, by: Write = stored) -> None:
        """With the fitted matrix."""
        tensors: dict[str, Tensor] = {}
        weighed = relevance.metric.preconditioner != identity
        nest = written(relevance.inverse, _known(relevance, id), tensors) if weighed else None
        first = self.coder.first
        told = {
            "sketch": [first.width, first.buckets, first.seed],
            "curvature": self.curvature,
            "inverse": nest,
        }
        said = torch.tensor(list(json.dumps(told).encode()), dtype=torch.uint8)
        own = {"basis": self.coder.basis, "told": said, "plan": plan.seal}
        own |= {f"inverse {name}": value for name, value in tensors.items()}
        by(path, sealed_tensors(own | {MARK: mark_of(own)}))

    @classmethod
    def read(cls, path: Path, plan: IndexPlan, relevance: Relevance) -> "CodeBasis":
        """Gives the relevance its fitted matrix."""
        found = unsealed_tensors(path, again(path.parent))
        if "plan" not in found or not torch.equal(found["plan"], plan.seal):
            raise FormatError(f"{path} is of another plan. {again(path.parent)}")
        try:
            told = json.loads(bytes(found["told"].tolist()))
            coder = Coder(CountSketch(*told["sketch"]), found["basis"])
            if told["curvature"] is not None:
                relevance.workspace.cache.put(CURVATURE, told["curvature"])
            if told["inverse"] is not None:
                names = {name: value for value, name in _pairs(relevance)}
                fitted = read(told["inverse"], names, lambda name: found[f"inverse {name}"])
                relevance.workspace.cache.put(relevance.slot, fitted)
        except (ValueError, KeyError, TypeError, AttributeError, ImportError) as error:
            raise FormatError(f"{path} is damaged: {error!r}. {again(path.parent)}") from error
        return cls(coder, told["curvature"], found[MARK])


def mark_of(tensors: Mapping[str, Tensor]) -> Tensor:
    """Sixteen bytes that differ when a tensor does."""
    found = blake2b(digest_size=16)
    for name, value in sorted(tensors.items()):
        found.update(name.encode())
        found.update(value.contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return torch.tensor(list(found.digest()), dtype=torch.uint8)


def basis_mark(folder: Path) -> Tensor:
    """The mark of the basis of a folder; one that is not there, or cannot be read, is refused."""
    path = folder / BASIS
    try:
        with safe_open(path, framework="pt") as file:
            mark: Tensor = file.get_tensor(MARK)
            return mark.clone()
    except (OSError, SafetensorError) as error:
        raise FormatError(f"{path} cannot be read: {error}. {again(folder)}") from error


def basis_of(folder: Path, plan: IndexPlan, relevance: Relevance) -> CodeBasis:
    """The basis of a folder, made if it is not there or not whole."""
    path = folder / BASIS
    if path.is_file():
        try:
            return CodeBasis.read(path, plan, relevance)
        except FormatError:
            path.unlink(missing_ok=True)
    with threads(plan.threads):
        made_basis(relevance, plan).write(path, plan, relevance)
    return CodeBasis.read(path, plan, relevance)


def made_basis(relevance: Relevance, plan: IndexPlan) -> CodeBasis:
    """From the rows that the plan names."""
    sketch = Coder.sketch_of(relevance.vectors.width)
    places = sampled(relevance.workspace.train, plan.places.stop, plan.sample)
    coder = coder_of(sketch, some(relevance, places, plan.batch), plan.sample)
    return CodeBasis(coder, relevance.workspace.cache.get(CURVATURE))


def _pairs(relevance: Relevance) -> list[tuple[Any, str]]:
    """What is there on both sides, and its name."""
    workspace = relevance.workspace
    parameters = workspace.classifier.module.named_parameters()
    return [(workspace, "workspace"), *((p, f"parameter {name}") for name, p in parameters)]


def _known(relevance: Relevance, key: Any) -> Mapping[int, str]:
    return {key(value): name for value, name in _pairs(relevance)}

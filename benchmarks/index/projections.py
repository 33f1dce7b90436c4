"""What others keep of gradients in the place of an index: random projections. In the environment of a library.

`python -m benchmarks.index.projections NAME TASK SCORES` reads the model, the training set and the cases from a
file, writes the cosines [m, n] of what it keeps into another, and prints its seconds and bytes as JSON.
"""

import json
import sys
from collections.abc import Callable, Iterator
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn.functional import cross_entropy, normalize
from torch.utils.data import DataLoader, TensorDataset

WIDTH = 2048  # numbers that TRAK keeps of a row, if nothing else is said
BATCH = 512
FLOAT32 = 4  # bytes

Told = tuple[Tensor, dict[str, float]]  # cosines [m, n]; seconds of building and of a question, bytes of a row


def basic_projector(task: dict[str, Any]) -> Told:
    """TRAK's BasicProjector on the gradients of the loss, which torch maps over the instances."""
    from trak.projectors import BasicProjector, ProjectionType

    model, (x, y) = task["model"], task["train"]
    size = sum(p.numel() for p in model.parameters())
    projector = BasicProjector(size, WIDTH, seed=0, proj_type=ProjectionType.rademacher, device="cpu")

    def projected(x: Tensor, y: Tensor) -> Tensor:
        pieces = [projector.project(rows, model_id=0) for rows in gradients(model, x, y)]
        return normalize(torch.cat(pieces))

    began = perf_counter()
    kept = projected(x, y)
    build, began = perf_counter() - began, perf_counter()
    scores = torch.cat(
        [projected(task["cases"][i : i + 1], task["predicted"][i : i + 1]) @ kept.T for i in range(task["m"])]
    )
    question = (perf_counter() - began) / task["m"]
    return scores, {"build": build, "question": question, "bytes": float(FLOAT32 * kept.shape[1])}


def gradients(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    """Of each instance [b, p], in batches."""
    parameters = {name: p.detach() for name, p in model.named_parameters()}

    def loss(parameters: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        return cross_entropy(functional_call(model, parameters, (x[None],)), y[None])

    each = vmap(grad(loss), in_dims=(None, 0, 0))
    for start in range(0, len(x), BATCH):
        found = each(parameters, x[start : start + BATCH], y[start : start + BATCH])
        yield torch.cat([part.flatten(1) for part in found.values()], dim=1)


def logra(task: dict[str, Any]) -> Told:
    """Dattri's LoGra without a Hessian: each linear layer projected on both sides to 4,096 numbers."""
    x, y = task["train"]
    train = DataLoader(TensorDataset(x, y), BATCH)
    few = BATCH + len(x) % BATCH
    with TemporaryDirectory() as folder, TemporaryDirectory() as other:
        _lengths(_attributor(task, other), DataLoader(TensorDataset(x[:few], y[:few]), BATCH))  # it compiles
        attributor, began = _attributor(task, folder), perf_counter()
        lengths = _lengths(attributor, train)
        build, began = perf_counter() - began, perf_counter()
        pairs = zip(task["cases"].split(1), task["predicted"].split(1), strict=True)
        found = [attributor.attribute(train, DataLoader(TensorDataset(*pair), 1)) for pair in pairs]
        question = (perf_counter() - began) / task["m"]
        cases = [_length(attributor, pair) for pair in zip(task["cases"], task["predicted"], strict=True)]
    scores = torch.cat(found, dim=1).T / lengths / torch.tensor(cases)[:, None]
    size = float(FLOAT32 * (attributor.total_proj_dim or 0))
    return scores, {"build": build, "question": question, "bytes": size}


def _attributor(task: dict[str, Any], folder: str) -> Any:
    """LoGra, with what projects each layer."""
    from dattri.algorithm.block_projected_if.core.compressor import setup_model_compressors
    from dattri.algorithm.logra import LoGraAttributor
    from dattri.task import AttributionTask

    def loss(model: nn.Module, batch: tuple[Tensor, Tensor], device: str) -> Tensor:  # noqa: ARG001
        return cross_entropy(model(batch[0]), batch[1])

    model = task["model"]
    told = AttributionTask(loss_func=loss, model=model, checkpoints=model.state_dict())
    attributor = LoGraAttributor(told, hessian="Identity", device="cpu", offload="cpu", cache_dir=folder)
    attributor.compressors = setup_model_compressors(  # which it would try on one instance without a batch
        model,
        attributor.layer_names,
        sparsifier_kwargs=attributor.sparsifier_kwargs,
        projector_kwargs=attributor.projector_kwargs,
        sample_inputs=[task["train"][0][:2]],
        device="cpu",
    )
    return attributor


def _lengths(attributor: Any, rows: "DataLoader[Any]") -> Tensor:
    """Of what it keeps of the gradients of some rows, which it computes."""
    attributor.cache(rows)
    attributor.compute_ifvp()
    lengths: Tensor = attributor.compute_self_attribution().sqrt()
    return lengths


def _length(attributor: Any, case: tuple[Tensor, Tensor]) -> float:
    """Of the projected gradient of a case."""
    alone = DataLoader(TensorDataset(case[0][None], case[1][None]), 1)
    return float(attributor._compute_test_gradients(alone)[0].norm())


PROJECTIONS: dict[str, Callable[[dict[str, Any]], Told]] = {"logra": logra, "trak": basic_projector}


def main() -> None:
    """One of them."""
    name, task, into = sys.argv[1:]
    torch.set_num_threads(1)
    scores, told = PROJECTIONS[name](torch.load(task, weights_only=False))
    torch.save(scores, into)
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main()

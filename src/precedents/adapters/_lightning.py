"""What a LightningModule or a Trainer of Lightning brings with it: the module, its data and its loss."""

from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader

from precedents.adapters._trainer import SAY_IT
from precedents.adapters._transformer import runnable
from precedents.classifier.clone import sharing_clone
from precedents.classifier.construction import without_graph
from precedents.classifier.outputs import outputs_of, placed, returned
from precedents.data.datamodules import defines, is_lightning, loader_of, one_of, unshuffled
from precedents.data.examples import Examples
from precedents.data.inputs import Collated
from precedents.errors import InputError
from precedents.runtime.guards import random_state_kept

MUTED = ("log", "log_dict", "print")  # which speak to a Trainer that is not there
LOSSES = (nn.CrossEntropyLoss, nn.NLLLoss, nn.BCEWithLogitsLoss, nn.BCELoss)
SOME = 4  # instances that training_step is tried on


def is_trainer(model: Any) -> bool:
    """Whether it is a Trainer of Lightning."""
    return is_lightning("Trainer", model)


class Lit:
    """A LightningModule, with the Trainer that it is attached to if there is one."""

    def __init__(self, model: Any) -> None:
        self.trainer = model if is_trainer(model) else getattr(model, "_trainer", None)
        own = model.lightning_module if is_trainer(model) else model
        if own is None:
            raise InputError(
                "The Trainer of Lightning has no model. Call trainer.fit(model, datamodule) first, or pass the "
                "LightningModule with its datamodule: pr.Explainer(model, datamodule)."
            )
        self.own, self.name = own, type(own).__name__
        if not defines(own, "forward"):
            inside = [name for name, child in own.named_children() if any(True for _ in child.parameters())]
            raise InputError(
                f"{self.name} has no forward: its training_step does all. Define forward(self, x) that returns "
                f"logits, or pass the network inside: pr.Explainer(model.{(inside or ['net'])[0]}, datamodule)."
            )
        self.module = muted(own)

    @classmethod
    def of(cls, model: Any) -> "Lit | None":
        """Of a Trainer or a LightningModule; none of another module, which has such methods by chance."""
        return cls(model) if is_trainer(model) or is_lightning("LightningModule", model) else None

    def data(self, what: str) -> Any:
        """Whatever has the training or the test set: the data module, the module's own hooks, the loaders."""
        hooks = ("test_dataloader", "val_dataloader") if what.startswith("test") else ("train_dataloader",)
        modules = [getattr(self.trainer, "datamodule", None), self.own]
        for source in modules:
            if source is not None and any(defines(source, hook) for hook in hooks):
                return source
        names = ("test_dataloaders", "val_dataloaders") if what.startswith("test") else ("train_dataloader",)
        given = ((name, getattr(self.trainer, name, None)) for name in names)
        return next(
            (unshuffled(one_of(each, f"Trainer.{name}")) for name, each in given if each is not None), None
        )

    @torch.no_grad()
    def loss(self, train: Examples, data: Any) -> Any:
        """What training_step trains by: the cross entropy, or a loss that the module holds.

        Refuses another, unless what training_step needs is not there, so that it cannot be tried.
        """
        batch = train.take(range(min(SOME, len(train))))
        held = [each for each in self.own.modules() if isinstance(each, LOSSES)]
        if isinstance(batch.inputs, Collated) or not self.own.automatic_optimization:
            return held[0] if len(held) == 1 else None
        module = runnable(deepcopy(self.module))  # whatever training_step does to it
        found = _stepped(module, _raw(data, len(batch.labels)) or (batch.inputs, batch.labels))
        if found is None:
            return held[0] if len(held) == 1 else None
        output = returned(module, batch.inputs)
        logits = outputs_of(output, len(batch.labels)).logits(output, len(batch.labels))
        labels = batch.labels.to(logits.device)
        wanted = cross_entropy(logits.double(), labels).cpu()
        if torch.allclose(found, wanted, rtol=1e-3, atol=1e-5):
            return None
        for each in held:
            other = _value(each, logits, labels)
            if other is not None and torch.allclose(found, other, rtol=1e-3, atol=1e-5):
                return each
        raise InputError(
            f"The loss that {self.name}.training_step computes is not the cross entropy of what its forward "
            f"returns: it is {float(found):.4g} for {len(labels)} instances, not {float(wanted):.4g}. If its "
            "forward returns no logits, pass the part of the module that does. Or the loss is another one. "
            f"{SAY_IT}"
        )


def muted(module: nn.Module) -> nn.Module:
    """A clone that shares the tensors, without its Trainer, and whose `self.log` says nothing."""
    clone = sharing_clone(module, known=without_graph(module))
    for part in clone.modules():
        if is_lightning("LightningModule", part):
            part.__dict__ |= dict.fromkeys(MUTED, _nothing)
    return clone


def _nothing(*_: Any, **__: Any) -> None:
    """Instead of a message to a Trainer."""


def _raw(data: Any, count: int) -> Any:
    """The first instances as the loader of a data set would give them; none if there is none."""
    loader = loader_of(data, "training set") if hasattr(data, "train_dataloader") else data
    if not isinstance(loader, DataLoader) or not hasattr(loader.dataset, "__getitem__"):
        return None
    return loader.collate_fn([loader.dataset[i] for i in range(count)])


def _stepped(module: Any, batch: Any) -> Tensor | None:
    """The loss of training_step for a batch; none if it cannot be had without a Trainer."""
    try:
        with random_state_kept():
            found = module.training_step(placed(module, tuple(batch) if isinstance(batch, list) else batch), 0)
    except Exception:
        return None
    found = found.get("loss") if isinstance(found, dict) else found
    if not isinstance(found, Tensor) or found.numel() != 1 or not bool(found.isfinite()):
        return None
    return found.double().reshape(()).cpu()


def _value(loss: nn.Module, logits: Tensor, labels: Tensor) -> Tensor | None:
    """What a loss of torch.nn gives for these logits; none if it takes others."""
    single = isinstance(loss, (nn.BCEWithLogitsLoss, nn.BCELoss))
    try:
        found = loss(logits[:, 1], labels.to(logits)) if single else loss(logits, labels)
    except (RuntimeError, ValueError):
        return None
    return found.double().mean().cpu()

"""What a LightningModule or a Trainer of Lightning brings with it: the module, its data and its loss."""

import warnings
from collections.abc import Sequence
from copy import copy, deepcopy
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
from precedents.data.collation import Collation
from precedents.data.datamodules import defines, is_lightning, loader_of, one_of, unshuffled
from precedents.data.examples import Batch, Examples
from precedents.data.inputs import Collated, ordered
from precedents.errors import InputError
from precedents.runtime.guards import random_state_kept
from precedents.runtime.users_code import why
from precedents.runtime.wording import a_type

MUTED = ("log", "log_dict", "print")  # which speak to a Trainer that is not there
LOSSES = (nn.CrossEntropyLoss, nn.NLLLoss, nn.BCEWithLogitsLoss, nn.BCELoss)
MANUAL = "it optimises by itself (automatic_optimization is False)"
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

        Refuses another. Where training_step cannot be tried it is taken for one of these, which is said.
        """
        batch = train.take(range(min(SOME, len(train))))
        held = [each for each in self.own.modules() if isinstance(each, LOSSES)]
        module = runnable(deepcopy(self.module))  # whatever training_step does to it
        found = _stepped(module, _raw(data, batch)) if self.own.automatic_optimization else MANUAL
        if isinstance(found, str):
            return self._untried(held, found)
        output, b = returned(module, batch.inputs), len(batch.labels)
        logits = ordered(batch.inputs, outputs_of(output, b).logits(output, b))
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

    def _untried(self, held: Sequence[nn.Module], reason: str) -> nn.Module | None:
        """The one loss that the module holds, or none for the cross entropy; a warning says so if it trains."""
        known = held[0] if len(held) == 1 else None
        said = "the cross entropy" if known is None else f"its {type(known).__name__}"
        if defines(self.own, "training_step"):
            warnings.warn(
                f"{self.name}.training_step could not be tried: {reason}. It is explained by {said}; if it was "
                "trained by another loss, say which: loss=.",
                stacklevel=2,
            )
        return known


def muted(module: nn.Module) -> nn.Module:
    """A clone that shares the tensors, without its Trainer, and whose `self.log` says nothing."""
    clone = sharing_clone(module, known=without_graph(module))
    for part in clone.modules():
        if is_lightning("LightningModule", part):
            part.__dict__ |= dict.fromkeys(MUTED, _nothing)
    return clone


def _nothing(*_: Any, **__: Any) -> None:
    """Instead of a message to a Trainer."""


def _raw(data: Any, batch: Batch) -> Any:
    """The first instances as the loader of a data set would give them, or as they are read."""
    if isinstance(batch.inputs, Collated) and isinstance(batch.inputs.together, Collation):
        return batch.inputs.together.function([copy(member.item) for member in batch.inputs.members])
    loader = loader_of(data, "training set") if hasattr(data, "train_dataloader") else data
    if not isinstance(loader, DataLoader) or not hasattr(loader.dataset, "__getitem__"):
        return batch.inputs, batch.labels
    return loader.collate_fn([loader.dataset[i] for i in range(len(batch.labels))])


def _stepped(module: Any, batch: Any) -> Tensor | str:
    """The loss of training_step for a batch; or why it cannot be had without a Trainer."""
    try:
        with random_state_kept():
            found = module.training_step(placed(module, tuple(batch) if isinstance(batch, list) else batch), 0)
    except Exception as error:
        return why(error)
    found = found.get("loss") if isinstance(found, dict) else found
    if not isinstance(found, Tensor) or found.numel() != 1:
        return f"it returns {a_type(found)}, which is not one number"
    if not bool(found.isfinite()):
        return f"it returns {float(found)}"
    return found.double().reshape(()).cpu()


def _value(loss: nn.Module, logits: Tensor, labels: Tensor) -> Tensor | None:
    """What a loss of torch.nn gives for these logits; none if it takes others."""
    single = isinstance(loss, (nn.BCEWithLogitsLoss, nn.BCELoss))
    try:
        found = loss(logits[:, 1], labels.to(logits)) if single else loss(logits, labels)
    except (RuntimeError, ValueError):
        return None
    return found.double().mean().cpu()

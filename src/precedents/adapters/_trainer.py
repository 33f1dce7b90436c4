"""What a Trainer of transformers brings with it: the model, its data, its collator and its loss."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch.nn.functional import cross_entropy

from precedents.adapters._collator import Collator, collator_of
from precedents.adapters._columns import LABELS
from precedents.adapters._peft import base_of
from precedents.adapters._transformer import parameters, runnable
from precedents.classifier.loss import CrossEntropy
from precedents.classifier.outputs import fed, placed
from precedents.data.examples import Batch
from precedents.data.inputs import Inputs
from precedents.errors import InputError
from precedents.runtime.users_code import users

OWN = "transformers"
LABEL = "labels"  # as a model is given them
SAY_IT = (
    "Say what it is: loss=torch.nn.CrossEntropyLoss(weight=...), or a function of logits [b, classes] and "
    "labels [b] that gives losses [b]."
)


@dataclass(frozen=True, eq=False)
class Brought:
    """What a Trainer of transformers brings with it: tokenizer, data sets, collator, loss."""

    trainer: Any

    @property
    def tool(self) -> Any:
        """The tokenizer or processor; none if the Trainer has none."""
        found = getattr(self.trainer, "processing_class", getattr(self.trainer, "tokenizer", None))
        return getattr(self.trainer.data_collator, "tokenizer", None) if found is None else found

    @property
    def labels(self) -> Sequence[str]:
        """The names that the column of the labels may have."""
        return tuple(dict.fromkeys([*self.trainer.label_names, *LABELS]))

    @property
    def collator(self) -> Collator | None:
        """The Trainer's own, which is given the columns that the Trainer leaves."""
        kept = parameters(base_of(self.trainer.model)) | set(self.labels)
        return collator_of(
            self.trainer.data_collator, kept if self.trainer.args.remove_unused_columns else None
        )

    @property
    def loss(self) -> CrossEntropy | None:
        """What it was trained by: the cross entropy, smoothed or not; a loss of the user's own must be said."""
        name = f"{type(self.trainer).__name__}.compute_loss"
        own = None if _is_theirs(self.trainer.compute_loss) else name
        if getattr(self.trainer, "compute_loss_func", None) is not None:
            own = "compute_loss_func"
        if own is not None:
            raise InputError(
                f"The Trainer computes its loss by {own}, which gives one number for a batch; the loss of each "
                f"instance is needed. {SAY_IT}"
            )
        smoothing = float(self.trainer.args.label_smoothing_factor)
        return CrossEntropy(label_smoothing=smoothing) if smoothing else None

    @torch.no_grad()
    def refuse_own_loss(self, batch: Batch) -> None:
        """Refuses a model of the user's own that computes another loss than the cross entropy, if it does."""
        model = base_of(self.trainer.model)
        if (
            _is_theirs(type(model))
            or self.trainer.args.label_smoothing_factor
            or LABEL not in parameters(model)
        ):
            return
        given = placed(model, {**cast("dict[str, Inputs]", batch.inputs), LABEL: batch.labels})
        with users("the model", "Its Trainer calls it with labels"):
            output = fed(runnable(self.trainer.model), given)
        if not isinstance(output, Mapping) or "loss" not in output or "logits" not in output:
            return  # what it returns is not known by name
        labels = batch.labels.to(output["logits"].device)
        wanted, found = cross_entropy(output["logits"].double(), labels), output["loss"].double()
        if not torch.allclose(found, wanted, rtol=1e-3, atol=1e-5):
            raise InputError(
                f"The loss that {type(model).__name__} computes is not the cross entropy: it is "
                f"{float(found):.4g} for {len(labels)} instances, not {float(wanted):.4g}. {SAY_IT}"
            )


def _is_theirs(function: Any) -> bool:
    return getattr(function, "__module__", "").partition(".")[0] == OWN

"""What a Trainer of transformers brings with it: the model, its data, its collator and its loss."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from precedents.adapters._collator import Collator, collator_of
from precedents.adapters._columns import LABELS
from precedents.adapters._peft import base_of
from precedents.adapters._transformer import parameters
from precedents.classifier.loss import CrossEntropy
from precedents.errors import InputError

OWN = "transformers"


@dataclass(frozen=True, eq=False)
class Brought:
    """A Trainer, read."""

    trainer: Any

    @property
    def tool(self) -> Any:
        """The tokenizer or processor; none if the Trainer has none."""
        found = getattr(self.trainer, "processing_class", getattr(self.trainer, "tokenizer", None))
        return getattr(self.trainer.data_collator, "tokenizer", None) if found is None else found

    @property
    def labels(self) -> Sequence[str]:
        """What labels are called."""
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
        kind = type(self.trainer)
        own = f"{kind.__name__}.compute_loss" if not _is_theirs(kind.compute_loss) else None
        if getattr(self.trainer, "compute_loss_func", None) is not None:
            own = "compute_loss_func"
        if own is not None:
            raise InputError(
                f"The Trainer computes its loss by {own}, which gives one number for a batch; the loss of each "
                "instance is needed. Say what it is: loss=torch.nn.CrossEntropyLoss(weight=...), or a function "
                "of logits [b, classes] and labels [b] that gives losses [b]."
            )
        smoothing = float(self.trainer.args.label_smoothing_factor)
        return CrossEntropy(label_smoothing=smoothing) if smoothing else None


def _is_theirs(function: Any) -> bool:
    return getattr(function, "__module__", "").partition(".")[0] == OWN

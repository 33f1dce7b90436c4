"""PyTorch: any torch.nn.Module that classifies, or a Classifier that was made of one; Lightning's, too."""

from typing import Any

from torch import nn

from precedents.adapters._adapter import TRAINING, Adapter
from precedents.adapters._lightning import Lit, is_trainer
from precedents.adapters._peft import refuse_quantised, title, tuned
from precedents.classifier.classifier import Classifier
from precedents.data.examples import Examples

TEST = "test set"  # as the others call it


class PyTorch(Adapter):
    """A module is taken as it is; its outputs, hidden layers and loss are found out by running it."""

    before = ("scikit_learn", "skorch")  # most models are modules, and none of theirs is
    reads = ("labels", "ids")
    lit: Lit | None = None  # a LightningModule
    read: tuple[Examples, Any] | None = None  # the training set of one, and what it was made from

    @classmethod
    def accepts(cls, model: Any) -> bool:
        """Modules and Classifiers, and Trainers of Lightning."""
        return isinstance(model, (nn.Module, Classifier)) or is_trainer(model)

    def __init__(self, model: Any) -> None:
        self.module = model.module if isinstance(model, Classifier) else model
        if hasattr(model, "peft_config"):
            refuse_quantised(model)
            self.module, self.name = tuned(model), title(model)
        elif hasattr(model, "lightning_module") or hasattr(model, "training_step"):
            self._lightning(model)

    def _lightning(self, model: Any) -> None:
        self.lit = Lit.of(model)
        if self.lit is not None:
            self.module, self.name = self.lit.module, self.lit.name
            self.train, self.test = self.lit.data(TRAINING), self.lit.data(TEST)

    @property
    def loss(self) -> Any:
        """Of a LightningModule, what its training_step computes."""
        return None if self.lit is None or self.read is None else self.lit.loss(*self.read)

    def examples(self, data: Any, what: str) -> Examples:
        """As `Examples.of` reads them."""
        made = super().examples(data, what)
        if self.lit is not None and what == TRAINING:
            self.read = made, data
        return made


pytorch = PyTorch

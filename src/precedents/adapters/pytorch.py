"""PyTorch: any torch.nn.Module that classifies, or a Classifier that was made of one."""

from typing import Any

from torch import nn

from precedents.adapters._adapter import Adapter
from precedents.adapters._peft import refuse_quantised, title, tuned
from precedents.classifier.classifier import Classifier


class PyTorch(Adapter):
    """A module is taken as it is; its outputs, hidden layers and loss are found out by running it."""

    before = ("scikit_learn", "skorch")  # most models are modules, and none of theirs is
    reads = ("labels",)

    @classmethod
    def accepts(cls, model: Any) -> bool:
        """Modules and Classifiers."""
        return isinstance(model, (nn.Module, Classifier))

    def __init__(self, model: Any) -> None:
        self.module = model.module if isinstance(model, Classifier) else model
        if hasattr(model, "peft_config"):
            refuse_quantised(model)
            self.module, self.name = tuned(model), title(model)


pytorch = PyTorch

"""Transformer: a Hugging Face model as a module that returns logits, with its hidden layers at two places."""

import inspect
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

from precedents.adapters._peft import base_of, is_tuned, tuned
from precedents.classifier.clone import sharing_clone
from precedents.classifier.construction import mixes_precisions, without_graph
from precedents.classifier.outputs import Outputs
from precedents.classifier.precision import widened
from precedents.data.inputs import Inputs
from precedents.errors import InputError

HIDDEN = ("blocks", "head")
ROUNDED = torch.finfo(torch.float32).eps ** 0.5  # of the largest logit, by which others may differ


class Transformer(nn.Module):
    """Returns the logits of a classifier. `blocks` and `head` are the hidden layers, for those who listen.

    `blocks` receives the states after the embeddings and after every block, one after the other: of texts the
    mean over their tokens, since texts differ in length. `head` receives what the last layer receives.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = tuned(model)
        self.blocks = nn.Identity()
        self.head = nn.Identity()
        known = parameters(base_of(model))
        self.always = {"use_cache": False} if "use_cache" in known else {}
        self.listened = {"output_hidden_states": True} if known & {"output_hidden_states", "kwargs"} else {}

    def forward(self, **inputs: Tensor) -> Tensor:
        """Logits [b, classes]; the hidden layers are computed when they have hooks."""
        if not (self.blocks._forward_hooks or self.head._forward_hooks):
            return _logits(self.model(**inputs, **self.always))
        with _Calls(self.model) as calls:
            output = self.model(**inputs, **self.always, **self.listened)
        logits, mask = _logits(output), inputs.get("attention_mask")
        states = [_vector(state, mask) for state in getattr(output, "hidden_states", None) or ()]
        received = calls.received(logits)
        self.blocks(torch.cat([logits[:, :0], *states], dim=1))
        self.head(states[-1] if received is None and states else received)
        return logits


class _Calls:
    """The calls of the layers that could be the last: Linear, with as many outputs as there are classes."""

    def __init__(self, model: nn.Module) -> None:
        classes = getattr(getattr(model, "config", None), "num_labels", None)
        inside = {
            part for each in model.modules() if is_tuned(each) for part in each.modules() if part is not each
        }
        layers = [each for each in model.modules() if isinstance(each, nn.Linear) or is_tuned(each)]
        self.layers = [
            each
            for each in layers
            if each not in inside and classes in (None, getattr(each, "out_features", None))
        ]
        self.seen: list[tuple[Tensor, Tensor]] = []

    def __enter__(self) -> "_Calls":
        def note(_: nn.Module, args: tuple[Any, ...], output: Tensor) -> None:
            self.seen.append((args[0], output))

        self.handles = [layer.register_forward_hook(note) for layer in self.layers]
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self.handles:
            handle.remove()

    def received(self, logits: Tensor) -> Tensor | None:
        """What gave the logits [b, d]; of a layer that runs at every token, what it received at that one."""
        for received, output in reversed(self.seen):
            if output.shape == logits.shape:
                return received
            if output.ndim == 3 and len(output) == len(logits):
                token = (output == logits[:, None]).all(dim=2).int().argmax(dim=1)
                return received[torch.arange(len(logits), device=token.device), token]
        return None


def _logits(output: Any) -> Tensor:
    """Of what a model returns for its Trainer: by name, else the first."""
    if isinstance(output, Mapping):
        return output.get("logits", output)
    return output.logits if hasattr(output, "logits") else output[0] if isinstance(output, tuple) else output


def _vector(state: Tensor, mask: Tensor | None) -> Tensor:
    """A state [b, t, d] as vectors: the mean over the tokens that the mask [b, t] leaves, else flattened.

    Tokens that a prompt of peft put before the text are left away.
    """
    if mask is None or state.ndim != 3 or state.shape[1] < mask.shape[1]:
        return state.flatten(1)
    state = state[:, state.shape[1] - mask.shape[1] :]
    weights = (mask / mask.sum(dim=1, keepdim=True).clamp(min=1)).to(state)
    return torch.einsum("bt,btd->bd", weights, state)


def runnable(module: nn.Module) -> nn.Module:
    """A clone in eval mode to try something on; a copy in float32 of one in half precision."""
    known = without_graph(module)
    if mixes_precisions(module):
        return widened(deepcopy(module, known)).eval()
    return sharing_clone(module, known=known).eval()


@torch.no_grad()
def refuse_padding(module: nn.Module, short: Inputs, filled: Inputs) -> None:
    """Refuses a model that predicts otherwise of a text [1, t] when it is filled up, the first of a batch.

    They may differ by what rounds off in float32, in which some compute parts whatever their precision.
    """
    clone = runnable(module)
    alone, every = (Outputs().of(clone, inputs).double().cpu() for inputs in (short, filled))
    within, among = ROUNDED * float(every.abs().nan_to_num().max()), every[:1]
    if not torch.allclose(alone, among, rtol=0, atol=within, equal_nan=True):
        raise InputError(
            "The model's prediction for a text depends on the padding behind it, although an attention mask "
            f"says which tokens are real: logits differ by {float((alone - among).abs().max()):.2g}. Use the "
            "mask in the model (peft's prompts before a decoder lose it; LoRA and prefix tuning do not), or "
            "pass texts of one length."
        )


def parameters(model: Any) -> frozenset[str]:
    """What the model can be given by name."""
    return frozenset(inspect.signature(model.forward).parameters)

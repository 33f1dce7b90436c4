"""Models of transformers that classify texts or images: alone, with a tokenizer or processor, in a pipeline."""

import sys
from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor

from precedents.adapters._adapter import Adapter
from precedents.adapters._encoder import MASK, PIXELS, TOKENS, Encoder, OwnTokenizer
from precedents.adapters._items import cases, examples
from precedents.adapters._transformer import HIDDEN, Transformer, parameters
from precedents.data.examples import Examples
from precedents.data.inputs import Inputs, bare, count
from precedents.errors import InputError

SERVED = ("SequenceClassification", "ImageClassification")
OTHERS = {
    "TokenClassification": "predicts a class for every token and not one for the text",
    "MultipleChoice": "chooses among texts that are given together",
    "QuestionAnswering": "points at a part of the text",
    "AudioClassification": "takes sounds, which are not served yet",
    "VideoClassification": "takes videos, which are not served yet",
}


class HuggingFace(Adapter):
    """A model, a pair (model, tokenizer or image processor), or a pipeline."""

    before = ("pytorch",)  # its models are torch modules

    @classmethod
    def accepts(cls, model: Any) -> bool:
        """Models of transformers, alone, with their tool or in a pipeline."""
        return _unpacked(model) is not None

    def __init__(self, model: Any) -> None:
        found = _unpacked(model)
        assert found is not None
        network, tokenizer, processor = found
        _check(network)
        names = network.config.id2label
        own = None if tokenizer is None else OwnTokenizer(tokenizer)
        self.encoder = Encoder(
            main=network.main_input_name,
            accepted=parameters(network) - {"labels"},
            padding=_padding(network),
            tokenizer=own,
            processor=processor,
            classes={str(name): int(place) for place, name in names.items()},
        )
        self.tokenizer = tokenizer
        special = _special(tokenizer)
        words = getattr(network.config.get_text_config(), "vocab_size", 0)
        self.module = Transformer(network)
        self.classes = _classes([names[place] for place in sorted(names)])
        self.name = type(network).__name__
        self.hidden = HIDDEN
        self.render = _render(own, processor, special)
        self.vectorise = (
            partial(_counts, words=words, special=special) if self.encoder.main == TOKENS else _pixels
        )

    def examples(self, data: Any, what: str) -> Examples:
        """From rows of named fields, as the Trainer takes them; or a pair with labels."""
        return examples(self.encoder, data, what)

    def cases(self, x: Any, train: Examples) -> tuple[Inputs, bool]:  # noqa: ARG002
        """One text, picture or row, or several of them."""
        return cases(self.encoder, x)

    def unknown(self, x: Any, train: Examples, inputs: Inputs) -> Sequence[str]:  # noqa: ARG002
        """Texts without a token, and texts of which the tokenizer knows no word."""
        if self.tokenizer is None or not isinstance(inputs, dict):
            return [""] * count(inputs)
        special, missing = set(self.tokenizer.all_special_ids), self.tokenizer.unk_token_id
        said = []
        for i in range(count(inputs)):
            tokens = cast("dict[str, Tensor]", bare(inputs, i))[TOKENS].tolist()
            nothing = all(token in special for token in tokens)
            said.append(("any word of it" if missing in tokens else "a text without words") if nothing else "")
        return said

    def numbered(self, labels: Any) -> list[int]:
        """Of class numbers or names of classes."""
        return [self.encoder.label(label, i) for i, label in enumerate(labels)]


def _unpacked(model: Any) -> tuple[Any, Any, Any] | None:
    """The model, its tokenizer and its image processor, as far as there are; None for other kinds of models."""
    network_type, pipeline_type = (
        getattr(sys.modules.get(f"transformers.{module}"), name, ())  # not loaded: then it is none of them
        for module, name in (("modeling_utils", "PreTrainedModel"), ("pipelines.base", "Pipeline"))
    )
    network, tool = model if isinstance(model, tuple) and len(model) == 2 else (model, None)
    if isinstance(model, pipeline_type):
        network, tool = model.model, model  # which has the tools as a processor has them
    network = getattr(network, "_orig_mod", network)  # a compiled model is read as the one it came from
    if not isinstance(network, network_type):
        return None
    tokenizer = getattr(tool, "tokenizer", tool if hasattr(tool, "all_special_ids") else None)
    processor = getattr(tool, "image_processor", tool if hasattr(tool, "preprocess") else None)
    if tool is not None and tokenizer is None and processor is None:
        raise InputError(
            f"A {type(tool).__name__} came with the model. Pass a pair (model, tokenizer) for texts or "
            "(model, image processor) for images."
        )
    return (network, None, processor) if network.main_input_name == PIXELS else (network, tokenizer, None)


def _check(network: Any) -> None:
    """Refuses what is no classifier of one label, with the reason."""
    name, config = type(network).__name__, network.config
    ancestors = [each.__name__ for each in type(network).__mro__]
    advice = "Use AutoModelForSequenceClassification or AutoModelForImageClassification."
    for task, reason in OTHERS.items():
        if any(each.endswith(f"For{task}") for each in ancestors):
            raise InputError(f"{name} {reason}. {advice}")
    own = not type(network).__module__.startswith("transformers.")  # a user's class: its logits will tell
    if not own and not any(each.endswith(f"For{task}") for each in ancestors for task in SERVED):
        raise InputError(
            f"{name} has no classification head, so that it predicts no label that could be explained. {advice}"
        )
    if network.main_input_name not in (TOKENS, PIXELS):
        raise InputError(f"{name} takes {network.main_input_name}. Models of {TOKENS} or {PIXELS} are served.")
    if config.num_labels == 1 or config.problem_type == "regression":
        raise InputError(
            f"{name} predicts a number, not a class: its configuration has num_labels {config.num_labels} and "
            f"problem_type {config.problem_type!r}. Train a classifier on ranges of the number."
        )
    if config.problem_type == "multi_label_classification":
        raise InputError(
            f"{name} predicts several labels at once: its problem_type is {config.problem_type!r}. Metrics "
            "compare losses of one class. Explain one label at a time: train a model of two classes for it."
        )


def _padding(network: Any) -> int:
    if network.main_input_name != TOKENS:
        return 0
    padding = network.config.get_text_config().pad_token_id
    if padding is None:
        raise InputError(
            "The model's configuration has no pad_token_id, so that texts of different lengths cannot share a "
            "batch. Type: model.config.pad_token_id = tokenizer.pad_token_id (or any token that ends no text)."
        )
    return int(padding)


def _classes(names: Sequence[str]) -> list[str] | None:
    """The names, unless they are those that every configuration begins with."""
    return None if all(name == f"LABEL_{i}" for i, name in enumerate(names)) else [str(name) for name in names]


def _special(tokenizer: Any) -> list[int]:
    """Tokens that stand for nothing in the text; the unknown word is one in the text."""
    every = () if tokenizer is None else tokenizer.all_special_ids
    return [token for token in every if token != tokenizer.unk_token_id]


def _counts(inputs: Inputs, words: int, special: Sequence[int]) -> Tensor:
    """How often each token occurs [b, words]; padding and special tokens count nothing."""
    assert isinstance(inputs, dict)
    tokens, mask = inputs[TOKENS], inputs.get(MASK)
    assert isinstance(tokens, Tensor)
    real = torch.ones_like(tokens, dtype=torch.double) if mask is None else (mask != 0).double()  # type: ignore[union-attr]
    counts = torch.zeros(len(tokens), words, dtype=torch.double, device=tokens.device).scatter_add(
        1, tokens, real
    )
    counts[:, list(special)] = 0
    return counts


def _pixels(inputs: Inputs) -> Tensor:
    assert isinstance(inputs, dict)
    pixels = inputs[PIXELS]
    assert isinstance(pixels, Tensor)
    return pixels.flatten(1)


def _render(tokenizer: Any, processor: Any, special: Sequence[int]) -> Any:
    """A text as the tokenizer writes it; a picture as it was before the processor normalised it."""

    def text(instance: dict[str, Tensor]) -> str:
        return tokenizer.decode([token for token in instance[TOKENS].tolist() if token not in special])

    def picture(instance: dict[str, Tensor]) -> Tensor:
        pixels = instance[PIXELS].detach().cpu().double()
        if processor.do_normalize:
            mean, std = (
                torch.tensor(values).reshape(-1, 1, 1) for values in (processor.image_mean, processor.image_std)
            )
            pixels = pixels * std + mean
        return pixels.clamp(0, 1) if processor.do_rescale else pixels

    return text if tokenizer is not None else picture if processor is not None else None


hugging_face = HuggingFace

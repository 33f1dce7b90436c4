"""Models of transformers that classify texts or images: alone, with a tool, in a pipeline or in a Trainer."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, RandomSampler, SequentialSampler

from precedents.adapters._adapter import TRAINING, Adapter
from precedents.adapters._collator import collator_of
from precedents.adapters._columns import Columns
from precedents.adapters._encoder import MASK, PIXELS, TOKENS, Encoder, OwnTokenizer
from precedents.adapters._items import Items, asked, cases, examples, is_row, learned, seen
from precedents.adapters._peft import base_of, refuse_quantised, title
from precedents.adapters._trainer import Brought
from precedents.adapters._transformer import HIDDEN, Transformer, parameters, refuse_padding
from precedents.classifier.construction import unwrapped
from precedents.data.datamodules import loader_of
from precedents.data.examples import Batch, Examples, Originals
from precedents.data.ids import Id, ids_among
from precedents.data.inputs import Inputs, bare, count, shapes
from precedents.errors import InputError

SOME = 4  # instances that a Trainer's loss is tried on
SERVED = ("SequenceClassification", "ImageClassification")
OTHERS = {
    "TokenClassification": "predicts a class for every token and not one for the text",
    "MultipleChoice": "chooses among texts that are given together",
    "QuestionAnswering": "points at a part of the text",
    "AudioClassification": "takes sounds, which are not served yet",
    "VideoClassification": "takes videos, which are not served yet",
}


class HuggingFace(Adapter):
    """A model, a pair (model, tokenizer or image processor), a pipeline, or a Trainer with all that it has."""

    before = ("pytorch",)  # its models are torch modules
    reads = ("text", "image", "labels", "ids")
    some: Batch | None = None  # of a Trainer's training set, of different classes

    @classmethod
    def accepts(cls, model: Any) -> bool:
        """Models of transformers, alone, with their tool, in a pipeline or a Trainer."""
        return isinstance(model, _type("trainer", "Trainer")) or _unpacked(model) is not None

    def __init__(self, model: Any) -> None:
        self.brought = Brought(model) if isinstance(model, _type("trainer", "Trainer")) else None
        found = _unpacked(model if self.brought is None else (self.brought.trainer.model, self.brought.tool))
        if found is None:
            raise InputError(
                f"The Trainer's model is a {type(model.model).__name__}. A torch.nn.Module is expected."
            )
        network, self.tokenizer, processor = found
        base = base_of(network)
        main = _checked(base)
        refuse_quantised(network)
        names = getattr(getattr(base, "config", None), "id2label", {})
        own = None if self.tokenizer is None else OwnTokenizer(self.tokenizer)
        self.encoder = Encoder(
            main=main,
            accepted=parameters(base) - {"labels"},
            padding=_padding(base, self.tokenizer) if main == TOKENS else 0,
            tokenizer=own,
            processor=processor,
            classes={str(name): int(place) for place, name in names.items()},
        )
        self.module = Transformer(network)
        self.classes = _classes([names[place] for place in sorted(names)])
        self.name = title(network)
        self.hidden = HIDDEN
        self.render = _render(own, processor)
        self.made_by = "the tokenizer" if own is not None else "the image processor" if processor else None
        words = _words(base, self.tokenizer)
        if main == PIXELS:
            self.vectorise = _pixels
        elif words is not None:
            self.vectorise = partial(_counts, words=words, special=() if own is None else own.special)
        if self.brought is not None:
            self.train, self.test = self.brought.trainer.train_dataset, self.brought.trainer.eval_dataset
            self.encoder = replace(self.encoder, labels=self.brought.labels, collator=self.brought.collator)

    @property
    def loss(self) -> Any:
        """Of a Trainer, what it trained by."""
        if self.brought is None:
            return None
        if self.some is not None:
            self.brought.refuse_own_loss(self.some)
        return self.brought.loss

    def told(self, columns: Columns, classes: Any) -> None:
        """Which columns have the texts, the images and the labels; and the names that labels may be."""
        super().told(columns, classes)
        labels = (columns.labels,) if isinstance(columns.labels, str) else self.encoder.labels
        known = dict(self.encoder.classes)
        if isinstance(classes, (list, tuple)):
            known |= {str(name): place for place, name in enumerate(classes)}
        self.encoder = replace(self.encoder, columns=columns, labels=labels, classes=known)

    def examples(self, data: Any, what: str) -> Examples:
        """From rows of named fields, as the Trainer takes them; a pair with labels; or a DataLoader of them."""
        if isinstance(data, Examples):
            self.encoder = getattr(data.source, "encoder", self.encoder)
            return data
        encoder = self.encoder
        if hasattr(data, "train_dataloader"):
            data = loader_of(data, what)
        if isinstance(data, DataLoader):
            encoder, data = replace(encoder, collator=collator_of(data.collate_fn)), dataset_of(data, what)
        if isinstance(data, tuple) and len(data) == 2:
            data = encoder.by_order(data[0]) or data[0], data[1]
        apart = None if isinstance(self.where.labels, str) else self.where.labels
        rows = Items.of(data if apart is None else (data, apart), what)
        if what != TRAINING:
            return examples(encoder, rows, what)
        self.encoder = self._learned(encoder, rows)
        made = examples(self.encoder, rows, what)
        ends = [made.source.shortest, made.source.largest[0]]  # type: ignore[attr-defined]
        short, filled = (made.take(indices).inputs for indices in (ends[:1], ends))
        if shapes(short)[0][1:] != shapes(filled)[0][1:]:
            refuse_padding(self.module, short, filled)
        if self.brought is not None:
            firsts = {int(label): i for i, label in reversed(list(enumerate(made.labels.tolist())))}
            self.some = made.take(sorted(firsts.values())[:SOME])
        return made

    def _learned(self, encoder: Encoder, rows: Items) -> Encoder:
        """The encoder with what the training set shows: its columns, and the names of its classes."""
        names = rows.class_names(encoder.labels)
        if names is not None and self.classes is None and len(encoder.classes) in (0, len(names)):
            self.classes = names
            encoder = replace(encoder, classes={**encoder.classes, **{name: i for i, name in enumerate(names)}})
        elif names is not None and self.classes is not None:
            _refuse_order(names, list(self.classes))
        encoder = learned(encoder, rows)
        if self.render is None and encoder.columns.text:
            self.render = _numbers_or_text
        return encoder

    def joined(self, batches: Sequence[Inputs]) -> Inputs:
        """Filled up to the longest text of all."""
        return self.encoder.joined(batches)

    def cases(self, x: Any, train: Examples) -> tuple[Inputs, bool]:  # noqa: ARG002
        """One text, picture or row, or several of them."""
        return cases(self.encoder, x)

    def originals(self, x: Any, train: Examples) -> Originals | None:
        """The cases as they were given, where training instances are shown so."""
        return None if train.originals is None else seen(self.encoder, asked(self.encoder, x)[0], cases=True)

    def ids(self, x: Any, train: Examples) -> Sequence[Id] | None:  # noqa: ARG002
        """By the column of ids, a frame's index, or what a row of a frame is called."""
        own = asked(self.encoder, x)[0].known_ids(self.encoder.columns.id_column, unique=False)
        return ids_among([x.name], unique=False) if own is None and is_row(self.encoder, x) else own

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

    def unnamed(self, label: str, names: Sequence[str] | None) -> str:  # noqa: ARG002
        """Itself: rows may know more names, and `numbered` says which."""
        return label

    def numbered(self, labels: Any) -> list[int]:
        """Of class numbers or names of classes."""
        return [self.encoder.label(label, i) for i, label in enumerate(labels)]


def _type(module: str, name: str) -> Any:
    """A class of transformers; none if that is not loaded, and then nothing is an instance of it."""
    return getattr(sys.modules.get(f"transformers.{module}"), name, ())


def _unpacked(model: Any) -> tuple[Any, Any, Any] | None:
    """The model, its tokenizer and its image processor, as far as there are; None for other kinds of models."""
    network, tool = model if isinstance(model, tuple) and len(model) == 2 else (model, None)
    if isinstance(model, _type("pipelines.base", "Pipeline")):
        network, tool = model.model, model  # which has the tools as a processor has them
    network = network if network is model else unwrapped(network)  # as the model itself is already
    inside = base_of(network) if hasattr(network, "peft_config") else network
    tokenizer = getattr(tool, "tokenizer", tool if hasattr(tool, "all_special_ids") else None)
    processor = getattr(tool, "image_processor", tool if hasattr(tool, "preprocess") else None)
    useful = tokenizer is not None or processor is not None
    if not isinstance(inside, _type("modeling_utils", "PreTrainedModel")) and not (
        isinstance(network, nn.Module) and useful
    ):
        return None
    if tool is not None and not useful:
        raise InputError(
            f"A {type(tool).__name__} came with the model. Pass a pair (model, tokenizer) for texts or "
            "(model, image processor) for images."
        )
    return (network, None, processor) if _main(inside) == PIXELS else (network, tokenizer, None)


def _main(network: Any) -> str | None:
    """The name of what the model is given; of a module of one's own by its arguments."""
    named = (name for name in (TOKENS, PIXELS) if name in parameters(network))
    return getattr(network, "main_input_name", None) or next(named, None)


def _checked(network: Any) -> str:
    """The name of what the model is given; what is no classifier of one label is refused, with the reason."""
    name, main, config = type(network).__name__, _main(network), getattr(network, "config", None)
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
    if main not in (TOKENS, PIXELS):
        raise InputError(
            f"{name} takes {main or ', '.join(sorted(parameters(network)))}. Models of {TOKENS} or {PIXELS} "
            "are served. A module of your own is explained without a Trainer: pr.Explainer(model, dataset)."
        )
    if getattr(config, "num_labels", None) is not None:
        _refuse_other_labels(name, config)
    return main


def _refuse_other_labels(name: str, config: Any) -> None:
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


def _refuse_order(names: list[str], known: list[str]) -> None:
    """Refuses a column whose classes are those of the model in another order: its numbers mean others."""
    if names != known and sorted(names) == sorted(known):
        raise InputError(
            f"The labels of the training set count the classes as {', '.join(names)}, the model's id2label as "
            f"{', '.join(known)}. If the model is right: data.align_labels_with_mapping(model.config.label2id, "
            "'label'); if the data are, set model.config.id2label."
        )


def _text_config(network: Any) -> Any:
    config: Any = getattr(network, "config", None)
    return config.get_text_config() if hasattr(config, "get_text_config") else config


def _padding(network: Any, tokenizer: Any) -> int:
    config = _text_config(network)
    padding = getattr(config if config is not None else tokenizer, "pad_token_id", None)
    if padding is None and config is not None:
        raise InputError(
            "The model's configuration has no pad_token_id, so that texts of different lengths cannot share a "
            "batch. Type: model.config.pad_token_id = tokenizer.pad_token_id (or any token that ends no text)."
        )
    return int(padding or 0)


def _words(network: Any, tokenizer: Any) -> int | None:
    """How many tokens there are; none if nobody knows."""
    found = getattr(_text_config(network), "vocab_size", None)
    return len(tokenizer) if found is None and tokenizer is not None else found


def dataset_of(loader: Any, what: str) -> Any:
    """The data set of a loader that takes all of it, in whatever order: instances are cited by their places."""
    if not isinstance(loader.sampler, (SequentialSampler, RandomSampler)):
        raise InputError(
            f"The {what} is a DataLoader with a {type(loader.sampler).__name__}, which may leave instances "
            "out. Pass the data set that it takes them from, or torch.utils.data.Subset of it."
        )
    return loader.dataset


def _classes(names: Sequence[str]) -> list[str] | None:
    """The names, unless they are those that every configuration begins with."""
    return None if all(name == f"LABEL_{i}" for i, name in enumerate(names)) else [str(name) for name in names]


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


def _render(tokenizer: OwnTokenizer | None, processor: Any) -> Any:
    """A text as it was given, or as the tokenizer writes it; a picture as it was before it was normalised."""

    def text(instance: str | dict[str, Tensor]) -> str:
        if isinstance(instance, str):
            return instance
        assert tokenizer is not None
        return tokenizer.decode(tokenizer.bare(instance[TOKENS].tolist()))

    def picture(instance: dict[str, Tensor]) -> Tensor:
        pixels = instance[PIXELS].detach().cpu().double()
        if processor.do_normalize:
            mean, std = (
                torch.tensor(values).reshape(-1, 1, 1) for values in (processor.image_mean, processor.image_std)
            )
            pixels = pixels * std + mean
        return pixels.clamp(0, 1) if processor.do_rescale else pixels

    return text if tokenizer is not None else picture if processor is not None else None


def _numbers_or_text(instance: str | dict[str, Tensor]) -> str:
    """A text as it was given, or the numbers of its tokens."""
    return instance if isinstance(instance, str) else " ".join(map(str, instance[TOKENS].tolist()))


hugging_face = HuggingFace

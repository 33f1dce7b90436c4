"""Small architectures of transformers with random weights, trained for some steps on toy texts and images."""

import random
from collections.abc import Callable, Sequence
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from torch.nn.functional import cross_entropy
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    DistilBertConfig,
    DistilBertForSequenceClassification,
    GPT2Config,
    GPT2ForSequenceClassification,
    LlamaConfig,
    LlamaForSequenceClassification,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForSequenceClassification,
    ViTConfig,
    ViTForImageClassification,
)

TOPICS = {
    "weather": ["rain", "snow", "wind", "sunny", "cloud", "storm", "mild", "frost"],
    "sport": ["goal", "match", "team", "coach", "score", "race", "player", "win"],
    "food": ["soup", "bread", "sweet", "salt", "cook", "spice", "fresh", "fry"],
}
COMMON = ["the", "a", "is", "was", "very", "and", "today", "some"]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
WORDS = [*SPECIAL, *COMMON, *(word for words in TOPICS.values() for word in words)]

Rows = list[dict[str, Any]]


def tokenizer(**options: Any) -> PreTrainedTokenizerFast:
    """A word is a token; every text is put between [CLS] and [SEP]."""
    inner = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    inner.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token"), SPECIAL, strict=True))
    return PreTrainedTokenizerFast(tokenizer_object=inner, **names, **options)


def texts(n: int, seed: int) -> Rows:
    """Texts of one to nine words about the topics in turn, as {"text": ..., "label": ...}."""
    draw = random.Random(seed)
    rows = []
    for i in range(n):
        topic = TOPICS[list(TOPICS)[i % 3]]
        words = [draw.choice(COMMON) for _ in range(draw.randrange(7))] + draw.choices(topic, k=1 + i % 2)
        draw.shuffle(words)
        rows.append({"text": " ".join(words), "label": i % 3})
    return rows


def images(n: int, seed: int) -> Rows:
    """Noise [3, 8, 8] with one bright channel, as {"pixel_values": ..., "label": ...}."""
    noise = torch.randn(n, 3, 8, 8, generator=torch.Generator().manual_seed(seed))
    labels = torch.arange(n) % 3
    noise[torch.arange(n), labels] += 0.7
    return [{"pixel_values": noise[i], "label": i % 3} for i in range(n)]


SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
TOKENS = {"vocab_size": len(WORDS), "max_position_embeddings": 40, "pad_token_id": 0, "initializer_range": 0.2}
NAMES = {"num_labels": 3, "id2label": dict(enumerate(TOPICS)), "label2id": {t: i for i, t in enumerate(TOPICS)}}

BUILD: dict[str, Callable[[], Any]] = {
    "bert": lambda: BertForSequenceClassification(BertConfig(**SIZES, **TOKENS, **NAMES)),
    "distilbert": lambda: DistilBertForSequenceClassification(
        DistilBertConfig(dim=16, n_layers=2, n_heads=2, hidden_dim=24, **TOKENS, **NAMES)
    ),
    "roberta": lambda: RobertaForSequenceClassification(
        RobertaConfig(**SIZES, **TOKENS, **NAMES, bos_token_id=2, eos_token_id=3)
    ),
    "gpt2": lambda: GPT2ForSequenceClassification(
        GPT2Config(
            n_embd=16,
            n_layer=2,
            n_head=2,
            n_positions=40,
            vocab_size=len(WORDS),
            pad_token_id=0,
            bos_token_id=2,
            eos_token_id=3,
            **NAMES,
        )
    ),
    "llama": lambda: LlamaForSequenceClassification(
        LlamaConfig(**SIZES, **TOKENS, **NAMES, num_key_value_heads=1, bos_token_id=2, eos_token_id=3)
    ),
    "vit": lambda: ViTForImageClassification(ViTConfig(**SIZES, image_size=8, patch_size=4, **NAMES)),
}


def encoded(name: str, rows: Rows) -> Rows:
    """What the model is fed: token numbers of their own length each, or pixels."""
    if name == "vit":
        return rows
    ids = tokenizer()([row["text"] for row in rows])["input_ids"]
    return [{"input_ids": each, "label": row["label"]} for each, row in zip(ids, rows, strict=True)]


def data(name: str, n: int, seed: int) -> Rows:
    """Encoded instances for the model."""
    return encoded(name, images(n, seed) if name == "vit" else texts(n, seed))


def trained(name: str, steps: int = 25) -> Any:
    """A float64 model after some steps; torch's global random state stays as it was."""
    rows = data(name, 48, seed=1)
    labels = torch.tensor([row["label"] for row in rows])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = BUILD[name]().double().eval()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    inputs = batch(rows)
    for _ in range(steps):
        optimizer.zero_grad()
        cross_entropy(model(**inputs).logits, labels).backward()
        optimizer.step()
    model.zero_grad()
    return model


def trainer(model: Any, folder: Any, **parts: Any) -> Any:
    """A Trainer of the model on the CPU, which writes nothing; `options` are of its arguments."""
    from transformers import Trainer, TrainingArguments

    quiet = {"report_to": [], "disable_tqdm": True, "save_strategy": "no", "logging_strategy": "no"}
    options = {"num_train_epochs": 1, "use_cpu": True, **quiet, **parts.pop("options", {})}
    kind = parts.pop("kind", Trainer)
    return kind(model=model, args=TrainingArguments(output_dir=str(folder), **options), **parts)


def alone(
    model: Any, inputs: Sequence[Any], labels: Sequence[int | None], loss: Any = cross_entropy
) -> torch.Tensor:
    """Loss gradients by plain autograd, one instance at a time; without a label, for the predicted class."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    found = []
    for each, label in zip(inputs, labels, strict=True):
        output = model(**each)
        logits = output["logits"]
        wanted = logits.argmax(dim=1) if label is None else torch.tensor([label])
        grads = torch.autograd.grad(loss(logits, wanted), parameters, materialize_grads=True)
        found.append(torch.cat([grad.flatten() for grad in grads]))
    return torch.stack(found)


def cosines(
    model: Any, cases: Sequence[Any], train: Sequence[Any], labels: Sequence[int], **loss: Any
) -> torch.Tensor:
    """Grad-Cos [m, n] by plain autograd."""
    model.eval()
    case, precedent = alone(model, cases, [None] * len(cases), **loss), alone(model, train, labels, **loss)
    return torch.nn.functional.cosine_similarity(case[:, None], precedent[None], dim=2)


def batch(rows: Rows) -> dict[str, torch.Tensor]:
    """Instances as one batch, padded at the right as every data collator does."""
    if "pixel_values" in rows[0]:
        return {"pixel_values": torch.stack([row["pixel_values"] for row in rows]).double()}
    most = max(len(row["input_ids"]) for row in rows)
    ids = [[*row["input_ids"], *[0] * (most - len(row["input_ids"]))] for row in rows]
    mask = [[1] * len(row["input_ids"]) + [0] * (most - len(row["input_ids"])) for row in rows]
    return {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask)}

"""Transformers of transformers with random weights, from their configurations: nothing is downloaded."""

from typing import Any

import torch
from torch import Tensor, nn

WORDS = 30_522  # of BERT's vocabulary
PIXELS = 224
NAMED = {"tokens": "input_ids", "pixels": "pixel_values"}


class Classified(nn.Module):
    """A model of transformers that takes one tensor and returns logits."""

    def __init__(self, model: Any, takes: str) -> None:
        super().__init__()
        self.model, self.takes = model, NAMED[takes]

    def forward(self, x: Tensor) -> Tensor:
        """[b, ...] to logits [b, classes]."""
        logits: Tensor = self.model(**{self.takes: x}).logits
        return logits


def bert(width: int = 384, layers: int = 6, classes: int = 6) -> nn.Module:
    """BERT's encoder with a head; 22.7 million parameters, or 110 with 12 layers of width 768."""
    from transformers import BertConfig, BertForSequenceClassification

    sizes = {"hidden_size": width, "num_hidden_layers": layers, "intermediate_size": 4 * width}
    config = BertConfig(**sizes, num_attention_heads=12, vocab_size=WORDS, num_labels=classes)
    return Classified(BertForSequenceClassification(config), "tokens")


def vit(width: int = 192, layers: int = 12, classes: int = 10) -> nn.Module:
    """ViT-tiny on 224 x 224 pixels in patches of 16 x 16."""
    from transformers import ViTConfig, ViTForImageClassification

    sizes = {"hidden_size": width, "num_hidden_layers": layers, "intermediate_size": 4 * width}
    config = ViTConfig(**sizes, num_attention_heads=3, image_size=PIXELS, num_labels=classes)
    return Classified(ViTForImageClassification(config), "pixels")


def gpt2(width: int = 384, layers: int = 6, classes: int = 6) -> nn.Module:
    """GPT-2's decoder with a head that reads the last token."""
    from transformers import GPT2Config, GPT2ForSequenceClassification

    sizes = {"n_embd": width, "n_layer": layers, "n_head": 12, "vocab_size": WORDS}
    config = GPT2Config(**sizes, bos_token_id=0, eos_token_id=0, pad_token_id=0, num_labels=classes)
    return Classified(GPT2ForSequenceClassification(config), "tokens")


def tokens(count: int, length: int) -> Tensor:
    """Token numbers [count, length] without padding."""
    return torch.randint(1, WORDS, (count, length))


def pixels(count: int) -> Tensor:
    """Noise [count, 3, 224, 224]."""
    return torch.randn(count, 3, PIXELS, PIXELS)

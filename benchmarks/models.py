"""The kinds of model that are measured, with random weights, and random instances for them."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from benchmarks import encoders
from benchmarks.convolutions import convnext, resnet18, resnet50
from precedents.zoo.architectures.bi_lstm import BiLstm
from precedents.zoo.architectures.cnn import cnn
from precedents.zoo.architectures.logistic_regression import logistic_regression
from precedents.zoo.architectures.mobilenet_v2 import mobilenet_v2

IMAGE = (3, 32, 32)
LENGTH = 24  # tokens of a sequence, the last ones padding


@dataclass(frozen=True)
class Kind:
    """A kind of model and what it is fed."""

    title: str
    build: Callable[[], nn.Module]
    inputs: Callable[[int], Tensor]  # how many -> that many instances
    classes: int
    batches: tuple[int, ...] = (16, 64, 256, 1024)  # sizes worth trying
    share: int = 1  # the sizes n and m are divided by it
    sizes: tuple[int, int] | None = None  # or they are always these
    checked: tuple[int, int] | None = None  # how many training instances and cases, if not as many as of others
    memory: str | None = None  # the budget

    def of(self, n: int, m: int) -> tuple[int, int]:
        """How many training instances and cases there are of this kind, where others have n and m."""
        return self.sizes or (n // self.share, m // self.share)


@dataclass(frozen=True)
class Work:
    """A model, n training instances and m cases; the cases' labels are the model's own predictions."""

    model: nn.Module  # in eval mode
    x_train: Tensor
    y_train: Tensor
    x_cases: Tensor
    y_cases: Tensor
    memory: str | None = None  # the budget

    @property
    def parts(self) -> tuple[nn.Module, Tensor, Tensor, Tensor, Tensor]:
        """In the order in which the measured functions take them."""
        return self.model, self.x_train, self.y_train, self.x_cases, self.y_cases

    @property
    def parameters(self) -> int:
        """How many the model has."""
        return sum(p.numel() for p in self.model.parameters())

    def doubled(self) -> "Work":
        """The same in float64."""
        x_train, x_cases = (x.double() if x.is_floating_point() else x for x in (self.x_train, self.x_cases))
        return replace(self, model=deepcopy(self.model).double(), x_train=x_train, x_cases=x_cases)

    def head(self, n: int, m: int) -> "Work":
        """The same with the first n training instances and the first m cases."""
        return replace(
            self,
            x_train=self.x_train[:n],
            y_train=self.y_train[:n],
            x_cases=self.x_cases[:m],
            y_cases=self.y_cases[:m],
        )


class Unpacked(BiLstm):
    """The paper's Bi-LSTM that reads padding as words: the peers map over instances, which packing forbids."""

    def forward(self, tokens: Tensor) -> Tensor:
        """[b, length] to logits [b, classes]."""
        _, (states, _) = self.lstm(self.embedding(tokens))  # [layers x directions, b, hidden]
        return self.head(torch.cat([states[-2], states[-1]], dim=1))


class Transformer(nn.Module):
    """Two encoder layers on tokens with learned positions, averaged over the positions, one linear layer."""

    def __init__(self, words: int = 500, width: int = 64, classes: int = 6) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.positions = nn.Parameter(torch.randn(LENGTH, width) / width**0.5)
        self.layers = nn.Sequential(*(_encoder_layer(width) for _ in range(2)))
        self.head = nn.Linear(width, classes)

    def forward(self, tokens: Tensor) -> Tensor:
        """[b, length] to logits [b, classes]."""
        hidden = self.layers(self.embedding(tokens) + self.positions)  # [b, length, width]
        return self.head(hidden.mean(dim=1))


def _encoder_layer(width: int) -> nn.Module:
    return nn.TransformerEncoderLayer(width, nhead=4, dim_feedforward=128, dropout=0.1, batch_first=True)


def images(count: int) -> Tensor:
    """Noise [count, 3, 32, 32]."""
    return torch.randn(count, *IMAGE)


def larger_images(count: int) -> Tensor:
    """Noise [count, 3, 64, 64]."""
    return torch.randn(count, 3, 64, 64)


def sentences(count: int, words: int) -> Tensor:
    """Token numbers [count, length], each sequence ended by zeros."""
    tokens = torch.randint(1, words, (count, LENGTH))
    lengths = torch.randint(LENGTH // 4, LENGTH + 1, (count, 1))
    return tokens * (torch.arange(LENGTH) < lengths)


MODELS = {
    "logreg": Kind("logistic regression", lambda: logistic_regression(IMAGE, 10), images, 10),
    "cnn": Kind("CNN", lambda: cnn(IMAGE, 10), images, 10),
    "lstm": Kind("Bi-LSTM", lambda: Unpacked(1260, 6, 8, 16), lambda count: sentences(count, 1260), 6),
    "transformer": Kind("transformer", Transformer, lambda count: sentences(count, 500), 6),
    "mobilenet": Kind(
        "MobileNetV2", lambda: mobilenet_v2(IMAGE, 10, fine=True), images, 10, batches=(16, 64), share=10
    ),
    "resnet18": Kind("ResNet-18, 2 GB", resnet18, images, 10, batches=(16, 32, 64), share=10, memory="2 GB"),
    "resnet50": Kind("ResNet-50", resnet50, larger_images, 10, batches=(16, 32, 64), share=25),
    "convnext": Kind("ConvNeXt-T", convnext, larger_images, 10, batches=(16, 32, 64), share=25),
    "bert": Kind(
        "BERT-like, 24 tokens", encoders.bert, lambda count: encoders.tokens(count, 24), 6, (16, 64), share=10
    ),
    "bert_long": Kind(
        "BERT-like, 128 tokens", encoders.bert, lambda count: encoders.tokens(count, 128), 6, (8, 32), share=10
    ),
    "bert_base": Kind(
        "BERT-base, 64 tokens, 2 GB",
        lambda: encoders.bert(768, 12),
        lambda count: encoders.tokens(count, 64),
        6,
        (8, 32),
        sizes=(200, 10),
        checked=(2, 1),
        memory="2 GB",
    ),
    "gpt2": Kind(
        "GPT-2-like, 24 tokens", encoders.gpt2, lambda count: encoders.tokens(count, 24), 6, (16, 64), share=10
    ),
    "vit": Kind("ViT-tiny", encoders.vit, encoders.pixels, 10, (8, 32), share=25),
}


def work(name: str, n: int, m: int, seed: int = 0) -> Work:
    """The same weights, instances and labels for the same arguments, in whichever process."""
    kind = MODELS[name]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = settled(kind.build(), kind.inputs(64))
        inputs = kind.inputs(n + m)
        labels = torch.randint(kind.classes, (n,))
    cases = inputs[n:].clone()
    return Work(model, inputs[:n].clone(), labels, cases, predicted(model, cases), kind.memory)


@torch.no_grad()
def settled(model: nn.Module, inputs: Tensor) -> nn.Module:
    """The model in eval mode; the running statistics of its batch normalizations are those of these inputs."""
    norms = [module for module in model.modules() if isinstance(module, nn.BatchNorm2d)]
    if norms:
        for norm in norms:
            norm.momentum = None  # the average over all batches so far, of which there is one
        model.train()(inputs)
    return model.eval()


@torch.no_grad()
def predicted(model: nn.Module, inputs: Tensor) -> Tensor:
    """The class with the largest logit for each instance."""
    return torch.cat([model(part).argmax(dim=1) for part in inputs.split(64)])

"""Text classifiers with a collate_fn each, as people write them, and their scores by plain autograd."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pack_sequence, pad_sequence

WORDS = 34
CLASSES = 3


def sentences(n: int, seed: int = 0) -> list[tuple[int, list[int]]]:
    """Items (label, token numbers) of lengths from 1 to 8."""
    draw = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, 9, (n,), generator=draw).tolist()
    return [
        (i % 3, torch.randint(1 + 10 * (i % 3), 14 + 10 * (i % 3), (length,), generator=draw).tolist())
        for i, length in enumerate(lengths)
    ]


TRAIN, TEST = sentences(30), sentences(9, seed=1)


class Recurrent(nn.Module):
    """An LSTM in both directions over packed sequences."""

    def __init__(self, enforce_sorted: bool = False, kind: Any = nn.LSTM) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, 4, padding_idx=0)
        self.cells = kind(4, 3, batch_first=True, bidirectional=True)
        self.out, self.sorted = nn.Linear(6, CLASSES), enforce_sorted

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        embedded = self.embedding(tokens)
        return self.pooled(pack_padded_sequence(embedded, lengths, True, enforce_sorted=self.sorted))

    def pooled(self, packed: PackedSequence) -> Tensor:
        _, state = self.cells(packed)
        state = state[0] if isinstance(state, tuple) else state
        return self.out(torch.cat([state[0], state[1]], dim=1))


class OfPacked(Recurrent):
    """The same, given packed token numbers."""

    def forward(self, packed: PackedSequence) -> Tensor:
        return self.pooled(PackedSequence(self.embedding(packed.data), *packed[1:]))


class Bag(nn.Module):
    """The mean, sum or largest of the words' vectors."""

    def __init__(self, mode: str = "mean", **settings: Any) -> None:
        super().__init__()
        self.embedding = nn.EmbeddingBag(WORDS, 4, mode=mode, **settings)
        self.out = nn.Linear(4, CLASSES)

    def forward(self, text: Tensor, offsets: Tensor, weights: Tensor | None = None) -> Tensor:
        return self.out(self.embedding(text, offsets, weights))


class Masked(nn.Module):
    """The mean over the tokens that a mask leaves."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.hidden = nn.Embedding(WORDS, 4), nn.Linear(4, 5)
        self.out = nn.Linear(5, CLASSES)

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        hidden = torch.tanh(self.hidden(self.embedding(tokens))) * mask[..., None]
        return self.out(hidden.sum(dim=1) / mask.sum(dim=1, keepdim=True))


class Nested(Masked):
    """The same of a nested tensor."""

    def forward(self, tokens: Tensor) -> Tensor:  # type: ignore[override]
        hidden = torch.tanh(self.hidden(self.embedding(tokens)))
        return self.out(torch.nested.to_padded_tensor(hidden, 0.0).sum(dim=1))


class Encoder(Masked):
    """Attention with a mask."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(4, 2, 6, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        hidden = self.encoder(self.embedding(tokens), src_key_padding_mask=mask == 0)
        hidden = self.hidden(hidden) * mask[..., None]
        return self.out(hidden.sum(dim=1) / mask.sum(dim=1, keepdim=True))


class OfList(Masked):
    """Of a list of tensors of their own lengths."""

    def forward(self, texts: Any) -> Tensor:  # type: ignore[override]
        return torch.stack(
            [self.out(torch.tanh(self.hidden(self.embedding(text))).sum(dim=0)) for text in texts]
        )


def columns(items: list[Any]) -> tuple[Tensor, list[Tensor]]:
    labels, texts = zip(*items, strict=True)
    return torch.tensor(labels), [torch.tensor(text) for text in texts]


def with_lengths(items: list[Any]) -> Any:
    labels, texts = columns(items)
    return pad_sequence(texts, batch_first=True), torch.tensor([len(text) for text in texts]), labels


def in_a_pair(items: list[Any]) -> Any:
    *inputs, labels = with_lengths(items)
    return tuple(inputs), labels


def sorted_by_length(items: list[Any]) -> Any:
    items.sort(key=lambda item: len(item[1]), reverse=True)
    return with_lengths(items)


def with_offsets(items: list[Any]) -> Any:
    labels, texts = columns(items)
    return labels, torch.cat(texts), torch.tensor([0, *map(len, texts)][:-1]).cumsum(0)


def with_weights(items: list[Any]) -> Any:
    labels, texts = columns(items)
    ends = torch.tensor([0, *map(len, texts)]).cumsum(0)
    return labels, torch.cat(texts), ends, torch.cat([1 / (1 + text.double()) for text in texts])


def packed(items: list[Any]) -> Any:
    labels, texts = columns(items)
    return pack_sequence(texts, enforce_sorted=False), labels


def nested(items: list[Any]) -> Any:
    labels, texts = columns(items)
    return torch.nested.nested_tensor(texts, layout=torch.jagged), labels


def with_mask(items: list[Any]) -> Any:
    tokens, _, labels = with_lengths(items)
    return {"tokens": tokens, "labels": labels.tolist(), "mask": (tokens > 0).double()}


def listed(items: list[Any]) -> Any:
    labels, texts = columns(items)
    return tuple(texts), labels.tolist()


class Kind(NamedTuple):
    """A model, its collate_fn, and how a batch of it goes to the model: the logits and the labels."""

    made: Callable[[], nn.Module]
    collate: Callable[[list[Any]], Any]
    fed: Callable[[Any, Any], tuple[Tensor, Any]]

    def model(self, seed: int = 0) -> nn.Module:
        torch.manual_seed(seed)
        return self.made().double().eval()

    def gradients(self, model: nn.Module, items: list[Any], own: bool = True) -> Tensor:
        """One example at a time by plain autograd; of its own label, or of the predicted one."""
        rows = []
        for item in items:
            logits, labels = self.fed(model, self.collate([item]))
            wanted = torch.as_tensor(labels) if own else logits.argmax(dim=1)
            grads = torch.autograd.grad(cross_entropy(logits, wanted), list(model.parameters()))
            rows.append(torch.cat([grad.flatten() for grad in grads]).double())
        return torch.stack(rows)

    def cosines(self, model: nn.Module, cases: list[Any], train: list[Any]) -> Tensor:
        case, own = self.gradients(model, cases, own=False), self.gradients(model, train)
        return normalize(case, dim=1) @ normalize(own, dim=1).T


def last(model: Any, batch: Any) -> tuple[Tensor, Any]:
    return model(*batch[:-1]), batch[-1]


def first(model: Any, batch: Any) -> tuple[Tensor, Any]:
    return model(*batch[1:]), batch[0]


def by_name(model: Any, batch: Any) -> tuple[Tensor, Any]:
    return model(batch["tokens"], batch["mask"]), batch["labels"]


KINDS = {
    "lengths": Kind(Recurrent, with_lengths, last),
    "a pair of inputs": Kind(lambda: Recurrent(kind=nn.GRU), in_a_pair, lambda m, b: (m(*b[0]), b[1])),
    "sorted": Kind(lambda: Recurrent(enforce_sorted=True), sorted_by_length, last),
    "packed": Kind(OfPacked, packed, last),
    "offsets, labels first": Kind(Bag, with_offsets, first),
    "offsets, largest": Kind(lambda: Bag("max"), with_offsets, first),
    "offsets with the end, weights": Kind(
        lambda: Bag("sum", include_last_offset=True, padding_idx=3), with_weights, first
    ),
    "nested": Kind(Nested, nested, last),
    "mask, a dict": Kind(Masked, with_mask, by_name),
    "attention": Kind(Encoder, with_mask, by_name),
}

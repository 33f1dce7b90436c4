"""Texts as token numbers: vocabulary, padding, word counts, and back to words."""

from collections import Counter
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

PADDING, UNKNOWN, BEGIN, END = range(4)
MARKS = ("", "‹unknown›", "⟨begin⟩", "⟨end⟩")  # the first words of every vocabulary

Tokens = Sequence[str]


def vocabulary(texts: Iterable[Tokens], least: int = 5, most: int | None = None) -> tuple[str, ...]:
    """The marks, then the words seen at least `least` times, most frequent first, ties by alphabet.

    `most` is how many words there may be, marks not counted.
    """
    counts = Counter(word for tokens in texts for word in tokens)
    known = sorted((word for word in counts if counts[word] >= least), key=lambda word: (-counts[word], word))
    return (*MARKS, *known[:most])


def encoded(texts: Sequence[Tokens], words: Sequence[str]) -> Tensor:
    """Token numbers [n, longest text], from a begin mark to an end mark, then padding."""
    number = {word: i for i, word in enumerate(words) if i >= len(MARKS)}
    rows = [[BEGIN, *(number.get(word, UNKNOWN) for word in tokens), END] for tokens in texts]
    longest = max(map(len, rows), default=0)
    return torch.tensor([row + [PADDING] * (longest - len(row)) for row in rows], dtype=torch.long)


def counted(tokens: Tensor, words: int, unknown: bool = False) -> Tensor:
    """How often each word of the vocabulary occurs [b, words]; marks count nothing.

    Words outside it count nothing either, or all as one.
    """
    known = (tokens >= len(MARKS)) | (unknown & (tokens == UNKNOWN))
    return torch.zeros(len(tokens), words, device=tokens.device).scatter_add(1, tokens, known.float())


def written(tokens: Tensor, words: Sequence[str]) -> str:
    """The text again; a word outside the vocabulary is marked."""
    return " ".join(words[i] for i in tokens.tolist() if i not in (PADDING, BEGIN, END))

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from gradients.single import Alone, B, everywhere, ruled


@settings(max_examples=20)
@given(st.lists(st.integers(1, 4), max_size=2), st.integers(1, 6), st.integers(1, 4), st.data())
def test_embedding(positions, words, width, data) -> None:
    padding = data.draw(st.none() | st.integers(0, words - 1))
    everywhere(nn.Embedding(words, width, padding), torch.randint(words, (B, *positions)))


def test_tokens_may_be_short_integers() -> None:
    tokens = torch.randint(7, (B, 5), dtype=torch.int32)
    ruled(Alone(nn.Embedding(7, 3).double(), tokens), tokens)


def test_sparse_embedding() -> None:
    tokens = torch.randint(7, (B, 5))
    ruled(Alone(nn.Embedding(7, 3, sparse=True).double(), tokens), tokens)


def test_a_large_table_is_right() -> None:
    tokens = torch.randint(500, (B, 5))
    ruled(Alone(nn.Embedding(500, 3, padding_idx=2).double(), tokens), tokens)

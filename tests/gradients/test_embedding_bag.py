import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from gradients.single import Alone, B, everywhere, normal, ruled, slow, stirred


@settings(max_examples=20)
@given(st.integers(1, 5), st.integers(2, 6), st.integers(1, 4), st.sampled_from(["sum", "mean"]), st.data())
def test_embedding_bag(positions, words, width, mode, data) -> None:
    padding = data.draw(st.none() | st.integers(0, words - 1))
    layer = nn.EmbeddingBag(words, width, mode=mode, padding_idx=padding)
    everywhere(layer, torch.randint(words, (B, positions)))


def test_a_bag_of_padding_alone() -> None:
    tokens = torch.randint(1, 6, (B, 5))
    tokens[1] = 0
    everywhere(nn.EmbeddingBag(6, 3, mode="mean", padding_idx=0), tokens)


class Weighed(nn.Module):
    def __init__(self, by_name: bool, padding: int | None) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(7, 3, mode="sum", padding_idx=padding)
        self.by_name = by_name

    def forward(self, tokens: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        if self.by_name:
            return self.bag(tokens, per_sample_weights=weights)
        return self.bag(tokens, None, weights)


@pytest.mark.parametrize("by_name", [False, True])
@pytest.mark.parametrize("padding", [None, 2])
def test_weights_of_instances(by_name, padding) -> None:
    inputs = torch.randint(7, (B, 5)), normal(B, 5)
    for model in (Alone(stirred(Weighed(by_name, padding)), *inputs), Learned(by_name, padding)):
        ruled(model, inputs)


class Learned(nn.Module):
    """The weights of the words are computed before."""

    def __init__(self, by_name: bool, padding: int | None) -> None:
        super().__init__()
        self.weigh, self.head = nn.Linear(5, 5).double(), nn.Linear(3, 3).double()
        self.layer = stirred(Weighed(by_name, padding))

    def forward(self, tokens: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        return self.head(self.layer(tokens, self.weigh(weights).softmax(dim=1)))


class Offsets(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(7, 3)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        b, t = tokens.shape
        return self.bag(tokens.flatten(), t * torch.arange(b))


@pytest.mark.parametrize("bag", [nn.EmbeddingBag(7, 3, mode="max"), Offsets()])
def test_other_bags_are_slow_and_right(bag) -> None:
    tokens = torch.randint(7, (B, 5))
    slow(Alone(stirred(bag), tokens), tokens)

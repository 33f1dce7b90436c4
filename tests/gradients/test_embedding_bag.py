import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from gradients.single import Alone, B, everywhere, normal, ruled, slow, stirred


@settings(max_examples=20)
@given(
    st.integers(1, 5), st.integers(2, 6), st.integers(1, 4), st.sampled_from(["sum", "mean", "max"]), st.data()
)
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
    """All bags in one row, of the lengths that instances have."""

    def __init__(self, by_name: bool = False, **settings) -> None:
        super().__init__()
        self.bag, self.by_name = nn.EmbeddingBag(7, 3, **settings), by_name

    def forward(self, tokens: torch.Tensor, lengths: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        real = torch.arange(tokens.shape[1]) < lengths[:, None]
        ends = torch.cat([torch.zeros(1, dtype=torch.long), lengths.cumsum(0)])
        offsets = ends if self.bag.include_last_offset else ends[:-1]
        weighed = weights[real] if self.bag.mode == "sum" else None
        if self.by_name:
            return self.bag(tokens[real], per_sample_weights=weighed, offsets=offsets)
        return self.bag(tokens[real], offsets, weighed)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize(
    "settings", [{}, {"padding_idx": 2}, {"include_last_offset": True, "padding_idx": 0}], ids=str
)
def test_bags_with_offsets(mode, settings) -> None:
    inputs = torch.randint(7, (B, 5)), torch.tensor([3, 0, 5, 1]), normal(B, 5)
    ruled(Alone(stirred(Offsets(mode=mode, **settings)), *inputs), inputs)


def test_arguments_by_name_in_any_order() -> None:
    inputs = torch.randint(7, (B, 5)), torch.tensor([2, 3, 5, 1]), normal(B, 5)
    ruled(Alone(stirred(Offsets(by_name=True, mode="sum")), *inputs), inputs)


@pytest.mark.parametrize("mode", ["mean", "max"])
def test_other_bags_are_slow_and_right(mode) -> None:
    tokens = torch.randint(7, (B, 5))
    bag = nn.EmbeddingBag(7, 3, mode=mode)
    bag.register_parameter("unused", nn.Parameter(torch.zeros(1)))
    slow(Alone(stirred(bag), tokens), tokens)

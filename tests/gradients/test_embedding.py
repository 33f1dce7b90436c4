from copy import deepcopy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from gradients.single import Alone, B, agree, everywhere, ruled
from precedents import Explainer


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


@pytest.mark.parametrize("kind", [nn.Embedding, nn.EmbeddingBag])
@pytest.mark.parametrize("precision", [torch.float32, torch.float64])
def test_a_table_of_bounded_rows_is_one_before_and_after_lookups(kind, precision, tmp_path) -> None:
    """Torch shortens the rows that it looks up, in place: the copy has all of them as short, at once."""
    tokens, labels = torch.randint(199, (9, 5)), torch.arange(9) % 3
    model = Alone(kind(200, 3, max_norm=1.0), tokens).to(precision).eval()
    with torch.no_grad():
        model.layer.weight *= 2
    before = model.layer.weight.clone()
    explainer = Explainer(model, (tokens, labels))
    explainer.explain(torch.full((1, 5), 199))  # a word that no training instance has
    assert torch.equal(model.layer.weight, before)
    explainer.save(tmp_path / "kept")
    looked_up = deepcopy(model)
    looked_up(tokens)
    for each in (model, looked_up):
        loaded = Explainer.load(tmp_path / "kept", each, (tokens, labels))
        assert torch.equal(loaded.scores(tokens), explainer.scores(tokens))


def test_bounded_rows_follow_the_rule() -> None:
    tokens = torch.randint(7, (B, 5))
    ruled(Alone(nn.Embedding(7, 3, max_norm=0.5).double(), tokens), tokens)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_bounded_rows_that_another_layer_has_too_are_those_of_the_pass() -> None:
    """The other layer sees the rows that were not looked up as they are."""
    tokens = torch.randint(6, (B, 5))
    model = Alone(nn.Embedding(7, 3, max_norm=0.5).double(), tokens)
    model.head = nn.Sequential(nn.Linear(15, 3), nn.Linear(3, 7)).double()
    model.head[1].weight = model.layer.weight
    agree(model.eval(), tokens)

import pytest
import torch
from torch import nn

from precedents.zoo.architectures import ARCHITECTURES
from precedents.zoo.architectures.bi_lstm import bi_lstm

# name, what it is told of the data, classes, parameters; the paper prints them in thousands
PUBLISHED = [
    ("logistic_regression", (1, 28, 28), 10, 7_850),
    ("logistic_regression", (3, 32, 32), 10, 30_730),
    ("logistic_regression", (18,), 4, 76),
    ("logistic_regression", (19,), 7, 140),
    ("cnn", (1, 28, 28), 10, 11_930),
    ("cnn", (3, 32, 32), 10, 12_218),
    ("mobilenet_v2", (3, 32, 32), 10, 2_236_682),
    ("bi_lstm", (1211,), 6, 19_614),
    ("bi_lstm", (2150,), 4, 27_060),
    ("bag_of_words", (1211,), 6, 7_272),
    ("bag_of_words", (2150,), 4, 8_604),
    ("mlp", (18,), 4, 884),
    ("mlp", (19,), 7, 967),
]


def instances(name: str, shape: tuple[int, ...], b: int = 3) -> torch.Tensor:
    if name in ("bi_lstm", "bag_of_words"):
        tokens = torch.randint(1, shape[0], (b, 9))
        return tokens * (torch.arange(9) < torch.randint(1, 10, (b, 1)))
    return torch.rand(b, *shape)


@pytest.mark.parametrize(("name", "shape", "classes", "count"), PUBLISHED)
def test_parameters_and_logits(name, shape, classes, count) -> None:
    model = ARCHITECTURES.get(name)(shape, classes).eval()
    assert sum(p.numel() for p in model.parameters()) == count
    assert model(instances(name, shape)).shape == (3, classes)


@pytest.mark.parametrize("name", ["bi_lstm", "bag_of_words"])
def test_padding_changes_neither_logits_nor_gradients(name) -> None:
    model = ARCHITECTURES.get(name)((30,), 3).double()
    tokens = instances(name, (30,), b=5)
    padded = torch.cat([tokens, torch.zeros(5, 4, dtype=torch.long)], dim=1)

    def gradients(inputs: torch.Tensor) -> list[torch.Tensor]:
        return list(torch.autograd.grad(model(inputs).square().sum(), list(model.parameters())))

    assert torch.equal(model(tokens), model(padded))
    for ours, theirs in zip(gradients(tokens), gradients(padded), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", ["bi_lstm", "bag_of_words"])
def test_a_text_is_read_alone_as_among_longer_ones(name) -> None:
    model = ARCHITECTURES.get(name)((30,), 3).double()
    tokens = instances(name, (30,), b=5)
    together = model(tokens)
    for row, expected in zip(tokens, together, strict=True):
        alone = model(row[row != 0][None])[0]
        torch.testing.assert_close(alone, expected, rtol=0, atol=1e-12)


def test_the_bi_lstm_reads_to_the_last_word_and_back_to_the_first() -> None:
    model = bi_lstm((30,), 3).double()
    tokens = torch.tensor([[5, 6, 7, 8, 0, 0]])
    for place in range(4):
        other = tokens.clone()
        other[0, place] = 20
        assert not torch.allclose(model(tokens), model(other), atol=1e-8)


def test_the_bi_lstm_is_torchs_own_on_each_text() -> None:
    model = bi_lstm((30,), 3).double()
    text = torch.tensor([[5, 6, 7, 8]])
    outputs, _ = model.lstm(model.embedding(text))  # [1, 4, 32]
    final = torch.cat([outputs[:, -1, :16], outputs[:, 0, 16:]], dim=1)
    padded = torch.tensor([[5, 6, 7, 8, 0]])
    torch.testing.assert_close(model(padded), model.head(final), rtol=0, atol=1e-14)


def test_word_counts_are_weighed_linearly() -> None:
    model = ARCHITECTURES.get("bag_of_words")((6,), 2)
    assert isinstance(model.head, nn.Linear)
    weight, bias = model.head.weight, model.head.bias
    expected = 2 * weight[:, 4] + weight[:, 5] + bias
    torch.testing.assert_close(model(torch.tensor([[2, 4, 5, 4, 3, 0]]))[0], expected)

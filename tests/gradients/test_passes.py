"""What differs from batch to batch: how often a layer is called, and at how many positions."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from gradients.single import CLASSES, agree, normal, ruled, stirred, world
from precedents import Classifier
from precedents.gradients import plan
from precedents.gradients.gradients import loss_gradients, planned


class AsOftenAsAsked(nn.Module):
    """A wide layer that some batches call twice and some not at all."""

    def __init__(self) -> None:
        super().__init__()
        self.wide, self.head, self.past = nn.Linear(40, 50), nn.Linear(50, CLASSES), nn.Linear(40, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        y = self.past(x)
        for _ in range(int(x[:, 0].max().round())):
            y = y + self.head(self.wide(x).tanh())
        return y


@pytest.mark.parametrize("times", [0, 1, 2])
def test_a_layer_called_more_or_less_often_than_at_first(times) -> None:
    first, later = normal(2, 40), normal(3, 40)
    first[:, 0], later[:, 0] = 1, times
    model = stirred(AsOftenAsAsked())
    examples, _ = world(torch.cat([first, later]))
    classifier = Classifier.of(model, examples)
    assert planned(classifier).factored
    batch = examples.take(range(2, 5))
    ours = loss_gradients(classifier, batch).dense()
    rows = []
    for i in range(2, 5):
        loss = nn.functional.cross_entropy(model(examples.take([i]).inputs), examples.labels[i : i + 1])
        grads = torch.autograd.grad(loss, list(model.parameters()), materialize_grads=True)
        rows.append(torch.cat([grad.flatten() for grad in grads]))
    torch.testing.assert_close(ours, torch.stack(rows), rtol=1e-9, atol=1e-12)


class Trimmed(nn.Module):
    """Reads only as far as the longest text of the batch; zero is padding."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.head = nn.Embedding(200, 3, padding_idx=0), nn.Linear(3, CLASSES)

    def forward(self, tokens: Tensor) -> Tensor:
        tokens = tokens[:, : int((tokens > 0).sum(dim=1).max())]
        return self.head((self.table(tokens) * (tokens > 0)[..., None]).sum(dim=1))


def test_passes_over_texts_of_different_lengths(monkeypatch) -> None:
    tokens = torch.randint(1, 200, (6, 5))
    tokens[2:4, 2:] = 0
    monkeypatch.setattr("precedents.gradients.plan.PASS_NUMBERS", 1)  # eight instances a pass
    ruled(stirred(Trimmed()), torch.cat([tokens, tokens.flip(0), tokens[2:4]]))


@pytest.mark.parametrize("t", [1, 3, 4])
def test_a_single_training_instance(t) -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.randn(5))
            self.head = nn.Linear(5, CLASSES)

        def forward(self, x: Tensor) -> Tensor:
            return self.head((x * self.scale).sum(dim=1).tanh())

    model = stirred(Scaled())
    examples, _ = world(normal(1, t, 5))
    classifier = Classifier.of(model, examples)
    many, batch = world(normal(4, t, 5))
    ours = loss_gradients(classifier, batch).dense()
    fresh = loss_gradients(Classifier.of(model, many), batch).dense()
    torch.testing.assert_close(ours, fresh)
    agree(model, batch.inputs)


def test_an_activation_in_place_after_a_linear_at_several_positions() -> None:
    model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(18, CLASSES))
    ruled(stirred(model), normal(4, 3, 4))


class Read(nn.Module):
    """A recurrent layer and its last hidden state."""

    def __init__(self, kind: type[nn.LSTM | nn.GRU | nn.RNN]) -> None:
        super().__init__()
        self.read, self.head = kind(3, 4, batch_first=True), nn.Linear(4, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.read(x)[0][:, -1])


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_a_pass_of_a_recurrent_layer_is_counted_by_its_steps(kind) -> None:
    """What is worked on at once does not grow with the length of a sequence; what is held does."""
    short, long = (planned(Classifier.of(stirred(Read(kind)), world(normal(4, t, 3))[0])) for t in (5, 500))
    assert long.in_cache < 1.5 * short.in_cache
    assert long.volume > 50 * short.volume
    assert long.size == short.size


@pytest.mark.parametrize(
    ("numbers", "size"), [(1e6, 32), (1e6 * 5 / 4, 32), (2e6, 20), (4e6, 10), (5e6, 8), (1e8, 8)]
)
def test_passes_have_fewer_instances_the_more_comes_back_of_each(numbers, size) -> None:
    small = planned(Classifier.of(stirred(nn.Linear(4, CLASSES)), world(normal(4, 4))[0]))
    assert replace(small, in_cache=numbers).size == size


@pytest.mark.parametrize("more", [1, 600])
def test_gradients_are_right_in_passes_of_few(more, monkeypatch) -> None:
    monkeypatch.setattr(plan, "PASS_NUMBERS", 1)
    monkeypatch.setattr(plan, "LARGE_PASS_NUMBERS", more)
    model = stirred(nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Flatten(), nn.Linear(18, CLASSES)))
    assert 8 <= agree(model, normal(33, 3, 4)).size < 33

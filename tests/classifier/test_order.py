"""Models that put the instances of a batch in another order within, and models that leave them in place."""

import warnings

import oracle
import pytest
import torch
from collating import TEST, TRAIN, Kind, Recurrent, last, with_lengths
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, linear
from torch.nn.utils.rnn import pack_padded_sequence
from torch.utils.data import DataLoader
from transformers import BertConfig, BertForSequenceClassification

from precedents import Classifier, Examples, Explainer
from precedents.classifier.order import SlowPassesWarning
from precedents.gradients.gradients import planned
from precedents.gradients.search import SlowGradientsWarning

LENGTHS = [6, 3, 5, 2, 4, 6, 1, 5, 2, 3, 4, 1]


class Layers(nn.Module):
    """Layers that receive the instances sorted by their first number."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(6, 5), nn.Linear(5, 3)

    def order(self, x: Tensor) -> Tensor:
        return x[:, 0].argsort()

    def forward(self, x: Tensor) -> Tensor:
        order = self.order(x)
        return self.head(torch.tanh(self.body(x[order])))[order.argsort()]


class Turned(Layers):
    """The last instance first."""

    def order(self, x: Tensor) -> Tensor:
        return torch.arange(len(x)).flip(0)


class Rolled(Layers):
    """The last instance first, and all others after it."""

    def order(self, x: Tensor) -> Tensor:
        return torch.arange(len(x)).roll(1)


class Lengths(nn.Module):
    """An LSTM over sequences that are sorted by their lengths, as packing once needed."""

    def __init__(self, own: bool = True) -> None:
        super().__init__()
        self.own, self.cells, self.head = own, nn.LSTM(1, 4, batch_first=True), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        lengths, order = (x != 0).sum(dim=1).sort(descending=True)
        if not self.own:
            lengths, order = (x != 0).sum(dim=1), torch.arange(len(x))
        packed = pack_padded_sequence(x[order, :, None], lengths, batch_first=True, enforce_sorted=self.own)
        return self.head(self.cells(packed)[1][0][-1])[order.argsort()]


class Functions(nn.Module):
    """Parameters of its own, used in the order of the first numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.weight = nn.Linear(6, 5), nn.Parameter(torch.randn(3, 5))
        self.bias = nn.Parameter(torch.randn(3))

    def forward(self, x: Tensor) -> Tensor:
        order = x[:, 0].argsort()
        return linear(torch.tanh(self.body(x)[order]), self.weight, self.bias)[order.argsort()]


class Tokens(nn.Module):
    """Each token goes through the one of three experts that a gate chooses."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.head = nn.Linear(2, 3), nn.Linear(4, 3)
        self.experts = nn.ModuleList([nn.Linear(2, 4) for _ in range(3)])

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.reshape(-1, 2)
        weight, chosen = self.gate(tokens).softmax(dim=1).max(dim=1)
        out = tokens.new_zeros(len(tokens), 4)
        for i, expert in enumerate(self.experts):
            own = (chosen == i).nonzero().flatten()
            out = out.index_add(0, own, expert(tokens[own]) * weight[own, None])
        return self.head(torch.tanh(out).reshape(len(x), -1, 4).mean(dim=1))


def world(first: int = 0) -> tuple[Tensor, Tensor]:
    """Instances of several lengths, the first two of which are in order, or not."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        x = torch.rand(12, 6).double() + 0.1
    for row, length in zip(x, LENGTHS, strict=True):
        row[length:] = 0
    x[:2, 0] = torch.tensor([0.01, 2.0])
    x = x.roll(first, 0)
    return x, torch.arange(12) % 3


def made(kind, seed: int = 0) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return kind().double()


MOVING = [Layers, Turned, Rolled, Lengths, Functions, Tokens]


@pytest.mark.filterwarnings("ignore:.*slower", "ignore:There is a performance drop")
@pytest.mark.parametrize("first", [0, 1, 3])
@pytest.mark.parametrize("metric", ["cos_grad", "dot_fisher"])
@pytest.mark.parametrize("kind", MOVING)
def test_scores_are_those_of_one_instance_at_a_time(kind, metric, first) -> None:
    model, (x, y) = made(kind), world(first)
    wanted = torch.tensor(oracle.relevance(metric, model, (x, y), x[:7]))
    found = Explainer(model, (x, y), metric).scores(x[:7])
    torch.testing.assert_close(found, wanted, rtol=1e-6, atol=1e-6 * float(wanted.abs().max()))


@pytest.mark.parametrize("first", [0, 1, 3])
@pytest.mark.parametrize("kind", [Layers, Turned, Rolled, Lengths])
def test_hidden_layers_are_those_of_each_instance_alone(kind, first) -> None:
    x, y = world(first)
    with pytest.warns(
        SlowPassesWarning, match=rf"^{kind.__name__} puts the instances .* in another order"
    ) as told:
        explainer = Explainer(made(kind), (x, y), "cos_all")
    assert len(told) == 1
    model = explainer.subject.classifier
    alone = torch.cat([model.hidden(x[i : i + 1])[-1] for i in range(len(x))])
    torch.testing.assert_close(model.hidden(x)[-1], alone)
    assert explainer.explain(x, labels=y, k=1).top.indices.flatten().tolist() == list(range(len(x)))


@pytest.mark.parametrize("seed", range(6))
def test_token_experts_say_once_that_instances_pass_alone(seed) -> None:
    model, y = made(Tokens, seed), torch.arange(12) % 3
    x = torch.randn(12, 6, generator=torch.Generator().manual_seed(seed)).double()
    with pytest.warns(SlowGradientsWarning, match="one instance at a time") as told:
        found = Explainer(model, (x, y)).scores(x)
    assert len(told) == 1
    wanted = torch.tensor(oracle.relevance("cos_grad", model, (x, y), x))
    torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.filterwarnings("ignore:.*slower")
@pytest.mark.parametrize("kind", MOVING)
def test_shares_add_up_to_the_score(kind) -> None:
    x, y = world()
    explainer = Explainer(made(kind), (x, y))
    parts = explainer.shares(x[3], 5).layers
    total = sum(each.share for each in parts)
    assert total == pytest.approx(float(explainer.scores(x[3:4])[0, 5]), abs=1e-9)


class SortedTexts(Recurrent):
    """Tokens and lengths of a batch, sorted within."""

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        order = lengths.argsort(descending=True)
        return super().forward(tokens[order], lengths[order])[order.argsort()]


def test_a_model_that_sorts_behind_a_collate_fn_is_right() -> None:
    kind = Kind(lambda: SortedTexts(enforce_sorted=True), with_lengths, last)
    model = kind.model()
    with pytest.warns(SlowPassesWarning):
        explainer = Explainer(model, DataLoader(TRAIN, batch_size=8, collate_fn=with_lengths))
    torch.testing.assert_close(explainer.scores(TEST), kind.cosines(model, TEST, TRAIN), rtol=1e-9, atol=1e-9)


class SortedBert(BertForSequenceClassification):
    """Sorts the texts of a batch by their lengths."""

    def forward(self, input_ids: Tensor, attention_mask: Tensor):
        order = attention_mask.sum(dim=1).argsort()
        found = super().forward(input_ids[order], attention_mask[order])
        return found.logits[order.argsort()]


def test_a_model_of_transformers_that_sorts_is_right() -> None:
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = SortedBert(BertConfig(vocab_size=20, num_labels=3, **sizes)).double().eval()
        tokens = torch.randint(1, 20, (12, 6))
    mask = (torch.arange(6) < torch.tensor(LENGTHS)[:, None]).long()
    y = torch.arange(12) % 3
    with pytest.warns(SlowPassesWarning):
        explainer = Explainer(model, ({"input_ids": tokens, "attention_mask": mask}, y))
    rows = []
    for i in range(12):
        loss = cross_entropy(model(tokens[i : i + 1], mask[i : i + 1]), y[i : i + 1])
        grads = torch.autograd.grad(loss, list(model.parameters()))
        rows.append(torch.cat([grad.flatten() for grad in grads]))
    rows = nn.functional.normalize(torch.stack(rows), dim=1)
    found = explainer.scores({"input_ids": tokens, "attention_mask": mask}, labels=y)
    torch.testing.assert_close(found, rows @ rows.T, rtol=1e-9, atol=1e-9)


class Encoder(nn.Module):
    """An encoder of torch, by tokens of one number."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
        self.up, self.layers, self.head = nn.Linear(1, 4), nn.TransformerEncoder(layer, 2), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layers(self.up(x[:, :, None])).mean(dim=1))


class TimeFirst(nn.Module):
    """An LSTM with the instances along the second axis."""

    def __init__(self) -> None:
        super().__init__()
        self.cells, self.head = nn.LSTM(1, 4), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.cells(x.T[:, :, None])[0][-1])


class Images(nn.Module):
    """A convolution with a norm."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv1d(1, 4, 3), nn.BatchNorm1d(4), nn.ReLU(), nn.Flatten())
        self.head = nn.Linear(16, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(x[:, None]))


STAYING = [Encoder, TimeFirst, Images, lambda: Lengths(own=False)]


@pytest.mark.parametrize("kind", STAYING)
def test_what_leaves_the_instances_in_place_passes_in_batches_without_a_word(kind) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = Classifier.of(made(kind).eval(), Examples.of(world()))
        plan = planned(model)
    assert (model.apart, plan.apart) == (False, False)
    assert min(model.at_once, plan.size) > 8


class Placed(nn.Module):
    """Tokens and their places, which are the same for all instances: a matrix without any axis of these."""

    def __init__(self, places: int, width: int) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(9, width), nn.Embedding(places, width)
        self.head = nn.Linear(width, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head((self.words(x) + self.places(torch.arange(x.shape[1]))).tanh().mean(dim=1))


@pytest.mark.parametrize("width", range(5, 10))
@pytest.mark.parametrize("places", range(5, 10))
def test_places_are_not_taken_for_instances_whatever_their_number(places, width) -> None:
    tokens = torch.randint(9, (12, places))
    with warnings.catch_warnings():
        warnings.simplefilter("error", SlowPassesWarning)
        model = Classifier.of(Placed(places, width).double(), Examples.of((tokens, torch.arange(12) % 3)))
    assert not model.apart

from copy import deepcopy

import numpy as np
import oracle
import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from precedents import Classifier, Examples, Explainer
from precedents.classifier.loss import CrossEntropy
from precedents.data.examples import Batch
from precedents.gradients.gradients import curvature_rows, loss_gradients
from precedents.gradients.search import SlowGradientsWarning


class Recurrent(nn.Module):
    """Tokens in, the last of two layers of both directions out."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(11, 4)
        self.memory = nn.LSTM(4, 3, num_layers=2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(6, 3)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        _, (hidden, cell) = self.memory(self.words(tokens))
        return self.head(torch.cat([hidden[-1], cell[-2]], dim=1))


class Packed(Recurrent):
    """The same for sequences that end at their first zero."""

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        lengths = (tokens != 0).cumprod(dim=1).sum(dim=1).clamp(min=1)
        packed = pack_padded_sequence(self.words(tokens), lengths, batch_first=True, enforce_sorted=False)
        output, (hidden, _) = self.memory(packed)
        summed = pad_packed_sequence(output, batch_first=True)[0].sum(dim=1)
        return self.head(summed + torch.cat([hidden[0], hidden[-1]], dim=1))


class Convolutional(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(
            nn.Unflatten(1, (1, 1, 5)),
            nn.Conv2d(1, 4, (1, 3), padding=(0, 1)),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.Conv2d(4, 4, (1, 3), groups=2),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Dropout(),
            nn.Linear(4, 3),
        )


class Tied(nn.Module):
    """One module called twice, and its matrix once more by another name."""

    def __init__(self) -> None:
        super().__init__()
        self.square = nn.Linear(5, 5)
        self.again = nn.Linear(5, 5)
        self.again.weight = self.square.weight
        self.head = nn.Linear(5, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.again(self.square(self.square(x).tanh()).tanh()))


class Reused(nn.Module):
    """One Linear at several positions, and in a container of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleDict({"one": nn.Linear(1, 4), "norm": nn.LayerNorm(4)})
        self.head = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.layers["norm"](self.layers["one"](x[:, :, None])).tanh().sum(dim=1))


class Scaled(nn.Module):
    """A parameter that no layer owns."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.full((5,), 2.0))
        self.head = nn.Linear(5, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head((x * self.scale).tanh())


class Borrowing(nn.Module):
    """A layer whose matrix is also used outside of it."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(5, 5), nn.Linear(5, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head((self.body(x).tanh() @ self.body.weight).tanh())


class Adapted(nn.Linear):
    """A frozen Linear with a trainable correction of low rank."""

    def __init__(self) -> None:
        super().__init__(5, 3)
        self.requires_grad_(False)
        self.down, self.up = nn.Parameter(torch.randn(2, 5)), nn.Parameter(torch.randn(3, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) + x @ self.down.T @ self.up.T


class Attentive(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
        self.head = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x).mean(dim=1))


class Branching(nn.Module):
    """What happens depends on the values."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(5, 4), nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        signs = [1.0 if total > 0 else -2.0 for total in x.sum(dim=1).tolist()]
        return self.head(self.body(x).tanh() * torch.tensor(signs, dtype=x.dtype)[:, None])


def drawn(make, seed: int = 0) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make().double().eval()


def one_at_a_time(model, inputs, labels) -> torch.Tensor:
    rows = []
    for x, y in zip(inputs, labels, strict=True):
        loss = nn.functional.cross_entropy(model(x[None]), y[None])
        parts = torch.autograd.grad(loss, oracle.trainable(model), materialize_grads=True)
        rows.append(torch.cat([part.flatten() for part in parts]))
    return torch.stack(rows)


def ours(model, inputs, labels) -> torch.Tensor:
    examples = Examples.of((inputs, labels))
    return loss_gradients(Classifier.of(model, examples), examples.take(range(len(examples)))).dense()


@pytest.mark.parametrize("make", [Convolutional, Tied, Reused, Branching])
def test_gradients_equal_those_of_one_instance_at_a_time(make, train) -> None:
    model = drawn(make)
    torch.testing.assert_close(ours(model, *train), one_at_a_time(model, *train), rtol=1e-9, atol=1e-12)


def test_gradients_of_the_world_equal_those_of_one_instance_at_a_time(model, train) -> None:
    torch.testing.assert_close(ours(model, *train), one_at_a_time(model, *train), rtol=1e-9, atol=1e-12)


def test_gradients_of_a_parameter_that_no_layer_owns_equal_those_of_one_instance_at_a_time(train) -> None:
    model = drawn(Scaled)
    torch.testing.assert_close(ours(model, *train), one_at_a_time(model, *train), rtol=1e-9, atol=1e-12)


@pytest.mark.filterwarnings("ignore::precedents.gradients.search.SlowGradientsWarning")
@pytest.mark.parametrize("count", [2, 3, 5, 45])
def test_gradients_of_an_adapted_layer_are_right_and_only_our_own_warning_is_seen(count, train) -> None:
    model, x, y = drawn(Adapted), train[0][:count], train[1][:count]
    torch.testing.assert_close(ours(model, x, y), one_at_a_time(model, x, y), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("make", [Borrowing])
def test_gradients_by_a_fallback_are_the_same_and_the_fallback_is_said(make, train) -> None:
    model = drawn(make)
    with pytest.warns(SlowGradientsWarning, match=rf"Gradients of {make.__name__} by a slower fallback"):
        found = ours(model, *train)
    torch.testing.assert_close(found, one_at_a_time(model, *train), rtol=1e-9, atol=1e-12)


@pytest.mark.filterwarnings("ignore::precedents.gradients.search.SlowGradientsWarning")
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.double, 1e-9), (torch.float, 1e-4)])
@pytest.mark.parametrize("make", [Recurrent, Packed])
def test_gradients_of_an_lstm_equal_those_of_one_instance_at_a_time(make, dtype, tolerance) -> None:
    tokens = torch.randint(11, (6, 7), generator=torch.Generator().manual_seed(0))
    tokens[3, 4:] = 0
    labels = torch.arange(6) % 3
    found = ours(drawn(make).to(dtype), tokens, labels)
    expected = one_at_a_time(drawn(make), tokens, labels)
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance * 1e-2)


@pytest.mark.filterwarnings("ignore::precedents.gradients.search.SlowGradientsWarning")
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.double, 1e-9), (torch.float, 1e-4)])
def test_gradients_of_a_transformer_equal_those_of_one_instance_at_a_time(dtype, tolerance) -> None:
    x = torch.randn(6, 3, 4, dtype=torch.double)
    labels = torch.arange(6) % 3
    found = ours(drawn(Attentive).to(dtype), x, labels)
    expected = one_at_a_time(drawn(Attentive), x, labels)
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance * 1e-2)


class Positions(nn.Module):
    """Looks positions up once for all instances."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places, self.head = nn.Embedding(9, 4), nn.Embedding(6, 4), nn.Linear(4, 3)

    def forward(self, tokens):
        places = torch.arange(tokens.shape[1])[None]
        return self.head(torch.tanh(self.words(tokens) + self.places(places)).mean(dim=1))


@pytest.mark.parametrize("count", [1, 2, 5, 6])
def test_gradients_of_positions_that_all_instances_share_come_by_rules(count) -> None:
    model, tokens = drawn(Positions), torch.arange(36).reshape(6, 6) % 9
    labels = torch.arange(6) % 3
    tokens, labels = tokens[:count], labels[:count]
    assert torch.allclose(ours(model, tokens, labels), one_at_a_time(model, tokens, labels))


def test_a_frozen_parameter_has_no_gradient(train) -> None:
    model = drawn(Tied)
    model.head.requires_grad_(False)
    assert ours(model, *train).shape == (45, 35)
    torch.testing.assert_close(ours(model, *train), one_at_a_time(model, *train), rtol=1e-9, atol=1e-12)


@pytest.mark.filterwarnings("ignore::precedents.gradients.search.SlowGradientsWarning")
def test_a_parameter_that_takes_no_part_has_gradient_zero(train) -> None:
    model = drawn(lambda: nn.Linear(5, 3))
    model.unused = nn.Parameter(torch.ones(4, dtype=torch.double))
    found = ours(model, *train)
    assert found.shape == (45, 22)
    torch.testing.assert_close(found, one_at_a_time(model, *train), rtol=1e-9, atol=1e-12)


def test_gradients_do_not_need_to_be_enabled(model, train) -> None:
    expected = ours(model, *train)
    with torch.no_grad():
        assert torch.equal(ours(model, *train), expected)


def test_explanations_can_be_asked_for_in_inference_mode(model, train, cases) -> None:
    expected = Explainer(model, train, "RIF").scores(cases)
    with torch.inference_mode():
        torch.testing.assert_close(Explainer(model, train, "RIF").scores(cases), expected)


def test_gradients_leave_none_on_the_copy(classifier, examples) -> None:
    loss_gradients(classifier, examples.take(range(5)))
    assert all(p.grad is None for p in classifier.module.parameters())


def test_gradients_have_no_graph(classifier, examples) -> None:
    assert not loss_gradients(classifier, examples.take(range(5))).dense().requires_grad


@pytest.mark.parametrize("columns", [slice(0, 89), slice(0, 1), slice(20, 70), slice(88, 89)])
def test_some_columns_are_those_of_the_whole(columns, classifier, examples) -> None:
    batch = examples.take(range(7))
    found = loss_gradients(classifier, batch, columns).dense()
    torch.testing.assert_close(
        found, loss_gradients(classifier, batch).dense()[:, columns], rtol=1e-12, atol=1e-15
    )


def test_residuals_are_softmax_minus_onehot(model, train) -> None:
    logits = model(train[0]).detach()
    expected = logits.softmax(dim=1) - torch.eye(3, dtype=torch.double)[train[1]]
    torch.testing.assert_close(CrossEntropy().residuals(logits, train[1]), expected, rtol=1e-12, atol=1e-15)


def test_residuals_of_a_confident_model_keep_their_digits() -> None:
    found = CrossEntropy().residuals(torch.tensor([[100.0, 0.0, 1.0]]), torch.tensor([0]))[0]
    small = np.exp([-100.0, -99.0])
    np.testing.assert_allclose(found.numpy(), [-small.sum(), *small], rtol=1e-12)


def test_roots_are_those_of_the_curvature_of_the_loss(model, train) -> None:
    logits = model(train[0]).detach()
    p = logits.softmax(dim=1)
    expected = p.diag_embed() - p[:, :, None] * p[:, None, :]
    found = sum(root[:, :, None] * root[:, None, :] for root in CrossEntropy().roots(logits, train[1]))
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-14)


def test_the_squares_of_the_fisher_rows_sum_to_the_true_fisher(classifier, examples, model, train) -> None:
    batch = examples.take(range(len(examples)))
    total = sum(rows.T @ rows for rows in curvature_rows(classifier, batch)) / len(examples)
    np.testing.assert_allclose(total.numpy(), oracle.true_fisher(model, train), rtol=1e-8, atol=1e-12)


# Gradients of length 1e-20: a float32 network that is very sure of itself.


@pytest.fixture(scope="module")
def confident(train) -> nn.Module:
    model = drawn(lambda: nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 3)), seed=1).float()
    with torch.no_grad():
        model[2].weight *= 300
    return model


def log_space_cosines(model: nn.Module, x: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Cosines between the gradients of instances with the predicted label, and the logarithms of their lengths.

    In float64, from residuals whose common factor is kept as a logarithm.
    """
    model = model.double()
    rows, lengths = [], []
    for instance in x.double():
        logits = model(instance[None])[0]
        y = int(logits.argmax())
        others = [c for c in range(3) if c != y]
        logs = (logits - logits.logsumexp(dim=0)).detach()[others]
        top = logs.max()
        residual = torch.zeros(3, dtype=torch.double)
        residual[others] = (logs - top).exp()
        residual[y] = -residual.sum()
        parts = torch.autograd.grad(logits, list(model.parameters()), residual)
        row = torch.cat([part.flatten() for part in parts])
        rows.append((row / row.norm()).numpy())
        lengths.append(float(top + row.norm().log()) / np.log(10))
    return np.array(rows) @ np.array(rows).T, np.array(lengths)


def test_cosines_of_gradients_of_length_1e_20_are_right(confident, train) -> None:
    x = train[0].float()
    predicted = confident(x).argmax(dim=1)
    found = Explainer(confident, (x, predicted), "cos_grad").scores(x).numpy()
    expected, lengths = log_space_cosines(deepcopy(confident), x)
    assert (lengths < -20).sum() > 10
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_the_cosine_of_a_tiny_gradient_with_itself_is_one(confident, train) -> None:
    x = train[0].float()
    explainer = Explainer(confident, (x, confident(x).argmax(dim=1)), "cos_grad")
    own = explainer.scores(x).diagonal()
    torch.testing.assert_close(own, torch.ones_like(own), rtol=1e-6, atol=1e-6)


def test_a_zero_gradient_has_relevance_zero() -> None:
    model = drawn(lambda: nn.Linear(2, 2, bias=False))
    x = torch.tensor([[0.0, 0.0], [1.0, 2.0], [3.0, -1.0]], dtype=torch.double)
    scores = Explainer(model, (x, torch.tensor([0, 1, 0])), "cos_grad").scores(x)
    assert torch.equal(scores[0], torch.zeros(3, dtype=torch.double))
    assert torch.equal(scores[:, 0], torch.zeros(3, dtype=torch.double))


def test_labels_of_the_batch_decide_the_loss(classifier, examples) -> None:
    batch = examples.take(range(3))
    other = batch.relabelled((batch.labels + 1) % 3)
    assert isinstance(other, Batch)
    assert not torch.allclose(
        loss_gradients(classifier, batch).dense(), loss_gradients(classifier, other).dense()
    )

"""What no rule covers is slow and right, and it is said once."""

import re
import warnings

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from torch.nn.utils.parametrizations import weight_norm

from gradients.single import B, agree, normal, ruled, slow, stirred, world
from precedents import Classifier, Explainer
from precedents.gradients.gradients import loss_gradients
from precedents.gradients.search import SlowGradientsWarning


class Einsum(nn.Module):
    """A layer that nobody has a rule for."""

    def __init__(self) -> None:
        super().__init__()
        self.core = nn.Parameter(torch.randn(4, 3, 5))

    def forward(self, x: Tensor, y: Tensor | None = None) -> tuple[Tensor, Tensor]:
        y = x[..., :3] if y is None else y
        mixed = torch.einsum("b...i,b...j,ijk->b...k", x, y, self.core)
        return mixed, self.core[0, 0] * y[..., :1]


class Mixed(nn.Module):
    """It is called twice and gives two results, one of which is used only once."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.einsum, self.head = nn.Linear(4, 4), Einsum(), nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        one, scaled = self.einsum(x)
        other, _ = self.einsum(x, y=x[..., 1:])
        return self.head((one * other + scaled).mean(dim=1))


def test_a_layer_without_a_rule() -> None:
    assert slow(stirred(Mixed()), normal(B, 2, 4))[0].recording.uncovered == ("Einsum",)


class Held(nn.Module):
    """Its parameters are in a dict and in a list, which are never called."""

    def __init__(self) -> None:
        super().__init__()
        self.named = nn.ParameterDict({"down": torch.randn(4, 2), "up": torch.randn(2, 4)})
        self.scales = nn.ParameterList([torch.randn(4), torch.randn(4)])

    def forward(self, x: Tensor) -> Tensor:
        return x * self.scales[0] + (x @ self.named["down"] @ self.named["up"]) * self.scales[1]


class Divided(nn.Module):
    """A parameter that a function of torch divides into several tensors."""

    def __init__(self, divided) -> None:
        super().__init__()
        self.body, self.pair, self.divided = nn.Linear(6, 5), nn.Parameter(torch.randn(4, 5)), divided
        self.head = nn.Linear(2, 3)

    def forward(self, x: Tensor) -> Tensor:
        h, (one, other) = self.body(x).tanh(), self.divided(self.pair)
        return self.head(linear(h, one) * linear(h, other).sigmoid())


DIVIDED = {
    "chunk": lambda pair: pair.chunk(2),
    "split": lambda pair: pair.split(2),
    "unbind": lambda pair: pair.unflatten(0, (2, 2)).unbind(),
    "qr": lambda pair: [torch.linalg.qr(pair)[0][2 * i : 2 * i + 2, :2] @ pair[:2] for i in (0, 1)],
    "slices": lambda pair: (pair[:2], pair[2:]),
}


@pytest.mark.parametrize("divided", DIVIDED)
def test_a_parameter_that_is_divided_leaves_all_others_to_their_rules(divided) -> None:
    plan, said = slow(stirred(Divided(DIVIDED[divided])), normal(B, 6))
    assert "one instance" not in said
    assert "StandIn" not in said
    assert plan.recording.uncovered == ("Divided",)


class Cell(nn.Module):
    """An LSTMCell in a loop, with a first state that is learned."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.head, self.first = nn.LSTMCell(2, 4), nn.Linear(4, 3), nn.Parameter(torch.randn(4))

    def forward(self, x: Tensor) -> Tensor:
        h = self.first.expand(len(x), 4)
        state = h, torch.zeros_like(h)
        for step in x.unflatten(1, (3, 2)).unbind(dim=1):
            state = self.cell(step, state)
        return self.head(state[0])


def test_a_cell_leaves_all_others_to_their_rules() -> None:
    plan, said = slow(stirred(Cell()), normal(B, 6))
    assert "StandIn" not in said
    assert plan.recording is not None
    assert "head.weight" not in said


class Unlike(nn.Module):
    """Its layer sees the tokens of a batch once each."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.head = nn.Embedding(17, 6), nn.Linear(6, 3)

    def forward(self, tokens: Tensor) -> Tensor:
        words, places = tokens.unique(return_inverse=True)
        return self.head(self.words(words)[places].mean(dim=1))


class Uncalled(nn.Module):
    """A function of torch has the parameters of a layer, which is not called itself."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.layer.weight.sin(), self.layer.bias)


UNUSUAL = {
    "unlike": (
        Unlike,
        lambda: torch.randint(17, (B, 5)),
        r"\(its layers see other rows than those of the inst",
    ),
    "uncalled": (Uncalled, lambda: normal(B, 6), r"\(parameters are used outside of the layers that own them"),
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_the_reason_is_in_words_that_are_not_those_of_an_error_within(name) -> None:
    make, inputs, reason = UNUSUAL[name]
    assert re.search(reason, slow(stirred(make()), inputs())[1])


def test_parameters_in_dicts_and_lists_belong_to_the_module_that_uses_them() -> None:
    model = stirred(nn.Sequential(nn.Linear(4, 4), Held(), nn.Linear(4, 3)))
    assert slow(model, normal(B, 4))[0].recording.uncovered == ("Held",)


class Branches(nn.Module):
    """What is computed depends on the values, which vmap cannot follow."""

    def __init__(self) -> None:
        super().__init__()
        self.core = nn.Parameter(torch.randn(5, 5))

    def forward(self, x: Tensor) -> Tensor:
        signs = [1.0 if each.sum().item() > 0 else -2.0 for each in x]
        return torch.einsum("bi,ij->bj", x, self.core) * torch.tensor(signs, dtype=x.dtype)[:, None]


def test_a_layer_that_vmap_cannot_do() -> None:
    model = stirred(nn.Sequential(nn.Linear(4, 5), Branches(), nn.Linear(5, 3)))
    assert slow(model, normal(B, 4))[0].recording.uncovered == ("Branches",)


class Chooses(nn.Module):
    """As above, with parameters that rules cover: they need no vmap."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(4, 5), nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        signs = [1.0 if each.sum().item() > 0 else -2.0 for each in x]
        return self.head(self.body(x).tanh() * torch.tensor(signs, dtype=x.dtype)[:, None])


def test_rules_need_no_vmap() -> None:
    ruled(stirred(Chooses()), normal(B, 4))


class Lookups(nn.Module):
    def __init__(self, **settings: object) -> None:
        super().__init__()
        self.words, self.head = nn.Embedding(7, 5, **settings), nn.Linear(5, 3)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.words(tokens).tanh().mean(dim=1))


def test_an_embedding_whose_gradients_are_scaled_by_frequency() -> None:
    slow(stirred(Lookups(scale_grad_by_freq=True)), torch.randint(7, (B, 5)))


class Positions(nn.Module):
    """A table of places that is looked up once for all instances."""

    def __init__(self) -> None:
        super().__init__()
        self.places, self.head = nn.Embedding(B, 5), nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head((x + self.places(torch.arange(x.shape[1]))).tanh().mean(dim=1))


@pytest.mark.parametrize("t", [2, 3, B])
@pytest.mark.filterwarnings("ignore")
def test_an_embedding_of_places_is_right(t) -> None:
    agree(stirred(Positions()), normal(B, t, 5))


def test_weight_norm() -> None:
    slow(stirred(nn.Sequential(weight_norm(nn.Linear(4, 5)), nn.Tanh(), nn.Linear(5, 3))), normal(B, 4))


def test_weight_norm_inside_attention() -> None:
    layer = nn.TransformerEncoderLayer(6, 2, 5, batch_first=True)
    weight_norm(layer.self_attn, "in_proj_weight")
    weight_norm(layer.self_attn.out_proj)
    slow(stirred(nn.Sequential(layer, nn.Flatten(), nn.Linear(18, 3))), normal(B, 3, 6))


def test_it_is_said_once() -> None:
    examples, batch = world(normal(B, 2, 4))
    model = Classifier.of(stirred(Mixed()), examples)
    with pytest.warns(SlowGradientsWarning, match="Einsum has no rule"):
        loss_gradients(model, batch)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loss_gradients(model, batch)


class Outsider(nn.Module):
    """A small network with its parameters used outside of their layers."""

    def __init__(self, layers: nn.Sequential) -> None:
        super().__init__()
        self.layers = layers

    def forward(self, x: Tensor) -> Tensor:
        body, head = self.layers[0], self.layers[2]
        return (x @ body.weight.T + body.bias).tanh() @ head.weight.T + head.bias


@pytest.mark.parametrize("metric", ["cos_grad", "dot_grad", "dot_fisher"])
def test_scores_do_not_depend_on_the_fallback(metric) -> None:
    layers = stirred(nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)))
    _, batch = world(normal(9, 4))
    fast = Explainer(layers, batch[:2], metric).scores(batch.inputs)
    with pytest.warns(SlowGradientsWarning):
        slower = Explainer(Outsider(layers), batch[:2], metric).scores(batch.inputs)
    torch.testing.assert_close(fast, slower, rtol=1e-7, atol=1e-9)

"""What no rule covers is slow and right, and it is said once."""

import warnings

import pytest
import torch
from torch import Tensor, nn
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

"""Half and mixed precision: computed in one that is wide enough, without a single product of half precision."""

from copy import deepcopy

import hugging
import pytest
import torch
from plain import cosines
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

import precedents as pr

X = torch.randn(30, 5, generator=torch.Generator().manual_seed(0))
Y = torch.arange(30) % 3
HALF = (torch.float16, torch.bfloat16)
PRODUCTS = ("mm.", "mv.", "dot.", "matmul", "linear", "convolution", "attention", "mul.", "div.", "norm")

half = pytest.mark.parametrize("dtype", HALF, ids=str)


class NoHalf(TorchDispatchMode):
    """Fails at a product of half precision; such numbers may be copied, and compared."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        given = torch.utils._pytree.tree_leaves((args, kwargs))
        if any(isinstance(each, Tensor) and each.dtype in HALF for each in given):
            assert not any(name in str(func) for name in PRODUCTS), func
        return func(*args, **(kwargs or {}))


class Casting(nn.Module):
    """Casts in every way there is; `dtype` says to what, `last` what the head is in."""

    def __init__(self, dtype: torch.dtype, last: torch.dtype) -> None:
        super().__init__()
        self.own, self.body, self.head = dtype, nn.Linear(5, 8).to(dtype), nn.Linear(8, 3).to(last)
        self.scale = nn.Parameter(torch.ones(8, dtype=dtype))
        self.register_buffer("shift", torch.full((8,), 0.5, dtype=dtype))

    def forward(self, x: Tensor) -> Tensor:
        x = x.half().bfloat16() if self.own == torch.bfloat16 else x.type(torch.float16)
        hidden = self.body(x.to(self.own)) * self.scale + self.shift + torch.zeros(8, dtype=self.own)
        return self.head(hidden.tanh().to(self.head.weight.dtype)).float()


class Autocast(nn.Module):
    """Of float32, computed in half precision."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.net, self.dtype = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3)), dtype

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=self.dtype):
            return self.net(x)


class Decorated(Autocast):
    """By a decorator, which the code of forward does not show."""

    @torch.autocast("cpu", dtype=torch.bfloat16)
    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)


class Wide(nn.Module):
    """What `Casting` is without its casts."""

    def __init__(self, casting: Casting, dtype: torch.dtype) -> None:
        super().__init__()
        copy = deepcopy(casting).to(dtype)
        self.body, self.head, self.scale, self.shift = copy.body, copy.head, copy.scale, copy.shift

    def forward(self, x: Tensor) -> Tensor:
        return self.head((self.body(x.to(self.scale)) * self.scale + self.shift).tanh())


class Both(nn.Module):
    """A layer of float32 and one of float64."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(5, 8), nn.Linear(8, 3).double()

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(x.float()).tanh().double())


def seeded(make):
    torch.manual_seed(0)
    return make()


def dtypes(model: nn.Module) -> list[torch.dtype]:
    return [each.dtype for each in model.state_dict().values()]


@half
@pytest.mark.parametrize("last", [None, torch.float32, torch.double], ids=str)
def test_scores_of_half_and_mixed_precision_are_those_of_plain_autograd_in_the_widest(dtype, last) -> None:
    model = seeded(lambda: Casting(dtype, dtype if last is None else last))
    before = dtypes(model)
    with NoHalf():
        found = pr.Explainer(model, (X, Y)).scores(X[:5], labels=Y[:5])
    wide = Wide(model, torch.double if last == torch.double else torch.float32)
    torch.testing.assert_close(found, cosines(wide, X, Y)[:5], rtol=0, atol=1e-6)
    assert dtypes(model) == before


@half
def test_a_network_in_half_precision_has_the_scores_of_its_copy_in_float32(dtype) -> None:
    model = seeded(lambda: nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))).to(
        dtype
    )
    with NoHalf():
        found = pr.Explainer(model, (X.to(dtype), Y)).scores(X[:5].to(dtype), labels=Y[:5])
    wanted = cosines(deepcopy(model).float(), X.to(dtype).float(), Y)
    torch.testing.assert_close(found, wanted[:5], rtol=0, atol=1e-6)


def test_float32_and_float64_in_one_model_are_computed_in_float64() -> None:
    model = seeded(Both)
    found = pr.Explainer(model, (X, Y)).scores(X[:5], labels=Y[:5])
    wide = nn.Sequential(model.body, nn.Tanh(), model.head)
    torch.testing.assert_close(found, cosines(wide.double(), X.double(), Y)[:5], rtol=0, atol=1e-6)


@pytest.mark.parametrize("make", [lambda: Autocast(torch.bfloat16), lambda: Autocast(torch.float16), None])
def test_autocast_within_a_model_does_nothing(make) -> None:
    model = seeded(make or (lambda: Decorated(torch.bfloat16)))
    with NoHalf():
        found = pr.Explainer(model, (X, Y)).scores(X[:5], labels=Y[:5])
    torch.testing.assert_close(found, cosines(model.net, X, Y)[:5], rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    "metric", ["dot_if", "cos_fisher", "cosine:gradient/ekfac", "cosine:gradient/lanczos", "cos_all"]
)
def test_every_metric_takes_a_model_that_casts(metric) -> None:
    model = seeded(lambda: Casting(torch.bfloat16, torch.bfloat16))
    with NoHalf():
        found = pr.Explainer(model, (X, Y), metric).scores(X[:3])
    wanted = pr.Explainer(Wide(model, torch.float32), (X, Y), metric).scores(X[:3])
    torch.testing.assert_close(found / wanted.abs().max(), wanted / wanted.abs().max(), rtol=0, atol=1e-4)


@half
def test_a_model_in_half_precision_is_saved_found_stale_and_audited(dtype, tmp_path) -> None:
    model = seeded(lambda: Casting(dtype, torch.float32))
    with NoHalf():
        explainer = pr.Explainer(model, (X, Y))
        explainer.save(tmp_path)
        assert torch.equal(pr.Explainer.load(tmp_path, model, (X, Y)).scores(X[:3]), explainer.scores(X[:3]))
        fresh = lambda seed: seeded(lambda: Casting(dtype, torch.float32))  # noqa: E731
        audit = pr.audit(model, (X, Y), (X[:6], Y[:6]), metrics=["cos_grad", "cos_last"], fresh=fresh)
    assert audit.recommendation is not None
    with torch.no_grad():
        model.scale[0] = 2
    with pytest.raises(pr.StaleError, match="scale"):
        pr.Explainer.load(tmp_path, model, (X, Y))


@half
@pytest.mark.parametrize("name", ["bert", "gpt2", "llama", "vit"])
def test_a_transformer_in_half_precision_has_the_scores_of_its_copy_in_float32(name, dtype) -> None:
    model, rows = hugging.trained(name, 0).to(dtype), hugging.data(name, 12, seed=2)
    with NoHalf():
        found = pr.Explainer(model, rows).scores(rows[:2])
    wanted = pr.Explainer(deepcopy(model).float(), rows).scores(rows[:2])
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-6)
    assert {p.dtype for p in model.parameters()} == {dtype}


def test_a_prediction_that_half_precision_could_turn_says_so() -> None:
    words = "in bfloat16 and computed with in float32"
    model = seeded(lambda: nn.Linear(5, 2, bias=False))
    with torch.no_grad():
        model.weight[1] = model.weight[0] * torch.tensor([1, 1, 1, 1, -1])
    near, far = torch.tensor([3.0, 1.0, 2.0, 1.0, 1e-4]), torch.tensor([0.0, 0.0, 0.0, 0.0, 2.0])
    whole, narrow = (pr.Explainer(each, (X, Y % 2)) for each in (model, deepcopy(model).bfloat16()))
    explanation = narrow.explain(torch.stack([near, far]), k=1)
    assert [any(words in each for each in own) for own in explanation.remarks] == [True, False]
    assert words in str(explanation)
    assert words not in str(whole.explain(near, k=1))

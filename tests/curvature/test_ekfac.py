from copy import deepcopy
from dataclasses import replace

import numpy as np
import oracle
import pytest
import scipy.stats
import snapshot
import torch
from conftest import blobs, mlp, trained
from hypothesis import given
from hypothesis import strategies as st
from spaces import gradients_of, workspace_of
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, linear

from precedents import Examples, Explainer, InputError, InverseHessian, Metric
from precedents.curvature.ekfac import (
    Block,
    _patches,
    corrected_eigenvalues,
    kronecker_basis,
    kronecker_factors,
)
from precedents.gradients.factors import Outer
from precedents.gradients.gradients import loss_gradients
from precedents.metrics.preconditioners.ekfac import InverseEKFAC, ekfac
from precedents.metrics.vectors import Question
from precedents.metrics.workspace import Workspace


class Twice(nn.Module):
    """One layer that is called twice."""

    def __init__(self) -> None:
        super().__init__()
        self.square = nn.Linear(5, 5)
        self.head = nn.Linear(5, 3, bias=False)

    def forward(self, x):
        return self.head(self.square(self.square(x).tanh()).tanh())


class Tied(nn.Module):
    """Two layers with one weight."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(5, 5), nn.Linear(5, 5)
        self.two.weight = self.one.weight
        self.head = nn.Linear(5, 3)

    def forward(self, x):
        return self.head(self.two(self.one(x).tanh()).tanh())


class Bypassed(nn.Module):
    """A layer that is not called though its weight is used, one outside of the graph, one called by keyword."""

    def __init__(self) -> None:
        super().__init__()
        self.quiet, self.dark, self.head = nn.Linear(5, 4), nn.Linear(5, 4), nn.Linear(4, 3)

    def forward(self, x):
        with torch.no_grad():
            seen = self.dark(x)
        return self.head(input=linear(x, self.quiet.weight).tanh() + seen)


class Mixed(nn.Module):
    """A convolution, one with groups, norms, a scale of its own, and positions."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv1d(1, 4, 2, padding=1)
        self.norm = nn.BatchNorm1d(4)
        self.apart = nn.Conv1d(4, 4, 3, groups=2)
        self.scale = nn.Parameter(torch.tensor([1.0, 0.5, 2.0, 1.5])[:, None])
        self.shared = nn.Linear(4, 3)  # at every position
        self.head = nn.Linear(12, 3)

    def forward(self, x):
        hidden = self.norm(self.first(x[:, None]).tanh())
        hidden = self.apart(hidden).tanh() * self.scale
        return self.head(self.shared(hidden.transpose(1, 2)).tanh().flatten(1))


def convolutional(shape: tuple[int, ...], *layers: nn.Module) -> nn.Module:
    with torch.no_grad():
        width = nn.Sequential(*layers)(torch.zeros(1, *shape)).numel()
    return nn.Sequential(nn.Unflatten(1, shape), *layers, nn.Tanh(), nn.Flatten(), nn.Linear(width, 3))


CONVOLUTIONS = {
    "1d": lambda: convolutional((2, 8), nn.Conv1d(2, 3, 3, stride=2, padding=2, dilation=2)),
    "2d": lambda: convolutional(
        (1, 4, 4), nn.Conv2d(1, 3, (3, 2), stride=(1, 2), padding=(2, 1), dilation=(2, 1))
    ),
    "3d": lambda: convolutional((2, 2, 2, 2), nn.Conv3d(2, 2, 2, padding=(1, 0, 0), bias=False)),
    "same": lambda: convolutional((1, 4, 4), nn.Conv2d(1, 2, 3, padding="same")),
    "circular": lambda: convolutional((1, 4, 4), nn.Conv2d(1, 2, 3, padding=1, padding_mode="circular")),
    "pointwise": lambda: convolutional((4, 2, 2), nn.Conv2d(4, 3, 1)),
    "deep": lambda: convolutional((1, 4, 4), nn.Conv2d(1, 2, 2), nn.ReLU(inplace=True), nn.Conv2d(2, 3, 2)),
}


def drawn(make, seed: int = 0) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make().double().eval()


def pair(n: int, d: int, seed: int = 5) -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(seed)
    return torch.randn(n, d, generator=random, dtype=torch.double), torch.arange(n) % 3


def evidence_of(model: nn.Module, data, **settings) -> Workspace:
    examples = Examples.of(data)
    return workspace_of(model, examples, **settings)


def dense(inverse, p: int) -> np.ndarray:
    return inverse.solve(torch.eye(p, dtype=torch.double)).numpy()


def assert_same(ours: np.ndarray, theirs: np.ndarray, atol: float = 1e-11) -> None:
    scale = np.abs(theirs).max()
    np.testing.assert_allclose(ours / scale, theirs / scale, rtol=0, atol=atol)


def moments(model: nn.Module, inputs: torch.Tensor, layer: nn.Linear) -> tuple[np.ndarray, np.ndarray]:
    """A and S of a layer with a bias: one instance, one label of the model's own, one call at a time."""
    received, returned, calls = 0.0, 0.0, 0
    for x in inputs:
        caught: list[tuple[torch.Tensor, torch.Tensor]] = []
        handle = layer.register_forward_hook(lambda _, args, out: caught.append((args[0], out)))  # noqa: B023
        logits = model(x[None])
        handle.remove()
        for label, weight in enumerate(logits.softmax(dim=1)[0].tolist()):
            loss = cross_entropy(logits, torch.tensor([label]))
            for grad in torch.autograd.grad(loss, [out for _, out in caught], retain_graph=True):
                returned = returned + weight * np.outer(grad[0], grad[0])
        for a, _ in caught:
            row = np.append(a[0].detach().numpy(), [1.0] if layer.bias is not None else [])
            received, calls = received + np.outer(row, row), calls + 1
    return received / calls, returned / calls


def brute_inverse(model: nn.Module, data, damping: float) -> np.ndarray:
    """The definition for Linear layers with a bias, dense: blocks of the Gauss-Newton matrix, projected."""
    matrix = oracle.gauss_newton(model, data)
    ridge = damping * np.diag(matrix).mean()
    inverse, start = np.zeros_like(matrix), 0
    for layer in (module for module in model if isinstance(module, nn.Linear)):
        o, i = layer.weight.shape
        received, returned = moments(model, data[0], layer)
        products = np.kron(np.linalg.eigh(returned)[1], np.linalg.eigh(received)[1])
        order = np.arange(o * (i + 1)).reshape(o, i + 1)
        order = np.concatenate([order[:, :i].ravel(), order[:, i]])  # the weight, then the bias
        basis = products[order]
        own = slice(start, start + len(order))
        values = np.diag(basis.T @ matrix[own, own] @ basis)
        inverse[own, own] = basis / (values + ridge) @ basis.T
        start += len(order)
    return inverse


def test_both_factors_are_their_definitions(classifier, examples, model, train) -> None:
    found = kronecker_factors(classifier, examples)
    assert list(found) == ["0", "2", "4"]
    for name, factor in found.items():
        for ours, theirs in zip(
            factor.means(), moments(model, train[0], model.get_submodule(name)), strict=True
        ):
            assert_same(ours.numpy(), theirs)


def test_calls_of_one_layer_add_up(train) -> None:
    model = drawn(Twice)
    workspace = evidence_of(model, train)
    for name, factor in kronecker_factors(workspace.classifier, workspace.train).items():
        for ours, theirs in zip(
            factor.means(), moments(model, train[0], model.get_submodule(name)), strict=True
        ):
            assert_same(ours.numpy(), theirs)


@pytest.mark.parametrize("damping", [1e-3, 1.0])
def test_the_inverse_is_its_definition(damping, workspace, model, train) -> None:
    inverse = InverseEKFAC(damping).fit(gradients_of(workspace))
    assert_same(dense(inverse, 89), brute_inverse(model, train, damping), atol=1e-9)


def test_it_is_exact_for_a_linear_model_that_knows_nothing(train) -> None:
    model = drawn(lambda: nn.Linear(5, 3))
    nn.init.zeros_(model.weight)
    nn.init.zeros_(model.bias)
    workspace = evidence_of(model, train)
    exact = InverseHessian(kind="gauss_newton").fit(gradients_of(workspace))
    assert_same(dense(ekfac.fit(gradients_of(workspace)), 18), dense(exact, 18))
    assert ekfac.fit(gradients_of(workspace)).ridge == pytest.approx(exact.ridge)


def test_it_is_exact_for_two_classes_and_inputs_at_right_angles() -> None:
    inputs = torch.diag(torch.linspace(0.5, 2, 6, dtype=torch.double)).repeat(2, 1)
    model = drawn(lambda: nn.Linear(6, 2, bias=False))
    workspace = evidence_of(model, (inputs, torch.arange(12) % 2))
    assert_same(
        dense(ekfac.fit(gradients_of(workspace)), 12),
        dense(InverseHessian(kind="gauss_newton").fit(gradients_of(workspace)), 12),
    )


@pytest.mark.filterwarnings("ignore::precedents.gradients.search.SlowGradientsWarning")
@pytest.mark.parametrize("name", [*CONVOLUTIONS, "mixed", "twice", "tied", "bypassed"])
def test_the_diagonal_in_the_basis_is_that_of_the_gauss_newton_matrix(name) -> None:
    others = {"mixed": Mixed, "twice": Twice, "tied": Tied, "bypassed": Bypassed}
    model = drawn(others.get(name) or CONVOLUTIONS[name])
    data = pair(7, 5 if name in others else 16)
    workspace = evidence_of(model, data)
    matrix = gauss_newton(model, data)
    basis = kronecker_basis(workspace.classifier, workspace.train)
    values = corrected_eigenvalues(workspace.classifier, workspace.train, basis).numpy()
    columns = basis.restored(
        torch.eye(len(matrix), dtype=torch.double)
    ).numpy()  # one vector of the basis a row
    np.testing.assert_allclose(columns @ columns.T, np.eye(len(matrix)), atol=1e-12)
    assert_same(values, np.diag(columns @ matrix @ columns.T))
    assert values.sum() == pytest.approx(np.trace(matrix))


def gauss_newton(model: nn.Module, data) -> np.ndarray:
    """As the oracle's, for models that leave some parameters unused."""
    total = 0.0
    for x in data[0]:
        logits = model(x[None])[0]
        p = logits.softmax(dim=0).detach().numpy()
        rows = [
            torch.autograd.grad(logit, oracle.trainable(model), retain_graph=True, materialize_grads=True)
            for logit in logits
        ]
        jacobian = np.array([torch.cat([part.flatten() for part in row]).numpy() for row in rows])
        total = total + jacobian.T @ (np.diag(p) - np.outer(p, p)) @ jacobian / len(data[0])
    return total


@pytest.mark.filterwarnings("ignore::precedents.gradients.search.SlowGradientsWarning")
@pytest.mark.parametrize(
    ("make", "kronecker"),
    [
        (Mixed, {"first.weight", "first.bias", "shared.weight", "shared.bias", "head.weight", "head.bias"}),
        (Tied, {"head.weight", "head.bias"}),
        (Bypassed, {"head.weight", "head.bias"}),
    ],
)
def test_what_has_no_factors_is_inverted_by_the_diagonal(make, kronecker) -> None:
    model, data = drawn(make), pair(7, 5)
    workspace = evidence_of(model, data)
    inverse = InverseEKFAC(0.1).fit(gradients_of(workspace))
    diagonal = np.diag(gauss_newton(model, data))
    whole = dense(inverse, len(diagonal))
    start = 0
    for name, parameter in workspace.classifier.parameters.items():
        own = range(start, start + parameter.numel())
        start += parameter.numel()
        alone = np.array_equal(whole[own] != 0, np.eye(len(diagonal))[own] != 0)
        assert alone == (name not in kronecker)
        if alone:
            np.testing.assert_allclose(np.diag(whole)[own], 1 / (diagonal[own] + inverse.ridge))


@pytest.mark.parametrize("frozen", ["weight", "bias"])
def test_a_frozen_part_of_a_layer_is_left_out(frozen, train) -> None:
    model = drawn(mlp)
    getattr(model[0], frozen).requires_grad_(False)
    workspace = evidence_of(model, train)
    factors = kronecker_factors(workspace.classifier, workspace.train)
    if frozen == "bias":
        assert len(factors["0"].received) == 5
    else:
        assert "0" not in factors
    values = ekfac.fit(gradients_of(workspace)).values
    assert float(values.sum()) == pytest.approx(np.trace(oracle.gauss_newton(model, train)))


@given(st.data())
def test_patches_times_the_weight_are_the_convolution(data) -> None:
    axes = data.draw(st.integers(1, 3))

    def several(low: int, high: int) -> tuple[int, ...]:
        return tuple(data.draw(st.integers(low, high)) for _ in range(axes))

    size, gap, channels = several(1, 3), several(1, 2), data.draw(st.integers(1, 3))
    kind = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[axes - 1]
    mode = data.draw(st.sampled_from(["zeros", "replicate"]))
    layer = drawn(
        lambda: kind(channels, 2, size, several(1, 3), several(0, 2), gap, bias=False, padding_mode=mode)
    )
    least = [g * (s - 1) + 1 for g, s in zip(gap, size, strict=True)]
    x = torch.randn(2, channels, *(n + data.draw(st.integers(0, 2)) for n in least), dtype=torch.double)
    patches = torch.cat(list(_patches(layer, x)))
    expected = layer(x).movedim(1, -1).reshape(-1, 2)
    torch.testing.assert_close(patches @ layer.weight.flatten(1).T, expected)


def test_long_inputs_come_in_pieces(monkeypatch) -> None:
    layer, x = nn.Conv1d(2, 3, 3), torch.randn(5, 2, 9)
    whole = list(_patches(layer, x))
    monkeypatch.setattr("precedents.curvature.ekfac.PASS_NUMBERS", 90)
    pieces = list(_patches(layer, x))
    assert (len(whole), len(pieces)) == (1, 3)
    assert torch.equal(torch.cat(pieces), whole[0])


def test_factored_gradients_are_rotated_without_forming_them() -> None:
    model = drawn(
        lambda: nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 12), nn.Tanh(), nn.Linear(12, 3))
    )
    data = pair(9, 16)
    workspace = evidence_of(model, data)
    inverse = ekfac.fit(gradients_of(workspace))
    rows = loss_gradients(workspace.classifier, workspace.train.take(range(9)))
    assert len(rows.factors) == 2
    ours, theirs = (inverse.coordinates(each).dense() for each in (rows, rows.dense().detach()))
    torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12 * float(theirs.abs().max()))
    assert not ours.requires_grad
    squares = inverse.basis.squares(rows)
    torch.testing.assert_close(
        squares, inverse.basis.rotated(rows).dense().square().sum(dim=0), rtol=1e-9, atol=1e-15
    )
    assert float(inverse.values.sum()) == pytest.approx(np.trace(oracle.gauss_newton(model, data)))


@pytest.mark.parametrize(("positions", "bias"), [(1, None), (1, "own"), (1, "other"), (2, None), (2, "own")])
def test_squares_are_those_of_the_rotated_gradients(positions, bias) -> None:
    back, received = (torch.randn(6, positions, d, dtype=torch.double) for d in (4, 3))
    weight, scale = Outer(torch.empty(4, 3), back, received), torch.rand(6, dtype=torch.double)
    added = {None: None, "own": back.sum(dim=1), "other": torch.randn(6, 4, dtype=torch.double)}[bias]
    j = 3 if bias is None else 4
    left, right = (torch.linalg.qr(torch.randn(d, d, dtype=torch.double))[0] for d in (4, j))
    block = Block(slice(0, 12), None if bias is None else slice(12, 16), left, right)
    gradients = weight.formed() if added is None else torch.cat([weight.formed(), added[:, :, None]], dim=2)
    expected = left.T @ gradients @ right
    torch.testing.assert_close(block.rotated(weight, added), expected)
    torch.testing.assert_close(block.rotated(weight.formed().flatten(1), added), expected)
    squares = (expected * scale[:, None, None]).square().sum(dim=0)
    torch.testing.assert_close(block.squares(weight, added, scale), squares)
    torch.testing.assert_close(block.squares(weight.formed().flatten(1), added, scale), squares)


def test_a_table_that_was_looked_up_is_formed() -> None:
    model = drawn(lambda: nn.Sequential(nn.Embedding(60, 3), nn.Flatten(), nn.Linear(6, 3)))
    tokens = torch.randint(60, (9, 2), generator=torch.Generator().manual_seed(0))
    workspace = evidence_of(model, (tokens, torch.arange(9) % 3))
    inverse = ekfac.fit(gradients_of(workspace))
    rows = loss_gradients(workspace.classifier, workspace.train.take(range(9)))
    assert [place.start for place, _ in rows.factors] == [0]
    torch.testing.assert_close(
        inverse.coordinates(rows).dense(), inverse.coordinates(rows.dense().detach()).dense()
    )


def test_coordinates_and_solutions_agree(workspace) -> None:
    inverse, rows = ekfac.fit(gradients_of(workspace)), torch.randn(4, 89, dtype=torch.double)
    products = inverse.coordinates(rows).products(inverse.coordinates(rows))
    torch.testing.assert_close(products, rows @ inverse.solve(rows).T, rtol=1e-10, atol=1e-9)


def test_scores_are_inner_products_under_the_inverse(workspace, model, train, cases) -> None:
    gradients = np.array([oracle.gradient(model, x, int(y)) for x, y in zip(*train, strict=True)])
    case = np.array([oracle.gradient(model, x, oracle.predicted(model, x)) for x in cases])
    ours = Explainer(model, train, "dot:gradient/ekfac").scores(cases).numpy()
    assert_same(ours, case @ dense(ekfac.fit(gradients_of(workspace)), 89) @ gradients.T, atol=1e-9)


@pytest.mark.parametrize("memory", ["20 KB", "200 KB"])
def test_little_memory_gives_the_same(memory) -> None:
    data = pair(11, 16)
    model = drawn(CONVOLUTIONS["deep"])
    whole, little = (ekfac.fit(gradients_of(evidence_of(model, data, memory=m))) for m in (None, memory))
    p = len(whole.values)
    assert_same(dense(little, p), dense(whole, p), atol=1e-9)


def test_a_float32_model_is_near_the_float64_one(model, train) -> None:
    double = ekfac.fit(gradients_of(evidence_of(model, train)))
    copy = drawn(mlp)
    copy.load_state_dict(model.state_dict())
    single = ekfac.fit(gradients_of(evidence_of(copy.float(), train)))
    assert single.values.dtype == torch.double
    assert_same(dense(single, 89), dense(double, 89), atol=1e-2)
    assert float(single.values.mean()) == pytest.approx(float(double.values.mean()), rel=1e-5)


def test_a_confident_float32_model_keeps_its_curvature(train) -> None:
    model = drawn(lambda: nn.Linear(5, 3))
    model.load_state_dict({name: 200 * value for name, value in model.state_dict().items()})
    model = model.float()
    workspace = evidence_of(model, (train[0][:1], train[1][:1]))
    factor = kronecker_factors(workspace.classifier, workspace.train)[""]
    logits = model(train[0][:1].float()).double()
    p = logits.softmax(dim=1)[0].detach().numpy()
    assert p.max() > 1 - 1e-12
    expected = np.diag([p[0] * (p[1] + p[2]), p[1] * (p[0] + p[2]), p[2] * (p[0] + p[1])])
    expected -= np.outer(p, p) - np.diag(p**2)
    assert_same(factor.means()[1].numpy(), expected, atol=1e-3)


def test_damping_is_relative_to_the_mean_of_the_diagonal(workspace, model, train) -> None:
    mean = np.diag(oracle.gauss_newton(model, train)).mean()
    assert InverseEKFAC(0.01).fit(gradients_of(workspace)).ridge == pytest.approx(0.01 * mean)


def test_damping_of_zero_is_refused(workspace) -> None:
    with pytest.raises(InputError, match=r"must be positive"):
        InverseEKFAC(0.0).fit(gradients_of(workspace))


def test_the_basis_is_computed_once_for_all_dampings(workspace) -> None:
    assert InverseEKFAC(0.5).fit(gradients_of(workspace)).basis is ekfac.fit(gradients_of(workspace)).basis


def test_it_describes_itself(workspace) -> None:
    inverse = ekfac.fit(gradients_of(workspace))
    eigenvalues = np.linalg.eigvalsh(np.linalg.inv(dense(inverse, 89)))
    said = inverse.description
    assert (said.kind, said.size, said.form) == ("EK-FAC", 89, "Kronecker basis")
    assert (said.negative, said.definite) == (0, True)
    assert said.damping == inverse.ridge
    assert said.smallest == pytest.approx(eigenvalues[0])
    assert said.largest == pytest.approx(eigenvalues[-1])
    assert said.condition == pytest.approx(eigenvalues[-1] / eigenvalues[0])
    assert str(said).startswith("EK-FAC, 89 x 89 as a Kronecker basis, damping ")


def test_its_text_is_read_back() -> None:
    metric = Metric.read("cosine:gradient/ekfac(damping=0.01)")
    assert metric.preconditioner == InverseEKFAC(damping=0.01)
    assert str(metric) == "cosine:gradient/ekfac(damping=0.01)"


@pytest.mark.parametrize("make", [mlp, Mixed, CONVOLUTIONS["deep"]])
def test_the_model_is_left_as_it_was(make) -> None:
    model = drawn(make)
    workspace = evidence_of(model, pair(7, 16 if make is CONVOLUTIONS["deep"] else 5))
    before, copy = snapshot.of(model), snapshot.of(workspace.classifier.module)
    ekfac.fit(gradients_of(workspace))
    assert snapshot.of(model) == before
    assert snapshot.of(workspace.classifier.module) == copy


def test_gradients_need_not_be_enabled(workspace, classifier, examples) -> None:
    with torch.no_grad():
        again = ekfac.fit(gradients_of(workspace_of(classifier, examples)))
    assert torch.equal(again.values, ekfac.fit(gradients_of(workspace)).values)


def test_a_layer_too_wide_for_the_memory_is_refused(train) -> None:
    model = drawn(lambda: nn.Sequential(nn.Linear(5, 300), nn.Tanh(), nn.Linear(300, 3)))
    with pytest.raises(InputError, match=r"EK-FAC needs .* Use a Fisher metric"):
        ekfac.fit(gradients_of(evidence_of(model, train, memory="1 MB")))


def test_it_is_nearer_to_gauss_newton_than_plain_gradients_are() -> None:
    train, (cases, _) = blobs(300, seed=1), blobs(30, seed=2)
    model = trained(mlp, train)

    def scores(preconditioner: str) -> np.ndarray:
        return Explainer(model, train, f"cosine:gradient/{preconditioner}").scores(cases).numpy()

    exact = scores("hessian(kind=gauss_newton, damping=0.1)")

    def agreement(preconditioner: str) -> float:
        pairs = zip(exact, scores(preconditioner), strict=True)
        return float(np.mean([scipy.stats.spearmanr(a, b).statistic for a, b in pairs]))

    ours, plain = agreement("ekfac(damping=0.1)"), agreement("identity")
    assert ours > 0.5  # 0.57
    assert ours > plain + 0.08  # 0.44


def test_in_float32_the_numbers_are_those_of_float64_however_small_gradients_are() -> None:
    model = drawn(lambda: nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 3)))
    single = deepcopy(model).float()
    x, y = pair(40, 16)
    wide, narrow = evidence_of(model, (x, y)), evidence_of(single, (x.float(), y))
    values = [ekfac.fit(gradients_of(each)).values for each in (wide, narrow)]
    torch.testing.assert_close(values[1].sum(), values[0].sum(), rtol=1e-5, atol=0)
    kernels = [
        next(ekfac.fit(gradients_of(each)).kernels(Question(gradients_of(each), each.train)))
        for each in (wide, narrow)
    ]
    for ours, theirs in zip(*(vars(kernel).values() for kernel in kernels[::-1]), strict=True):
        if isinstance(ours, Tensor):
            assert ours.dtype == torch.double
            torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-3 * float(theirs.abs().max()))
    inverse = ekfac.fit(gradients_of(narrow))
    rows = loss_gradients(narrow.classifier, narrow.train.take(range(40)))
    tiny = replace(rows, scale=rows.scale * 1e-40)
    for one, other in ((rows, tiny), (tiny, rows)):
        assert float(inverse.basis.squares(one).sum()) > 0
        squares = inverse.coordinates(one).squares() * float(other.scale.max() / one.scale.max()) ** 2
        torch.testing.assert_close(squares, inverse.coordinates(other).squares(), rtol=1e-6, atol=0)

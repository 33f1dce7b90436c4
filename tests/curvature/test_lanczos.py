import numpy as np
import pytest
import snapshot
import torch
from conftest import mlp
from hypothesis import given
from hypothesis import strategies as st
from spaces import gradients_of, workspace_of
from torch import nn

from precedents import (
    Examples,
    Explainer,
    IndefiniteKernelError,
    InputError,
    InverseHessian,
    Metric,
)
from precedents.curvature.lanczos import hessian_eigenpairs, lanczos
from precedents.gradients.gradients import planned
from precedents.metrics.preconditioners.lanczos import InverseLanczos
from precedents.metrics.preconditioners.lanczos import lanczos as recipe
from precedents.metrics.workspace import Workspace


class Attentive(nn.Module):
    """Attention whose fast form cannot be differentiated twice."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(4, 2, 5, dropout=0.0, batch_first=True)
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        return self.head(self.layer(x[:, :4].unflatten(1, (1, 4)).repeat(1, 2, 1) * x[:, 4:, None]).mean(dim=1))


class Idle(nn.Module):
    """With a parameter that the outputs do not depend on."""

    def __init__(self) -> None:
        super().__init__()
        self.head, self.idle = nn.Linear(5, 3), nn.Parameter(torch.ones(2))

    def forward(self, x):
        return self.head(x.tanh())


def drawn(make, seed: int = 0) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make().double().eval()


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.double)


def symmetric(values: torch.Tensor, seed: int = 0) -> torch.Tensor:
    """A matrix with these eigenvalues."""
    turn = torch.linalg.qr(normal(len(values), len(values), seed=seed))[0]
    return turn * values @ turn.T


def hessian(model: nn.Module, data) -> torch.Tensor:
    parameters = [p for p in model.parameters() if p.requires_grad]
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        loss = nn.functional.cross_entropy(model(data[0]), data[1])
    grads = torch.autograd.grad(loss, parameters, create_graph=True, materialize_grads=True)
    entries = torch.cat([g.flatten() for g in grads])
    rows = []
    for entry in entries:
        if not entry.requires_grad:
            rows.append(torch.zeros(len(entries), dtype=torch.double))
            continue
        row = torch.autograd.grad(entry, parameters, retain_graph=True, materialize_grads=True)
        rows.append(torch.cat([part.flatten() for part in row]))
    return torch.stack(rows)


def evidence_of(model: nn.Module, data, **settings) -> Workspace:
    examples = Examples.of(data)
    return workspace_of(model, examples, **settings)


def dense(inverse, p: int = 89) -> np.ndarray:
    return inverse.solve(torch.eye(p, dtype=torch.double)).numpy()


def assert_same(ours: np.ndarray, theirs: np.ndarray, atol: float = 1e-9) -> None:
    scale = np.abs(theirs).max()
    np.testing.assert_allclose(ours / scale, theirs / scale, rtol=0, atol=atol)


@pytest.mark.parametrize("make", [mlp, Attentive, Idle, lambda: nn.Linear(5, 3)])
def test_all_eigenpairs_make_the_exact_hessian(make, train) -> None:
    model = drawn(make)
    workspace = evidence_of(model, train)
    pairs = hessian_eigenpairs(workspace.classifier, workspace.train, workspace.classifier.size)
    made = pairs.vectors * pairs.values @ pairs.vectors.T
    torch.testing.assert_close(made, hessian(model, train), rtol=1e-9, atol=1e-12)


def test_eigenvalues_are_the_same_in_batches(model, train, classifier, examples) -> None:
    little = evidence_of(model, train, memory="100 KB")
    assert planned(little.classifier).size < len(little.train)
    ours, theirs = (
        hessian_eigenpairs(*each, 3) for each in ((little.classifier, little.train), (classifier, examples))
    )
    torch.testing.assert_close(ours.values, theirs.values, rtol=1e-10, atol=1e-12)


def test_eigenvalues_of_a_float32_model_are_computed_in_float64(train) -> None:
    model = drawn(mlp).float()
    workspace = evidence_of(model, train)
    ours = hessian_eigenpairs(workspace.classifier, workspace.train, 89).values
    theirs = torch.linalg.eigvalsh(hessian(model.double(), train))
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)


def test_all_eigenpairs_are_those_of_the_exact_hessian(classifier, examples, model, train) -> None:
    pairs = hessian_eigenpairs(classifier, examples, 89)
    matrix = hessian(model, train)
    values = torch.linalg.eigvalsh(matrix)
    assert (values < 0).sum() > 10
    torch.testing.assert_close(pairs.values, values, rtol=1e-9, atol=1e-13)
    torch.testing.assert_close(pairs.vectors.T @ pairs.vectors, torch.eye(89, dtype=torch.double))
    torch.testing.assert_close(matrix @ pairs.vectors, pairs.vectors * pairs.values, rtol=0, atol=1e-12)


@pytest.mark.parametrize("rank", [1, 7, 30])
def test_the_extreme_eigenpairs_are_found_from_both_ends(rank, classifier, examples, model, train) -> None:
    pairs = hessian_eigenpairs(classifier, examples, rank)
    matrix = hessian(model, train)
    every = torch.linalg.eigvalsh(matrix)
    wanted = every[every.abs().argsort(descending=True)[:rank]].sort().values
    torch.testing.assert_close(pairs.values, wanted, rtol=1e-8, atol=1e-12)
    worst = float((matrix @ pairs.vectors - pairs.vectors * pairs.values).norm(dim=0).max())
    assert worst <= 2e-8 * float(every.abs().max())
    assert pairs.residual <= 1e-8
    assert rank <= pairs.steps <= 89
    if rank == 30:
        assert (wanted < 0).any()


def test_the_residual_is_what_it_says_when_the_steps_run_out() -> None:
    matrix = symmetric(torch.linspace(-1, 3, 60, dtype=torch.double))
    pairs = lanczos(lambda v: matrix @ v, 60, rank=10, steps=15)
    worst = float((matrix @ pairs.vectors - pairs.vectors * pairs.values).norm(dim=0).max())
    assert pairs.steps == 15
    assert pairs.residual > 1e-3
    assert pairs.residual == pytest.approx(worst / float(pairs.values.abs().max()), rel=1e-6)


@given(st.integers(1, 12), st.integers(0, 1000), st.data())
def test_any_symmetric_matrix_has_all_its_eigenvalues_found(size, seed, data) -> None:
    few = st.sampled_from([-2.0, -1.0, 0.0, 0.0, 1.0, 3.0])  # many equal ones: the basis must start afresh
    values = torch.tensor(data.draw(st.lists(few, min_size=size, max_size=size)), dtype=torch.double)
    matrix = symmetric(values, seed)
    pairs = lanczos(lambda v: matrix @ v, size, size, size)
    torch.testing.assert_close(pairs.values, values.sort().values, rtol=0, atol=1e-12)
    whole = pairs.vectors * pairs.values @ pairs.vectors.T
    torch.testing.assert_close(whole, matrix, rtol=0, atol=1e-12)


def test_it_is_deterministic_and_leaves_the_random_state(classifier, examples) -> None:
    before = snapshot.of(classifier.module)
    first, second = (hessian_eigenpairs(classifier, examples, 5) for _ in range(2))
    assert torch.equal(first.vectors, second.vectors)
    assert snapshot.of(classifier.module) == before


def test_it_reports_its_progress(monkeypatch, classifier, examples) -> None:
    titles = []

    def noted(items, title):
        titles.append(title)
        return iter(items)

    monkeypatch.setattr("precedents.curvature.going_on.tracked", noted)
    hessian_eigenpairs(classifier, examples, 5)
    assert titles == ["Lanczos"]


@pytest.mark.parametrize("negative", ["keep", "drop"])
@pytest.mark.parametrize("damping", [1e-3, 1e-1])
def test_with_all_pairs_it_is_the_inverse_of_the_exact_hessian(negative, damping, workspace) -> None:
    ours = InverseLanczos(89, negative, damping).fit(gradients_of(workspace))
    theirs = InverseHessian("exact", negative, damping).fit(gradients_of(workspace))
    assert ours.found.ridge == pytest.approx(theirs.ridge)
    assert ours.definite == theirs.definite == (negative == "drop")
    assert_same(dense(ours), dense(theirs))


@pytest.mark.parametrize("metric", ["dot:gradient/{}(negative=keep{})", "cosine:gradient/{}(negative=drop{})"])
def test_with_all_pairs_the_scores_are_those_of_the_exact_hessian(metric, model, train, cases) -> None:
    ours = Explainer(model, train, metric.format("lanczos", ", rank=89")).scores(cases).numpy()
    theirs = Explainer(model, train, metric.format("hessian", ", kind=exact")).scores(cases).numpy()
    assert_same(ours, theirs, atol=1e-8)


@pytest.mark.parametrize("negative", ["keep", "drop"])
def test_with_some_pairs_the_rest_counts_as_flat(negative, workspace, model, train) -> None:
    values, vectors = np.linalg.eigh(hessian(model, train).numpy())
    largest = np.argsort(-np.abs(values))[:30]
    values, vectors = values[largest], vectors[:, largest]
    truncated = vectors * values @ vectors.T
    ridge = 0.01 * np.abs(np.diag(truncated)).mean()
    damped = values + ridge
    assert (damped < 0).any()
    weights = 1 / damped if negative == "keep" else np.where(damped > 0, 1 / damped, 0.0)
    expected = vectors * weights @ vectors.T + (np.eye(89) - vectors @ vectors.T) / ridge
    inverse = InverseLanczos(30, negative, 0.01).fit(gradients_of(workspace))
    assert inverse.found.ridge == pytest.approx(ridge)
    assert_same(dense(inverse), expected, atol=1e-7)  # the tolerance of the pairs is 1e-8


def test_coordinates_and_solutions_agree(workspace) -> None:
    inverse, a, b = InverseLanczos(30).fit(gradients_of(workspace)), normal(3, 89), normal(4, 89, seed=1)
    products = (inverse.coordinates(a) * inverse.weights) @ inverse.coordinates(b).T
    torch.testing.assert_close(products, a @ inverse.solve(b).T, rtol=1e-9, atol=1e-6)


def test_negative_curvature_that_is_kept_has_no_angles(model, train, cases) -> None:
    kept = "gradient/lanczos(rank=30, negative=keep)"
    assert Explainer(model, train, f"dot:{kept}").scores(cases).isfinite().all()
    with pytest.raises(IndefiniteKernelError):
        Explainer(model, train, f"cosine:{kept}").scores(cases)


def test_the_pairs_are_computed_once_for_all_dampings(workspace) -> None:
    first, second = (
        InverseLanczos(5).fit(gradients_of(workspace)),
        InverseLanczos(5, "keep", 0.5).fit(gradients_of(workspace)),
    )
    assert first.found.vectors is second.found.vectors


def test_it_describes_itself(workspace) -> None:
    inverse = InverseLanczos(30, "keep").fit(gradients_of(workspace))
    said = inverse.description
    eigenvalues = np.linalg.eigvalsh(np.linalg.inv(dense(inverse)))
    assert said.kind == "Lanczos spectrum of the exact Hessian"
    assert (said.size, said.damping, said.definite) == (89, inverse.found.ridge, False)
    assert said.smallest == pytest.approx(eigenvalues[0])
    assert said.largest == pytest.approx(eigenvalues[-1])
    assert said.negative == (eigenvalues < 0).sum() > 0
    assert said.condition == pytest.approx(np.abs(eigenvalues).max() / np.abs(eigenvalues).min())
    assert said.form.startswith("spectrum of 30 pairs with residual ")


def test_dropping_is_said(workspace) -> None:
    said = InverseLanczos(30).fit(gradients_of(workspace)).description
    assert said.kind == "Lanczos spectrum of the exact Hessian, negative curvature dropped"
    assert said.definite


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rank": 0}, "rank is 0. Ask for at least one eigenpair, for example rank=100"),
        ({"negative": "abs"}, "negative is 'abs'. Use one of: drop, keep"),
    ],
)
def test_an_unusable_setting_is_refused_with_what_to_write(settings, message) -> None:
    with pytest.raises(InputError, match=message):
        InverseLanczos(**settings)


def test_damping_of_zero_is_refused(workspace) -> None:
    with pytest.raises(InputError, match=r"must be positive"):
        InverseLanczos(5, damping=0.0).fit(gradients_of(workspace))


def test_a_basis_that_does_not_fit_in_memory_is_refused(model, train) -> None:
    with pytest.raises(InputError, match=r"Lanczos basis of 89 vectors needs .* Use a smaller rank"):
        InverseLanczos(89).fit(gradients_of(evidence_of(model, train, memory="40 KB")))


def test_its_text_is_read_back() -> None:
    metric = Metric.read("cosine:gradient/lanczos(rank=50)")
    assert metric.preconditioner == InverseLanczos(rank=50)
    assert str(metric) == "cosine:gradient/lanczos(rank=50)"
    assert Metric.read("dot:gradient/lanczos").preconditioner == recipe

import numpy as np
import oracle
import pytest
import scipy.linalg
import torch
from spaces import gradients_of, workspace_of

from precedents import Explainer, InputError, InverseFisher
from precedents.curvature import dual
from precedents.metrics.preconditioners._inverse import absolute
from precedents.metrics.preconditioners._structures import (
    LowRankPlusRidge,
    Spectrum,
    Triangular,
    spectrum,
)
from precedents.metrics.preconditioners.fisher import Dual, fisher, whole
from precedents.metrics.vectors import Question


def inverted(matrix: np.ndarray, damping: float) -> np.ndarray:
    return np.linalg.inv(matrix + damping * np.diag(matrix).mean() * np.eye(len(matrix)))


def dense(inverse, p: int) -> np.ndarray:
    return inverse.solve(torch.eye(p, dtype=torch.double)).numpy()


def assert_same(ours: np.ndarray, theirs: np.ndarray, atol: float = 1e-9) -> None:
    scale = np.abs(theirs).max()
    np.testing.assert_allclose(ours / scale, theirs / scale, rtol=0, atol=atol)


@pytest.mark.parametrize("damping", [1e-3, 0.5])
def test_empirical_fisher_is_the_mean_outer_product(damping, workspace, model, train) -> None:
    inverse = InverseFisher(damping=damping).fit(gradients_of(workspace))
    assert_same(dense(inverse, 89), inverted(oracle.fisher(model, train), damping))


@pytest.mark.parametrize("damping", [1e-3, 0.5])
def test_true_fisher_is_the_expectation_over_the_models_labels(damping, workspace, model, train) -> None:
    inverse = InverseFisher(kind="true", damping=damping).fit(gradients_of(workspace))
    assert_same(dense(inverse, 89), inverted(oracle.true_fisher(model, train), damping))


def test_true_fisher_is_the_gauss_newton_matrix(model, train) -> None:
    assert_same(oracle.true_fisher(model, train), oracle.gauss_newton(model, train))


def test_mean_gradient_is_the_outer_product_of_the_mean(workspace, model, train) -> None:
    mean = np.mean([oracle.gradient(model, x, int(y)) for x, y in zip(*train, strict=True)], axis=0)
    inverse = InverseFisher(kind="mean_gradient", damping=0.1).fit(gradients_of(workspace))
    assert_same(dense(inverse, 89), inverted(np.outer(mean, mean), 0.1))


@pytest.mark.parametrize("damping", [1e-10, 10.0])
def test_the_published_inverse_is_of_float32_entries(damping, workspace, model, train) -> None:
    """As numpy computes it; its real square root, squared, is what is left of it for cosine and l2."""
    mean = np.mean([oracle.gradient(model, x, int(y)) for x, y in zip(*train, strict=True)], axis=0)
    single = np.float32(mean)
    matrix = np.outer(single, single)
    expected = np.linalg.inv(matrix + damping * np.abs(matrix).mean() * np.eye(len(mean)))
    root = scipy.linalg.sqrtm(expected.astype(complex)).real
    for negative, theirs in (("keep", expected), ("drop", root @ root)):
        inverse = InverseFisher(kind="published", negative=negative, damping=damping).fit(
            gradients_of(workspace)
        )
        assert_same(dense(inverse, 89), theirs, atol=1e-5)


def test_the_published_inverse_is_indefinite_if_negative_eigenvalues_are_kept(workspace) -> None:
    kept = InverseFisher(kind="published", negative="keep", damping=1e-10).fit(gradients_of(workspace))
    dropped = InverseFisher(kind="published", damping=1e-10).fit(gradients_of(workspace))
    assert (kept.definite, dropped.definite) == (False, True)
    assert kept.description.negative == dropped.description.negative > 0


def test_fisher_of_a_linear_model_is_in_the_primal(linear, examples, train) -> None:
    inverse = fisher.fit(gradients_of(workspace_of(linear, examples)))
    assert isinstance(inverse, Spectrum)
    assert_same(dense(inverse, 18), inverted(oracle.fisher(linear, train), 1e-3))


def test_fisher_of_the_network_is_in_the_dual(workspace) -> None:
    assert isinstance(fisher.fit(gradients_of(workspace)), Dual)


def test_all_forms_of_the_same_gradients_agree(workspace) -> None:
    gradients = torch.cat([rows.dense() for _, rows in gradients_of(workspace).blocks()])
    factor = gradients / len(gradients) ** 0.5
    matrix = factor.T @ factor
    ridge = absolute(1e-3, float(matrix.diagonal().mean()))
    values, vectors = spectrum(matrix)
    primal = Spectrum(vectors, values.clamp(min=0), ridge, "").solve(gradients)
    scale = float(primal.abs().max())
    for other in (fisher.fit(gradients_of(workspace)), LowRankPlusRidge.of(factor, ridge, "")):
        torch.testing.assert_close(other.solve(gradients), primal, rtol=1e-8, atol=1e-8 * scale)


@pytest.mark.parametrize("kind", ["empirical", "true", "mean_gradient"])
def test_kernels_are_the_inner_products_under_the_solution(kind, workspace, examples) -> None:
    inverse = InverseFisher(kind=kind).fit(gradients_of(workspace))
    (kernel,) = inverse.kernels(Question(gradients_of(workspace), examples))
    gradients = torch.cat([rows.dense() for _, rows in gradients_of(workspace).blocks()])
    expected = gradients @ inverse.solve(gradients).T
    scale = float(expected.abs().max())
    torch.testing.assert_close(kernel.cross, expected, rtol=1e-8, atol=1e-9 * scale)
    torch.testing.assert_close(kernel.case_sq, expected.diagonal(), rtol=1e-8, atol=1e-9 * scale)
    torch.testing.assert_close(kernel.train_sq, expected.diagonal(), rtol=1e-8, atol=1e-9 * scale)


def test_a_large_matrix_is_inverted_without_its_spectrum() -> None:
    rows = torch.randn(300, 1600, dtype=torch.double)
    inverse = whole(rows.T @ rows, 1e-2, "")
    assert isinstance(inverse, Triangular)
    damped = rows.T @ rows + inverse.ridge * torch.eye(1600, dtype=torch.double)
    torch.testing.assert_close(inverse.solve(rows[:5] @ damped), rows[:5], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("empirical", "empirical Fisher"),
        ("true", "true Fisher"),
        ("mean_gradient", "mean gradient Fisher"),
    ],
)
def test_the_description_says_which_fisher_it_is(kind, words, workspace) -> None:
    assert InverseFisher(kind=kind).fit(gradients_of(workspace)).description.kind == words


def test_the_description_is_right_against_the_dense_matrix(workspace, model, train) -> None:
    said = fisher.fit(gradients_of(workspace)).description
    eigenvalues = np.linalg.eigvalsh(oracle.damped("fisher", model, train))
    assert (said.size, said.negative, said.definite) == (89, 0, True)
    assert said.smallest == pytest.approx(eigenvalues[0], rel=1e-6)
    assert said.largest == pytest.approx(eigenvalues[-1], rel=1e-4)


def test_an_unknown_kind_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"kind is 'full'. Use one of: empirical, true, mean_gradient"):
        InverseFisher(kind="full")


def test_damping_of_zero_is_refused(model, train, cases) -> None:
    with pytest.raises(InputError, match=r"must be positive"):
        Explainer(model, train, "cosine:gradient/fisher(damping=0)").scores(cases)


@pytest.mark.parametrize("columns", [1, 7, 44, 45, 1000])
def test_the_lengths_in_the_dual_are_the_same_however_many_columns_are_solved_at_once(
    columns, monkeypatch
) -> None:
    """Those of instances with tiny gradients too, whose digits a difference would lose."""
    gradients = torch.randn(45, 60, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    gradients[3] *= 1e-12
    gram = gradients @ gradients.T
    root = torch.linalg.cholesky(gram + 1e-4 * torch.eye(45, dtype=torch.double))
    wanted = torch.cholesky_solve(gram, root).diagonal()
    monkeypatch.setattr(dual, "COLUMNS", columns)
    torch.testing.assert_close(dual.diagonal(gram, root), wanted, rtol=1e-9, atol=0)

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from spaces import gradients_of

from precedents import InputError, NumericalError
from precedents.metrics.preconditioners._inverse import absolute
from precedents.metrics.preconditioners._structures import (
    LowRankPlusRidge,
    Spectrum,
    Triangular,
    damped_root,
    power_iteration,
    spectrum,
)
from precedents.metrics.preconditioners.identity import identity

seeds = st.integers(0, 10_000)


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.double)


def symmetric(d: int, seed: int = 0) -> torch.Tensor:
    matrix = normal(d, d, seed=seed)
    return matrix + matrix.T


def low_rank(factor: torch.Tensor, damping: float) -> LowRankPlusRidge:
    return LowRankPlusRidge.of(factor, absolute(damping, float(factor.square().sum(dim=0).mean())), "low rank")


def forms(factor: torch.Tensor, damping: float) -> tuple[LowRankPlusRidge, Spectrum, Triangular]:
    """The same matrix in the dual, and in the primal by its spectrum and by its Cholesky factor."""
    dual, matrix = low_rank(factor, damping), factor.T @ factor
    values, vectors = spectrum(matrix)
    root = damped_root(matrix.clone(), dual.ridge)
    return dual, Spectrum(vectors, values, dual.ridge, "primal"), Triangular(root, dual.ridge, "primal")


@pytest.mark.parametrize("damping", [1.0, 1e-3, 1e-5])
@pytest.mark.parametrize(("r", "d"), [(1, 7), (6, 7), (20, 50)])
def test_dual_and_primal_agree(r, d, damping) -> None:
    rows = normal(9, d, seed=1)
    dual, primal, triangular = (inverse.solve(rows) for inverse in forms(normal(r, d), damping))
    scale = float(primal.abs().max())
    torch.testing.assert_close(dual, primal, rtol=1e-8, atol=1e-8 * scale)
    torch.testing.assert_close(triangular, primal, rtol=1e-8, atol=1e-8 * scale)


@pytest.mark.parametrize("form", [1, 2])
def test_inner_products_of_coordinates_are_those_under_the_inverse(form) -> None:
    inverse, a, b = forms(normal(6, 7), 1e-2)[form], normal(3, 7, seed=1), normal(4, 7, seed=2)
    weights = 1.0 if inverse.weights is None else inverse.weights
    products = (inverse.coordinates(a) * weights) @ inverse.coordinates(b).T
    torch.testing.assert_close(products, a @ inverse.solve(b).T, rtol=1e-9, atol=1e-9)


@given(seeds, st.integers(1, 12), st.floats(1e-4, 10))
def test_the_dual_undoes_its_damped_matrix(seed, r, damping) -> None:
    factor, rows = normal(r, 13, seed=seed), normal(4, 13, seed=seed + 1)
    inverse = low_rank(factor, damping)
    matrix = factor.T @ factor + inverse.ridge * torch.eye(13, dtype=torch.double)
    torch.testing.assert_close(inverse.solve(rows @ matrix), rows, rtol=1e-7, atol=1e-7)


@given(seeds, st.floats(1e-4, 10))
def test_the_spectrum_undoes_its_damped_matrix(seed, damping) -> None:
    matrix, rows = symmetric(8, seed), normal(4, 8, seed=seed + 1)
    values, vectors = spectrum(matrix)
    inverse = Spectrum(vectors, values, damping, "", keep=True)
    damped = matrix + damping * torch.eye(8, dtype=torch.double)
    condition = inverse.description.condition
    torch.testing.assert_close(
        inverse.solve(rows @ damped), rows, rtol=1e-12 * condition, atol=1e-12 * condition
    )


@given(seeds)
def test_dropped_directions_vanish_and_the_others_are_inverted(seed) -> None:
    values, vectors = spectrum(symmetric(8, seed))
    inverse = Spectrum(vectors, values, 1e-3, "")
    damped = values + 1e-3
    solved = inverse.solve(vectors.T)
    expected = torch.where(damped > 0, 1 / damped, 0.0)[:, None] * vectors.T
    torch.testing.assert_close(solved, expected, rtol=1e-9, atol=1e-9 * float(expected.abs().max()))


@given(seeds, st.booleans())
def test_definite_means_that_no_square_is_negative(seed, keep) -> None:
    values, vectors = spectrum(symmetric(6, seed))
    inverse = Spectrum(vectors, values, 1e-3, "", keep)
    assert inverse.definite == bool(not keep or (values + 1e-3 > 0).all())
    rows = torch.cat([vectors.T, normal(20, 6, seed=seed + 1)])
    squares = (rows * inverse.solve(rows)).sum(dim=1)
    assert inverse.definite == bool((squares >= -1e-9 * inverse.weights.abs().max()).all())


@given(seeds, st.integers(1, 9))
def test_the_dual_is_definite(seed, r) -> None:
    inverse = low_rank(normal(r, 10, seed=seed), 1e-3)
    rows = normal(20, 10, seed=seed + 1)
    assert inverse.definite
    assert ((rows * inverse.solve(rows)).sum(dim=1) >= 0).all()


@pytest.mark.parametrize("seed", range(5))
def test_the_description_of_a_spectrum_is_right(seed) -> None:
    matrix = symmetric(9, seed)
    values, vectors = spectrum(matrix)
    said = Spectrum(vectors, values, 0.01, "exact Hessian", keep=True).description
    eigenvalues = np.linalg.eigvalsh(matrix.numpy() + 0.01 * np.eye(9))
    assert said.kind == "exact Hessian"
    assert (said.size, said.damping, said.definite) == (9, 0.01, False)
    assert said.smallest == pytest.approx(eigenvalues[0])
    assert said.largest == pytest.approx(eigenvalues[-1])
    assert said.negative == (eigenvalues < 0).sum()
    assert said.condition == pytest.approx(np.abs(eigenvalues).max() / np.abs(eigenvalues).min())


@pytest.mark.parametrize("seed", range(5))
def test_the_description_of_a_low_rank_is_right(seed) -> None:
    factor = normal(6, 20, seed=seed)
    inverse = low_rank(factor, 0.1)
    eigenvalues = np.linalg.eigvalsh((factor.T @ factor).numpy() + inverse.ridge * np.eye(20))
    said = inverse.description
    assert (said.size, said.negative, said.definite) == (20, 0, True)
    assert said.damping == pytest.approx(0.1 * factor.square().sum(dim=0).mean())
    assert said.smallest == pytest.approx(eigenvalues[0])
    assert said.largest == pytest.approx(eigenvalues[-1], rel=1e-4)
    assert said.condition == pytest.approx(eigenvalues[-1] / eigenvalues[0], rel=1e-4)


def test_the_description_is_a_line() -> None:
    values = torch.tensor([-1.0, 2.0, 3.0], dtype=torch.double)
    vectors = torch.eye(3, dtype=torch.double)
    said = str(Spectrum(vectors, values, 0.5, "exact Hessian", keep=True).description)
    assert said == (
        "exact Hessian, 3 x 3 as a spectrum, damping 0.5, eigenvalues -0.5 to 3.5, condition 7, "
        "1 negative eigenvalues, indefinite"
    )


def test_the_description_says_that_negative_curvature_was_dropped() -> None:
    values = torch.tensor([-1.0, 2.0], dtype=torch.double)
    said = Spectrum(torch.eye(2, dtype=torch.double), values, 0.5, "exact Hessian").description
    assert said.kind == "exact Hessian, negative curvature dropped"
    assert said.definite


def test_the_description_gives_plain_values() -> None:
    said = low_rank(normal(2, 5), 0.1).description.to_dict()
    assert {type(value) for value in said.values()} <= {str, int, float, bool}


def test_the_identity_describes_itself_in_a_word(workspace) -> None:
    assert str(identity.fit(gradients_of(workspace)).description) == "identity"


@pytest.mark.parametrize("seed", range(3))
def test_the_description_of_a_cholesky_factor_is_right(seed) -> None:
    factor = normal(20, 9, seed=seed)
    said = forms(factor, 0.1)[2].description
    damped = (factor.T @ factor).numpy() + said.damping * np.eye(9)
    eigenvalues = np.linalg.eigvalsh(damped)
    assert (said.size, said.negative, said.definite) == (9, 0, True)
    assert said.smallest == pytest.approx(eigenvalues[0], rel=1e-3)
    assert said.largest == pytest.approx(eigenvalues[-1], rel=1e-3)
    assert said.condition == pytest.approx(eigenvalues[-1] / eigenvalues[0], rel=1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_the_largest_eigenvalue_is_found_by_powers(seed) -> None:
    gram = normal(12, 30, seed=seed)
    gram = gram @ gram.T
    expected = np.linalg.eigvalsh(gram.numpy())[-1]
    assert power_iteration(lambda v: gram @ v, 12) == pytest.approx(expected, rel=1e-4)


def test_damping_is_relative_to_the_size_of_the_matrix() -> None:
    assert absolute(0.01, 2.0) == pytest.approx(0.02)


def test_a_zero_matrix_is_damped_absolutely() -> None:
    assert absolute(0.01, 0.0) == 0.01


@pytest.mark.parametrize("damping", [0.0, -1.0, float("nan")])
def test_damping_must_be_positive(damping) -> None:
    with pytest.raises(InputError, match=r"it must be positive, for example damping=1e-3"):
        absolute(damping, 1.0)


def test_a_singular_matrix_is_named() -> None:
    values = torch.tensor([-0.5, 1.0], dtype=torch.double)
    with pytest.raises(NumericalError, match=r"singular. Use a larger damping"):
        _ = Spectrum(torch.eye(2, dtype=torch.double), values, 0.5, "").weights


def test_a_damping_below_rounding_is_named() -> None:
    factor = torch.ones(3, 5, dtype=torch.double)
    with pytest.raises(NumericalError, match=r"below rounding"):
        LowRankPlusRidge.of(factor, 1e-30, "").solve(factor)

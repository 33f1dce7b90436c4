import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from precedents import InputError, NumericalError
from precedents.preconditioners._inverse import (
    LowRankPlusRidge,
    Spectrum,
    inverse_of_rows,
    largest_eigenvalue,
    ridge,
    spectrum,
)
from precedents.preconditioners.identity import identity

seeds = st.integers(0, 10_000)


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.double)


def symmetric(d: int, seed: int = 0) -> torch.Tensor:
    matrix = normal(d, d, seed=seed)
    return matrix + matrix.T


def both(factor: torch.Tensor, damping: float) -> tuple[LowRankPlusRidge, Spectrum]:
    """The same matrix in the dual and in the primal."""
    matrix = factor.T @ factor
    absolute = ridge(damping, matrix.diagonal())
    values, vectors = spectrum(matrix)
    return LowRankPlusRidge(factor, absolute, "dual"), Spectrum(vectors, values, absolute, "primal")


@pytest.mark.parametrize("damping", [1.0, 1e-3, 1e-5])
@pytest.mark.parametrize(("r", "d"), [(1, 7), (6, 7), (20, 50)])
def test_dual_and_primal_agree(r, d, damping) -> None:
    dual, primal = both(normal(r, d), damping)
    rows = normal(9, d, seed=1)
    expected = primal.solve(rows)
    torch.testing.assert_close(dual.solve(rows), expected, rtol=1e-8, atol=1e-8 * float(expected.abs().max()))


@given(seeds, st.integers(1, 12), st.floats(1e-4, 10))
def test_the_dual_undoes_its_damped_matrix(seed, r, damping) -> None:
    factor, rows = normal(r, 13, seed=seed), normal(4, 13, seed=seed + 1)
    inverse = inverse_of_rows(factor, damping, "")
    matrix = factor.T @ factor + inverse.ridge * torch.eye(13, dtype=torch.double)
    torch.testing.assert_close(inverse.solve(rows @ matrix), rows, rtol=1e-7, atol=1e-7)


@given(seeds, st.floats(1e-4, 10))
def test_the_spectrum_undoes_its_damped_matrix(seed, damping) -> None:
    matrix, rows = symmetric(8, seed), normal(4, 8, seed=seed + 1)
    values, vectors = spectrum(matrix)
    inverse = Spectrum(vectors, values, damping, "", keep=True)
    damped = matrix + damping * torch.eye(8, dtype=torch.double)
    condition = inverse.description.condition
    torch.testing.assert_close(inverse.solve(rows @ damped), rows, rtol=1e-12 * condition, atol=1e-12 * condition)


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
    inverse = inverse_of_rows(normal(r, 10, seed=seed), 1e-3, "")
    rows = normal(20, 10, seed=seed + 1)
    assert inverse.definite
    assert ((rows * inverse.solve(rows)).sum(dim=1) >= 0).all()


@pytest.mark.parametrize(("r", "kind"), [(4, LowRankPlusRidge), (5, Spectrum), (6, Spectrum)])
def test_the_smaller_of_primal_and_dual_is_taken(r, kind) -> None:
    assert isinstance(inverse_of_rows(normal(r, 5), 1e-3, ""), kind)


def test_rounding_leaves_no_negative_eigenvalue_in_a_square_of_rows() -> None:
    rank_one = torch.ones(50, 1, dtype=torch.double) @ normal(1, 10)
    inverse = inverse_of_rows(rank_one, 1e-12, "")
    assert inverse.description.negative == 0


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
    inverse = inverse_of_rows(factor, 0.1, "empirical Fisher")
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
    said = inverse_of_rows(normal(2, 5), 0.1, "empirical Fisher").description.to_dict()
    assert {type(value) for value in said.values()} <= {str, int, float, bool}


def test_the_identity_describes_itself_in_a_word(evidence) -> None:
    assert str(identity.fit(evidence).description) == "identity"


@pytest.mark.parametrize("seed", range(3))
def test_the_largest_eigenvalue_is_found_by_powers(seed) -> None:
    gram = normal(12, 30, seed=seed)
    gram = gram @ gram.T
    expected = np.linalg.eigvalsh(gram.numpy())[-1]
    assert largest_eigenvalue(torch.linalg.cholesky(gram)) == pytest.approx(expected, rel=1e-4)


def test_damping_is_relative_to_the_mean_absolute_diagonal() -> None:
    assert ridge(0.01, torch.tensor([1.0, -3.0, 2.0], dtype=torch.double)) == pytest.approx(0.02)


def test_a_zero_matrix_is_damped_absolutely() -> None:
    assert ridge(0.01, torch.zeros(3)) == 0.01


@pytest.mark.parametrize("damping", [0.0, -1.0, float("nan")])
def test_damping_must_be_positive(damping) -> None:
    with pytest.raises(InputError, match="it must be positive, for example damping=1e-3"):
        ridge(damping, torch.ones(3))


def test_a_singular_matrix_is_named() -> None:
    values = torch.tensor([-0.5, 1.0], dtype=torch.double)
    with pytest.raises(NumericalError, match="singular. Use a larger damping"):
        _ = Spectrum(torch.eye(2, dtype=torch.double), values, 0.5, "").weights


def test_a_damping_below_rounding_is_named() -> None:
    factor = torch.ones(3, 5, dtype=torch.double)
    with pytest.raises(NumericalError, match="below rounding"):
        LowRankPlusRidge(factor, 1e-30, "").solve(factor)

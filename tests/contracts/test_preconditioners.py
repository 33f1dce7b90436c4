"""A preconditioner is a recipe; fitted, it is a symmetric linear map that says truly whether it is definite."""

from importlib import import_module

import pytest
import torch
from spaces import gradients_of

from precedents import PRECONDITIONERS, Metric
from precedents.metrics.features.gradient import gradient
from precedents.registry import written

each = pytest.mark.parametrize("name", PRECONDITIONERS.names())


@pytest.fixture
def inverse(name, workspace):
    return PRECONDITIONERS.get(name).fit(gradients_of(workspace))


def vectors(count: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(count, 89, generator=torch.Generator().manual_seed(seed), dtype=torch.double)


@each
def test_the_file_defines_its_own_name_and_says_what_it_is(name) -> None:
    recipe = PRECONDITIONERS.get(name)
    assert type(recipe).__module__.endswith(f".{name}")
    assert import_module(type(recipe).__module__).__doc__
    assert type(recipe).__doc__


@each
def test_it_says_which_features_it_acts_on(name) -> None:
    assert PRECONDITIONERS.get(name).features in (None, gradient)


@each
def test_equal_recipes_are_equal_values(name) -> None:
    recipe = PRECONDITIONERS.get(name)
    assert type(recipe)() == recipe
    assert hash(type(recipe)()) == hash(recipe)


@each
def test_its_text_is_read_back(name) -> None:
    recipe = PRECONDITIONERS.get(name)
    assert written(recipe) == name
    assert PRECONDITIONERS.read(name) == recipe
    assert Metric.read(f"dot:gradient/{name}").preconditioner == recipe


@each
def test_solving_is_linear(inverse) -> None:
    a, b = vectors(3, 0), vectors(3, 1)
    expected = 2 * inverse.solve(a) - 3 * inverse.solve(b)
    torch.testing.assert_close(
        inverse.solve(2 * a - 3 * b), expected, rtol=1e-8, atol=1e-9 * float(expected.abs().max())
    )


@each
def test_solving_is_symmetric(inverse) -> None:
    a, b = vectors(5, 0), vectors(7, 1)
    left, right = inverse.solve(a) @ b.T, a @ inverse.solve(b).T
    torch.testing.assert_close(left, right, rtol=1e-8, atol=1e-9 * float(left.abs().max()))


@each
def test_rows_are_solved_one_by_one(inverse) -> None:
    rows = vectors(6)
    whole = inverse.solve(rows)
    single = torch.cat([inverse.solve(row[None]) for row in rows])
    torch.testing.assert_close(single, whole, rtol=1e-9, atol=1e-10 * float(whole.abs().max()))


@each
def test_the_rows_are_left_as_they_were(inverse) -> None:
    rows = vectors(6)
    inverse.solve(rows)
    assert torch.equal(rows, vectors(6))


@each
def test_what_is_called_definite_is(inverse) -> None:
    whole = inverse.solve(torch.eye(89, dtype=torch.double))
    eigenvalues = torch.linalg.eigvalsh((whole + whole.T) / 2)
    assert inverse.definite == bool(eigenvalues[0] >= -1e-9 * eigenvalues[-1])


@each
def test_it_describes_itself(inverse) -> None:
    said = inverse.description
    assert said.kind
    assert said.definite == inverse.definite
    assert str(said).startswith(said.kind)
    assert said.to_dict()["kind"] == said.kind
    assert said.size in (None, 89)


@each
def test_fitting_twice_gives_the_same(name, inverse, workspace) -> None:
    again = PRECONDITIONERS.get(name).fit(gradients_of(workspace))
    assert torch.equal(again.solve(vectors(4)), inverse.solve(vectors(4)))

"""A preconditioner is a recipe; fitted, it is a symmetric linear map that says truly whether it is definite."""

from dataclasses import dataclass
from importlib import import_module

import pytest
import torch
from spaces import gradients_of

from precedents import FEATURES, PRECONDITIONERS, SIMILARITIES, Examples, Explainer, Metric
from precedents.metrics.kernel import joined
from precedents.metrics.preconditioners._inverse import Description, Inverse, Preconditioner
from precedents.metrics.vectors import Question, Vectors
from precedents.registry import written

each = pytest.mark.parametrize("name", PRECONDITIONERS.names())


PAIRS = [
    (name, features)
    for name in PRECONDITIONERS.names()
    for features in FEATURES.names()
    if PRECONDITIONERS.get(name).features in (None, FEATURES.get(features))
]
pairs = pytest.mark.parametrize(("name", "features"), PAIRS)


@pytest.fixture
def inverse(name, workspace):
    """Fitted to the gradients, which all of them can act on."""
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


@pairs
def test_it_solves_the_rows_of_its_own_features(name, features, workspace) -> None:
    found = Vectors.of(workspace, FEATURES.get(features))
    rows = torch.cat([rows.dense() for _, rows in found.blocks()])
    solved = PRECONDITIONERS.get(name).fit(found).solve(rows)
    assert solved.shape == rows.shape
    assert solved.dtype == torch.double
    assert solved.isfinite().all()


@pairs
def test_its_kernels_are_those_of_solving(name, features, workspace, examples, test) -> None:
    found = Vectors.of(workspace, FEATURES.get(features))
    inverse, cases = PRECONDITIONERS.get(name).fit(found), Examples.of(test)
    kernel = joined(list(inverse.kernels(Question(found, cases))))
    train = torch.cat([rows.dense() for _, rows in found.blocks()])
    case = torch.cat([rows.dense() for _, rows in found.rows(cases)])
    weighed = inverse.solve(case)
    same(kernel.cross, weighed @ train.T)
    same(kernel.case_sq, (case * weighed).sum(dim=1))
    same(kernel.train_sq, (train * inverse.solve(train)).sum(dim=1))
    assert kernel.definite == inverse.definite


def same(found: torch.Tensor, wanted: torch.Tensor) -> None:
    torch.testing.assert_close(found, wanted, rtol=1e-7, atol=1e-9 * float(wanted.abs().max()))


@pairs
def test_it_says_what_it_will_cost(name, features, workspace) -> None:
    cost = PRECONDITIONERS.get(name).cost(Vectors.of(workspace, FEATURES.get(features)), 3)
    assert cost.flops >= 0
    assert cost.bytes >= 0


@pairs
def test_it_is_used_by_name(name, features, model, train, cases) -> None:
    scores = Explainer(model, train, f"dot:{features}/{name}").scores(cases)
    assert scores.shape == (12, 45)
    assert scores.isfinite().all()


@each
def test_it_acts_on_features_that_there_are(name) -> None:
    assert PRECONDITIONERS.get(name).features in (None, *map(FEATURES.get, FEATURES.names()))


@dataclass(frozen=True)
class Doubled(Preconditioner):
    """M = 2 I, with nothing but what must be there."""

    def fit(self, vectors):
        return Half()


class Half(Inverse):
    definite = True
    description = Description(kind="half")

    def solve(self, rows):
        return rows / 2


@pytest.mark.parametrize("features", FEATURES.names())
def test_fit_solve_definite_and_description_are_enough(features, model, train, cases) -> None:
    plain = Explainer(model, train, f"dot:{features}").scores(cases)
    metric = Metric(FEATURES.get(features), SIMILARITIES.get("dot"), Doubled())
    torch.testing.assert_close(Explainer(model, train, metric).scores(cases), plain / 2)
    assert Explainer(model, train, metric).estimate(5).seconds > 0


@pytest.mark.parametrize("missing", ["solve", "definite", "description"])
def test_what_lacks_a_part_cannot_be_made(missing) -> None:
    parts = {key: value for key, value in vars(Half).items() if key in ("solve", "definite", "description")}
    lacking = type("Lacking", (Inverse,), {key: value for key, value in parts.items() if key != missing})
    with pytest.raises(TypeError, match=missing):
        lacking()

import numpy as np
import oracle
import pytest
import torch
from conftest import retrained
from spaces import gradients_of, workspace_of
from torch import nn

from precedents import (
    METRICS,
    BudgetError,
    Classifier,
    Examples,
    Explainer,
    InputError,
    InverseFisher,
    InverseHessian,
    Trial,
)
from precedents.criteria.identical_subclass import IdenticalSubclass
from precedents.criteria.model_randomization import ModelRandomization
from precedents.curvature.hessian import exact_hessian, linear_hessian
from precedents.metrics.preconditioners.hessian import hessian


class Tied(nn.Module):
    """One matrix, used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.square = nn.Linear(5, 5)
        self.head = nn.Linear(5, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.square(self.square(x).tanh()).tanh())


class Bottleneck(nn.Module):
    """A frozen layer under a trainable head."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(5, 4).requires_grad_(False)
        self.head = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x).tanh())


class Keyword(nn.Module):
    """A Linear that is called by keyword."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(5, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(input=x)


class Adapted(nn.Linear):
    """A frozen Linear with a trainable correction of low rank."""

    def __init__(self) -> None:
        super().__init__(5, 3)
        self.requires_grad_(False)
        self.down = nn.Parameter(torch.randn(2, 5))
        self.up = nn.Parameter(torch.randn(3, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) + x @ self.down.T @ self.up.T


def drawn(make, seed: int = 0) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make().double()


def dense(inverse, p: int) -> np.ndarray:
    return inverse.solve(torch.eye(p, dtype=torch.double)).numpy()


def assert_same(ours: np.ndarray, theirs: np.ndarray, atol: float = 1e-11) -> None:
    scale = np.abs(theirs).max()
    np.testing.assert_allclose(ours / scale, theirs / scale, rtol=0, atol=atol)


@pytest.mark.parametrize("fixture", ["linear", "biasless"])
def test_the_closed_form_equals_autograd(fixture, request, examples, train) -> None:
    model = request.getfixturevalue(fixture)
    ours = linear_hessian(Classifier.of(model, examples), examples).numpy()
    assert_same(ours, oracle.hessian(model, train))


@pytest.mark.parametrize("frozen", ["weight", "bias"])
def test_the_closed_form_leaves_out_what_is_frozen(frozen, examples, train) -> None:
    model = drawn(lambda: nn.Linear(5, 3))
    getattr(model, frozen).requires_grad_(False)
    ours = linear_hessian(Classifier.of(model, examples), examples).numpy()
    assert_same(ours, oracle.hessian(model, train))


def test_the_closed_form_covers_a_head_on_frozen_layers(examples, train) -> None:
    model = drawn(Bottleneck)
    classifier = Classifier.of(model, examples)
    assert classifier.only_layer == "head"
    assert_same(linear_hessian(classifier, examples).numpy(), oracle.hessian(model, train))


def test_the_closed_form_is_the_same_in_batches(linear, examples) -> None:
    classifier = Classifier.of(linear, examples)
    whole, parts = linear_hessian(classifier, examples), linear_hessian(classifier, examples, size=7)
    torch.testing.assert_close(parts, whole, rtol=1e-12, atol=1e-14)


def test_the_closed_form_refuses_a_network(classifier, examples) -> None:
    with pytest.raises(InputError, match=r"one final Linear"):
        linear_hessian(classifier, examples)


def test_the_exact_hessian_equals_double_backward(classifier, examples, model, train) -> None:
    assert_same(exact_hessian(classifier, examples).numpy(), oracle.hessian(model, train))


def test_the_exact_hessian_of_a_linear_model_is_the_closed_form(linear, examples) -> None:
    classifier = Classifier.of(linear, examples)
    ours = exact_hessian(classifier, examples)
    torch.testing.assert_close(ours, linear_hessian(classifier, examples), rtol=1e-10, atol=1e-12)


def test_the_exact_hessian_is_the_same_in_batches(classifier, examples) -> None:
    whole, parts = exact_hessian(classifier, examples), exact_hessian(classifier, examples, size=7)
    torch.testing.assert_close(parts, whole, rtol=1e-10, atol=1e-12)


def test_the_exact_hessian_sums_over_the_uses_of_a_shared_parameter(examples, train) -> None:
    model = drawn(Tied)
    assert_same(exact_hessian(Classifier.of(model, examples), examples).numpy(), oracle.hessian(model, train))


def test_the_exact_hessian_of_a_float32_model_is_computed_in_float64(examples, train) -> None:
    model = drawn(lambda: nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3)))
    ours = exact_hessian(Classifier.of(model.float(), examples), examples)
    assert_same(ours.numpy(), oracle.hessian(model.double(), train))


def test_the_exact_hessian_does_not_need_gradients_to_be_enabled(classifier, examples) -> None:
    expected = exact_hessian(classifier, examples)
    with torch.no_grad():
        assert torch.equal(exact_hessian(classifier, examples), expected)


@pytest.mark.filterwarnings("ignore::precedents.gradients.search.SlowGradientsWarning")
@pytest.mark.parametrize("make", [Keyword, Adapted])
def test_a_linear_of_another_kind_has_its_own_hessian(make, examples, train) -> None:
    model = drawn(make)
    inverse = InverseHessian(negative="keep").fit(gradients_of(workspace_of(model, examples)))
    theirs = np.linalg.inv(oracle.damped("if", model, train))
    assert_same(dense(inverse, len(theirs)), theirs, atol=1e-8)


@pytest.mark.parametrize("kind", ["auto", "exact", "gauss_newton"])
def test_every_kind_is_the_hessian_for_a_linear_model(kind, linear, examples, train) -> None:
    inverse = InverseHessian(kind=kind).fit(gradients_of(workspace_of(linear, examples)))
    assert_same(dense(inverse, 18), np.linalg.inv(oracle.damped("if", linear, train)), atol=1e-9)


def test_a_linear_model_too_wide_for_its_hessian_is_inverted_in_the_dual() -> None:
    model = drawn(lambda: nn.Linear(300, 3))
    examples = Examples.of((torch.randn(6, 300, dtype=torch.double), torch.arange(6) % 3))
    within, beyond = (Classifier.of(model, examples, memory=memory) for memory in ("2 GB", "5 MB"))
    whole = InverseHessian().fit(gradients_of(workspace_of(within, examples)))
    dual = InverseHessian().fit(gradients_of(workspace_of(beyond, examples)))
    assert (whole.description.kind, dual.description.kind) == ("exact Hessian", "Gauss-Newton")
    rows = torch.randn(4, 903, dtype=torch.double)
    assert_same(dual.solve(rows).numpy(), whole.solve(rows).numpy(), atol=1e-9)


def test_gauss_newton_is_its_definition(workspace, model, train) -> None:
    matrix = oracle.gauss_newton(model, train)
    matrix += 0.01 * np.diag(matrix).mean() * np.eye(89)
    inverse = InverseHessian(kind="gauss_newton", damping=0.01).fit(gradients_of(workspace))
    assert_same(dense(inverse, 89), np.linalg.inv(matrix), atol=1e-9)


def test_gauss_newton_is_the_true_fisher(workspace) -> None:
    ours, theirs = (
        InverseHessian(kind="gauss_newton").fit(gradients_of(workspace)),
        InverseFisher(kind="true").fit(gradients_of(workspace)),
    )
    assert_same(dense(ours, 89), dense(theirs, 89))


def test_auto_is_exact_for_a_small_network(workspace) -> None:
    assert hessian.fit(gradients_of(workspace)).description.kind.startswith("exact Hessian")


def test_auto_is_gauss_newton_beyond_two_thousand_parameters(examples) -> None:
    wide = drawn(lambda: nn.Sequential(nn.Linear(5, 250), nn.Tanh(), nn.Linear(250, 3)))
    inverse = hessian.fit(gradients_of(workspace_of(wide, examples)))
    assert inverse.description.kind == "Gauss-Newton"


def test_keep_inverts_the_whole_matrix(workspace, model, train) -> None:
    inverse = InverseHessian(negative="keep").fit(gradients_of(workspace))
    assert not inverse.definite
    assert_same(dense(inverse, 89), np.linalg.inv(oracle.damped("if", model, train)), atol=1e-9)


def test_drop_inverts_the_positive_part(workspace, model, train) -> None:
    values, vectors = np.linalg.eigh(oracle.damped("if", model, train))
    weights = np.divide(1, values, where=values > 0, out=np.zeros(89))
    inverse = InverseHessian(negative="drop").fit(gradients_of(workspace))
    assert inverse.definite
    assert_same(dense(inverse, 89), vectors * weights @ vectors.T, atol=1e-9)


def test_the_description_is_right_against_the_dense_matrix(workspace, model, train) -> None:
    said = InverseHessian(negative="keep").fit(gradients_of(workspace)).description
    matrix = oracle.hessian(model, train)
    eigenvalues = np.linalg.eigvalsh(oracle.damped("if", model, train))
    assert (said.kind, said.size, said.definite) == ("exact Hessian", 89, False)
    assert said.damping == pytest.approx(1e-3 * np.abs(np.diag(matrix)).mean())
    assert said.smallest == pytest.approx(eigenvalues[0])
    assert said.largest == pytest.approx(eigenvalues[-1])
    assert said.negative == (eigenvalues < 0).sum() > 0


def test_damping_is_relative_to_the_absolute_diagonal(examples, train) -> None:
    untrained = drawn(lambda: nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3)))
    diagonal = np.diag(oracle.hessian(untrained, train))
    assert diagonal.min() < 0
    inverse = hessian.fit(gradients_of(workspace_of(untrained, examples)))
    assert inverse.description.damping == pytest.approx(1e-3 * np.abs(diagonal).mean())


@pytest.mark.parametrize("damping", [1e-1, 1e-5])
def test_the_matrix_is_computed_once_for_all_dampings(damping, workspace) -> None:
    first = hessian.fit(gradients_of(workspace))
    assert InverseHessian(damping=damping).fit(gradients_of(workspace)).vectors is first.vectors


def test_a_model_that_vmap_cannot_differentiate_has_its_exact_hessian(train) -> None:
    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.memory = nn.LSTM(1, 3, batch_first=True)
            self.head = nn.Linear(3, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(self.memory(x[:, :, None])[0][:, -1])

    model, few = drawn(Recurrent), (train[0][:6], train[1][:6])
    examples = Examples.of(few)
    ours = exact_hessian(Classifier.of(model, examples), examples)
    assert_same(ours.numpy(), oracle.hessian(model, few))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kind": "full"}, "kind is 'full'. Use one of: auto, exact, gauss_newton"),
        ({"negative": "abs"}, "negative is 'abs'. Use one of: drop, keep"),
    ],
)
def test_an_unknown_setting_is_refused_with_the_known_ones(settings, message) -> None:
    with pytest.raises(InputError, match=message):
        InverseHessian(**settings)


@pytest.mark.parametrize("kind", ["exact", "gauss_newton"])
def test_damping_of_zero_is_refused(kind, model, train, cases) -> None:
    with pytest.raises(InputError, match=r"must be positive"):
        Explainer(model, train, f"dot:gradient/hessian(kind={kind}, damping=0)").scores(cases)


@pytest.mark.filterwarnings("ignore::precedents.gradients.search.SlowGradientsWarning")
def test_a_hessian_that_does_not_fit_in_memory_is_refused_with_what_to_use(train) -> None:
    class Wide(nn.Module):
        """Two million parameters: 128 TB."""

        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Parameter(torch.zeros(2_000_000, dtype=torch.double))
            self.head = nn.Linear(5, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(x) + self.table[0]

    explainer = Explainer(drawn(Wide), (train[0][:2], train[1][:2]), "dot:gradient/hessian(kind=exact)")
    with pytest.raises(InputError, match=r"exact Hessian of 2000018 parameters needs .*ekfac"):
        explainer.scores(train[0][:1])


def test_auto_takes_the_first_kind_that_the_budget_allows(model, train) -> None:
    examples = Examples.of(train)
    chosen = []
    for memory in ("1 GB", "200 KB", "1 KB"):
        workspace = workspace_of(model, examples, memory=memory)
        chosen.append(InverseHessian().chosen(workspace))
    assert chosen[0] == "exact"
    assert chosen[-1] == "ekfac"


def test_auto_stays_what_it_was_when_less_memory_is_free(model, train, test, monkeypatch) -> None:
    trial = Trial.of(model, train, test, retrain=retrained)
    first = trial.relevance(METRICS["cos_if"]).metric
    trial.scores(first)
    trial.merged(0)
    monkeypatch.setattr("precedents.runtime.budget.available", lambda: 2_000)
    assert first.preconditioner.kind == trial.relevance(METRICS["dot_if"]).metric.preconditioner.kind == "exact"
    random = trial.randomized(0, "own")
    assert random.relevance(METRICS["cos_if"]).metric.preconditioner.kind == "ekfac"
    assert random.relevance(first).metric == first
    for law in (ModelRandomization(), IdenticalSubclass()):  # which ask for this one
        with pytest.raises(BudgetError, match="The exact Hessian of"):
            law(trial, METRICS["cos_if"])


def test_hessian_by_ekfac_says_that_it_is(model, train) -> None:
    examples = Examples.of(train)
    inverse = InverseHessian(kind="ekfac").fit(gradients_of(workspace_of(model, examples)))
    assert inverse.description.kind == "EK-FAC"

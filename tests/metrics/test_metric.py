import numpy as np
import oracle
import pytest
import torch
from torch.nn.functional import cosine_similarity

from precedents import (
    METRICS,
    Explainer,
    IndefiniteKernelError,
    InputError,
    InverseFisher,
    InverseHessian,
    Metric,
    UnknownNameError,
)
from precedents.metrics.features.gradient import gradient
from precedents.metrics.similarities.cosine import cosine
from precedents.runtime import budget as memory

METRICS_ON_INPUTS = [name for name in METRICS if name.endswith("_x")]


def scores(name, model, train, cases):
    return Explainer(model, train, name).scores(cases)


def test_the_hessian_of_the_world_is_indefinite(model, train) -> None:
    eigenvalues = np.linalg.eigvalsh(oracle.damped("if", model, train))
    assert eigenvalues[0] < -1e-2
    assert eigenvalues[-1] > 1


@pytest.mark.parametrize("name", METRICS)
def test_metric_equals_its_formula(name, model, train, cases) -> None:
    ours = scores(name, model, train, cases).numpy()
    theirs = oracle.relevance(name, model, train, cases)
    scale = np.abs(theirs).max()
    np.testing.assert_allclose(ours / scale, theirs / scale, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", [name for name in METRICS if not name.endswith(("_last", "_all"))])
def test_metric_of_a_linear_model_equals_its_formula(name, linear, train, cases) -> None:
    ours = scores(name, linear, train, cases).numpy()
    theirs = oracle.relevance(name, linear, train, cases)
    scale = np.abs(theirs).max()
    np.testing.assert_allclose(ours / scale, theirs / scale, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", METRICS)
def test_scores_are_float64_with_cases_as_rows(name, model, train, cases) -> None:
    matrix = scores(name, model, train, cases)
    assert matrix.shape == (12, 45)
    assert matrix.dtype == torch.double


def test_gc_of_a_biasless_linear_model_is_cosine_of_residuals_times_cosine_of_inputs(
    biasless, train, cases
) -> None:
    def residual(x, y):
        return biasless(x).softmax(dim=1).detach() - torch.eye(3, dtype=torch.double)[y]

    case, own = residual(cases, biasless(cases).argmax(dim=1)), residual(*train)
    expected = cosine_similarity(case[:, None], own[None], dim=2)
    expected *= cosine_similarity(cases[:, None], train[0][None], dim=2)
    torch.testing.assert_close(scores("GC", biasless, train, cases), expected, rtol=1e-10, atol=1e-12)


KERNELS = {
    "cos_x": "dot_x",
    "cos_last": "dot_last",
    "cos_all": "dot_all",
    "cos_grad": "dot_grad",
    "cos_if": "dot:gradient/hessian(negative=drop)",
    "cos_fisher": "dot_fisher",
}


@pytest.mark.parametrize(("cos", "dot"), KERNELS.items())
def test_cosine_is_the_normalized_dot_of_the_same_kernel(cos, dot, model, train) -> None:
    gram = Explainer(model, train, dot).scores(train[0], labels=train[1])
    lengths = gram.diagonal().sqrt()
    ours = Explainer(model, train, cos).scores(train[0], labels=train[1])
    torch.testing.assert_close(ours, gram / lengths[:, None] / lengths, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(("cos", "dot"), KERNELS.items())
def test_l2_is_minus_the_squared_distance_of_the_same_kernel(cos, dot, model, train) -> None:
    gram = Explainer(model, train, dot).scores(train[0], labels=train[1])
    squares = gram.diagonal()
    ours = Explainer(model, train, cos.replace("cos", "l2")).scores(train[0], labels=train[1])
    expected = 2 * gram - squares[:, None] - squares
    torch.testing.assert_close(ours, expected, rtol=1e-9, atol=1e-9 * float(squares.max()))


def test_rif_of_a_linear_model_is_the_cosine_of_if(linear, train) -> None:
    gram = Explainer(linear, train, "IF").scores(train[0], labels=train[1])
    lengths = gram.diagonal().sqrt()
    ours = Explainer(linear, train, "RIF").scores(train[0], labels=train[1])
    torch.testing.assert_close(ours, gram / lengths[:, None] / lengths, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_a_metric_is_read_back_from_its_text(metric) -> None:
    assert Metric.read(str(metric)) == metric


@pytest.mark.parametrize(
    "preconditioner",
    [
        InverseHessian(kind="exact", negative="keep", damping=0.01),
        InverseHessian(kind="gauss_newton"),
        InverseHessian(damping=1e-10),
        InverseFisher(kind="true", damping=0.5),
        InverseFisher(kind="mean_gradient"),
    ],
    ids=str,
)
def test_settings_are_read_back_from_the_text(preconditioner) -> None:
    metric = Metric(gradient, cosine, preconditioner)
    assert Metric.read(str(metric)) == metric


def test_the_text_of_a_metric_names_the_settings_that_differ() -> None:
    metric = Metric(gradient, cosine, InverseHessian(negative="keep", damping=0.01))
    assert str(metric) == "cosine:gradient/hessian(negative=keep, damping=0.01)"


def test_the_text_of_a_plain_metric_has_no_preconditioner() -> None:
    assert str(METRICS["cos_grad"]) == "cosine:gradient"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cosine", "'cosine' is no metric. Write similarity:features/preconditioner"),
        ("cosin:gradient", "No similarity is named 'cosin'. Did you mean 'cosine'"),
        ("cosine:gradients", "No feature map is named 'gradients'. Did you mean 'gradient'"),
        ("cosine:gradient/hesian", "No preconditioner is named 'hesian'. Did you mean 'hessian'"),
        ("cosine:gradient/hessian(dampin=1)", "Did you mean 'damping'"),
        ("cosine:gradient/hessian(damping=small)", "damping='small' is no float"),
        ("cosine:gradient/hessian(kind=full)", "kind is 'full'. Use one of: auto, exact, gauss_newton"),
        ("cosine:gradient/hessian(", "is no preconditioner"),
        ("cosine:", "'' is no feature map"),
    ],
)
def test_a_text_that_writes_no_metric_is_refused_with_what_to_write(text, message) -> None:
    with pytest.raises(InputError) as caught:
        Metric.read(text)
    assert message in str(caught.value)


def test_an_unknown_part_lists_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match=r"Known: .*cosine, dot, l2"):
        Metric.read("jaccard:gradient")


@pytest.mark.parametrize("preconditioner", [InverseHessian(), InverseFisher()], ids=["hessian", "fisher"])
@pytest.mark.parametrize("features", ["inputs", "last_hidden", "all_hidden"])
def test_curvature_acts_on_gradients_only(features, preconditioner) -> None:
    plain = Metric.read(f"cosine:{features}")
    with pytest.raises(InputError, match=rf"acts on the features gradient, not on {features}"):
        Metric(plain.features, plain.similarity, preconditioner)


@pytest.mark.parametrize("similarity", ["cosine", "l2"])
def test_lengths_under_an_indefinite_inverse_are_refused(similarity, model, train, cases) -> None:
    explainer = Explainer(model, train, f"{similarity}:gradient/hessian(negative=keep)")
    with pytest.raises(IndefiniteKernelError, match=r"indefinite.*negative='drop'"):
        explainer.scores(cases)


def test_lengths_under_a_definite_inverse_are_allowed_though_negatives_are_kept(linear, train, cases) -> None:
    kept = Explainer(linear, train, "cosine:gradient/hessian(negative=keep)").scores(cases)
    torch.testing.assert_close(kept, Explainer(linear, train, "cos_if").scores(cases))


@pytest.mark.parametrize("name", METRICS)
def test_one_case_at_a_time_gives_the_scores_of_the_batch(name, model, train, cases) -> None:
    explainer = Explainer(model, train, name)
    batch = explainer.scores(cases)
    single = torch.cat([explainer.scores(x) for x in cases])
    torch.testing.assert_close(single, batch, rtol=1e-10, atol=1e-10 * float(batch.abs().max()))


@pytest.mark.parametrize("name", METRICS)
def test_a_permuted_training_set_permutes_the_scores(name, model, train, cases) -> None:
    order = torch.randperm(45, generator=torch.Generator().manual_seed(3))
    straight = scores(name, model, train, cases)
    permuted = scores(name, model, (train[0][order], train[1][order]), cases)
    scale = float(straight.abs().max())
    torch.testing.assert_close(permuted, straight[:, order], rtol=1e-10, atol=1e-10 * scale)


@pytest.mark.parametrize("name", METRICS)
def test_the_number_of_threads_changes_nothing(name, model, train, cases) -> None:
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = scores(name, model, train, cases)
        torch.set_num_threads(2)
        two = scores(name, model, train, cases)
    finally:
        torch.set_num_threads(threads)
    torch.testing.assert_close(one, two, rtol=1e-10, atol=1e-10 * float(one.abs().max()))


@pytest.mark.parametrize("numbers", [1, 200, 1000])
@pytest.mark.parametrize("name", METRICS)
def test_the_size_of_blocks_changes_nothing(name, numbers, model, train, cases, monkeypatch) -> None:
    whole = scores(name, model, train, cases)
    monkeypatch.setattr(memory, "BLOCK", 8 * numbers)
    monkeypatch.setattr(memory, "ENOUGH", 1)
    blocks = scores(name, model, train, cases)
    torch.testing.assert_close(blocks, whole, rtol=1e-10, atol=1e-10 * float(whole.abs().max()))


def test_small_blocks_are_many(model, train, cases, monkeypatch) -> None:
    monkeypatch.setattr(memory, "BLOCK", 8 * 200)
    monkeypatch.setattr(memory, "ENOUGH", 1)
    explainer = Explainer(model, train, "cos_grad")
    found = list(explainer.relevance.kernels(explainer.subject.cases(cases)))
    assert [kernel.cross.shape for kernel in found[:2]] == [(12, 2), (12, 2)]


@pytest.mark.parametrize("name", ["cos_x", "dot_last", "l2_grad"])
def test_a_small_budget_of_memory_changes_nothing(name, model, train, cases) -> None:
    whole, small = Explainer(model, train, name), Explainer(model, train, name, memory="9 KB")
    expected = whole.scores(cases)
    scale = float(expected.abs().max())
    torch.testing.assert_close(small.scores(cases), expected, rtol=1e-10, atol=1e-10 * scale)
    assert torch.equal(small.explain(cases).top.indices, whole.explain(cases).top.indices)


@pytest.mark.parametrize("name", [name for name in METRICS if name.startswith("cos")])
def test_cosines_are_within_one(name, model, train, cases) -> None:
    assert scores(name, model, train, cases).abs().max() <= 1


@pytest.mark.parametrize("name", [name for name in METRICS if name.startswith("l2")])
def test_l2_is_never_positive(name, model, train, cases) -> None:
    assert scores(name, model, train, cases).max() <= 0


def test_metrics_on_inputs_are_blind_to_the_model(model, linear, train, cases) -> None:
    for name in METRICS_ON_INPUTS:
        assert torch.equal(scores(name, model, train, cases), scores(name, linear, train, cases))


def test_a_fitted_metric_ranks_as_its_scores(model, train, cases, examples) -> None:
    relevance = METRICS["cos_fisher"].fit(model, train)
    matrix = relevance.scores(examples)
    expected = matrix.argsort(dim=1, descending=True, stable=True)[:, :7]
    assert torch.equal(relevance.top(examples, 7).indices, expected)


def test_scores_that_do_not_fit_in_memory_are_refused_before_any_work(model, examples) -> None:
    relevance = METRICS["cos_x"].fit(model, examples)
    many = examples.selected([0]).relabelled(torch.zeros(1, dtype=torch.long))
    huge = type(many)(many.source, torch.zeros(1, dtype=torch.long).expand(2**50))
    with pytest.raises(InputError, match=r"The score matrix .* needs .*fewer cases"):
        relevance.scores(huge)

"""A given loss: its derivatives, and every metric under it, are those of plain autograd."""

import pytest
import torch
from conftest import blobs
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, log_softmax, multi_margin_loss, one_hot

from precedents import Classifier, Examples, Explainer, InputError, NotApplicable, Trial, audit, judge
from precedents.classifier.loss import CrossEntropy, GivenLoss
from precedents.classifier.outputs import Outputs
from precedents.classifier.user_loss import loss_of

WEIGHT = torch.tensor([0.5, 2.0, 1.0], dtype=torch.double)
RANDOM = torch.Generator().manual_seed(0)
LOGITS, LABELS = torch.randn(9, 3, generator=RANDOM, dtype=torch.double), torch.arange(9) % 3


def focal(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross entropy less what is easy: not convex."""
    each = cross_entropy(logits, labels, reduction="none")
    return (1 - (-each).exp()) ** 2 * each


def squares(logits: Tensor, labels: Tensor) -> Tensor:
    return (logits - one_hot(labels, logits.shape[1])).square().sum(dim=1)


LOSSES = {
    "plain": nn.CrossEntropyLoss(),
    "weights": nn.CrossEntropyLoss(weight=WEIGHT.float(), reduction="sum"),
    "smoothing": nn.CrossEntropyLoss(label_smoothing=0.2),
    "both": nn.CrossEntropyLoss(weight=WEIGHT, label_smoothing=0.2, reduction="none"),
    "focal": focal,
    "squares": squares,
    "margin": nn.MultiMarginLoss(p=2),
}
TORCH = {  # the losses of single instances, by torch alone
    "plain": cross_entropy,
    "weights": lambda z, y: cross_entropy(z, y, weight=WEIGHT, reduction="sum"),
    "smoothing": lambda z, y: cross_entropy(z, y, label_smoothing=0.2),
    "both": lambda z, y: cross_entropy(z, y, weight=WEIGHT, label_smoothing=0.2, reduction="sum"),
    "focal": lambda z, y: focal(z, y).sum(),
    "squares": lambda z, y: squares(z, y).sum(),
    "margin": lambda z, y: multi_margin_loss(z, y, p=2),
}
STRAIGHT = "margin"  # torch has no second derivative of it
each_loss = pytest.mark.parametrize("name", LOSSES)
each_that_bends = pytest.mark.parametrize("name", [name for name in LOSSES if name != STRAIGHT])


def made(name: str):
    return loss_of(LOSSES[name], Outputs(), LOGITS)


def alone(name: str, i: int):
    return lambda z: TORCH[name](z[None], LABELS[i : i + 1])


def first(name: str, i: int) -> Tensor:
    """The derivatives of the loss of instance i, by torch alone."""
    return torch.autograd.functional.jacobian(alone(name, i), LOGITS[i])


def second(name: str, i: int) -> Tensor:
    return torch.autograd.functional.hessian(alone(name, i), LOGITS[i])


@each_loss
def test_losses_are_those_of_single_instances(name) -> None:
    wanted = torch.stack([TORCH[name](LOGITS[i : i + 1], LABELS[i : i + 1]) for i in range(9)])
    torch.testing.assert_close(made(name)(LOGITS, LABELS), wanted)


@each_loss
def test_residuals_are_the_derivatives_by_the_logits(name) -> None:
    wanted = torch.stack([first(name, i) for i in range(9)])
    torch.testing.assert_close(made(name).residuals(LOGITS, LABELS), wanted)


@each_that_bends
def test_curvature_is_the_second_derivatives_by_the_logits(name) -> None:
    wanted = torch.stack([second(name, i) for i in range(9)])
    found = torch.stack([made(name).curvature(LOGITS, LABELS, k) for k in range(3)], dim=1)
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("name", ["plain", "weights", "smoothing", "both", "squares"])
def test_roots_are_those_of_the_curvature(name) -> None:
    wanted = torch.stack([second(name, i) for i in range(9)])
    roots = made(name).roots(LOGITS, LABELS)
    assert len(roots) == made(name).rank(3)
    torch.testing.assert_close(sum(root[:, :, None] * root[:, None, :] for root in roots), wanted)


def test_a_loss_that_is_not_convex_has_no_roots() -> None:
    with pytest.raises(NotApplicable, match=r"not convex in the logits.*hessian\(kind=exact\)"):
        made("focal").roots(LOGITS, LABELS)


def test_a_loss_that_is_straight_has_no_curvature() -> None:
    loss = loss_of(lambda z, y: -z.gather(1, y[:, None])[:, 0], Outputs(), LOGITS)
    assert not any(loss.curvature(LOGITS, LABELS, k).any() for k in range(3))


def test_residuals_of_a_confident_model_keep_their_digits_under_weights() -> None:
    found = CrossEntropy(weight=(0.5, 2.0)).residuals(torch.tensor([[0.0, 60.0]]), torch.tensor([1]))
    small = 2 * torch.tensor(-60.0, dtype=torch.double).exp()
    torch.testing.assert_close(found, torch.stack([small, -small])[None], rtol=1e-12, atol=0)


# Metrics under a given loss.


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3)).double()


def vectors(model: nn.Module, name: str, inputs: Tensor, labels: Tensor) -> Tensor:
    """The gradients of single losses by plain autograd."""
    rows = []
    for x, y in zip(inputs, labels, strict=True):
        grads = torch.autograd.grad(TORCH[name](model(x[None]), y[None]), list(model.parameters()))
        rows.append(torch.cat([g.flatten() for g in grads]))
    return torch.stack(rows)


def mean_hessian(model: nn.Module, name: str, train: tuple[Tensor, Tensor]) -> Tensor:
    parameters = list(model.parameters())
    losses = [TORCH[name](model(x[None]), y[None]) for x, y in zip(*train, strict=True)]
    first = torch.autograd.grad(torch.stack(losses).mean(), parameters, create_graph=True)
    entries = torch.cat([g.flatten() for g in first])
    rows = [torch.autograd.grad(e, parameters, retain_graph=True, materialize_grads=True) for e in entries]
    return torch.stack([torch.cat([g.flatten() for g in row]) for row in rows])


def near(found: Tensor, wanted: Tensor) -> None:
    assert float((found - wanted).abs().max()) <= 1e-6 * float(wanted.abs().max())


@each_loss
@pytest.mark.parametrize("make", [network, lambda: nn.Linear(5, 3).double()], ids=["network", "linear"])
def test_scores_under_a_given_loss_equal_plain_autograd(name, make, train, cases) -> None:
    model = make()
    a = vectors(model, name, cases, model(cases).argmax(dim=1))
    b = vectors(model, name, *train)
    near(Explainer(model, train, "dot_grad", loss=LOSSES[name]).scores(cases), a @ b.T)
    if name == STRAIGHT:
        return
    hessian = mean_hessian(model, name, train)
    damped = hessian + 1e-3 * hessian.diagonal().abs().mean() * torch.eye(len(hessian), dtype=torch.double)
    influence = Explainer(model, train, "dot:gradient/hessian(kind=exact,negative=keep)", loss=LOSSES[name])
    near(influence.scores(cases), a @ torch.linalg.inv(damped) @ b.T)


@pytest.mark.parametrize("name", ["both", "squares"])
@pytest.mark.parametrize("kind", ["gauss_newton", "ekfac"])
def test_the_gauss_newton_matrix_is_of_the_given_loss(name, kind, train, cases) -> None:
    class Doubled(nn.Sequential):
        """Linear, but no Linear gives its logits."""

        def forward(self, x: Tensor) -> Tensor:
            return 2 * super().forward(x)

    model = Doubled(nn.Linear(5, 3)).double()
    wanted = mean_hessian(model, name, train)  # of a linear model it is the Gauss-Newton matrix
    explainer = Explainer(model, train, f"dot:gradient/hessian(kind={kind})", loss=LOSSES[name])
    inverse = explainer.relevance.inverse
    diagonal = wanted.diagonal().mean()
    if kind == "ekfac":  # an approximation with the exact trace
        assert float(inverse.values.sum()) == pytest.approx(float(wanted.trace()))
        return
    solved = inverse.solve(wanted + 1e-3 * diagonal * torch.eye(len(wanted), dtype=torch.double))
    torch.testing.assert_close(solved, torch.eye(len(wanted), dtype=torch.double), rtol=1e-5, atol=1e-5)


@each_loss
def test_grad_cos_of_a_last_layer_has_its_two_parts(name, train, cases) -> None:
    found = Explainer(nn.Linear(5, 3).double(), train, loss=LOSSES[name]).explain(cases, k=4)
    torch.testing.assert_close(found.parts.residual * found.parts.feature, found.top.scores)


@pytest.mark.parametrize("metric", ["cos_if", "dot:gradient/lanczos", "dot:gradient/ekfac"])
def test_a_loss_without_second_derivatives_has_no_hessian(metric, train, cases) -> None:
    with pytest.raises(NotApplicable, match=r"cannot be differentiated twice.*Use a metric without a Hessian"):
        Explainer(network(), train, metric, loss=LOSSES[STRAIGHT]).scores(cases)


def test_the_true_fisher_needs_a_likelihood(train, cases) -> None:
    metric = "dot:gradient/fisher(kind=true)"
    with pytest.raises(NotApplicable, match=r"belongs to a likelihood.*fisher\(kind=empirical\)"):
        Explainer(network(), train, metric, loss=LOSSES["smoothing"]).scores(cases)
    model = network()
    plain = Explainer(model, train, metric).scores(cases)
    assert torch.equal(Explainer(model, train, metric, loss=nn.CrossEntropyLoss()).scores(cases), plain)


def test_log_probabilities_explain_as_the_logits_they_come_from(train, cases) -> None:
    model = network()
    logs = nn.Sequential(model, nn.LogSoftmax(dim=1))
    for metric in ("dot_grad", "dot_if", "dot:gradient/hessian(kind=gauss_newton)"):
        wanted = Explainer(model, train, metric).scores(cases)
        for loss in (None, nn.NLLLoss()):
            near(Explainer(logs, train, metric, loss=loss).scores(cases), wanted)
    weighed = Explainer(logs, train, "dot_grad", loss=nn.NLLLoss(weight=WEIGHT)).scores(cases)
    near(weighed, Explainer(model, train, "dot_grad", loss=LOSSES["weights"]).scores(cases))


def test_probabilities_are_refused_unless_the_loss_is_given(train, cases) -> None:
    model = network()
    probabilities = nn.Sequential(model, nn.Softmax(dim=1))
    with pytest.raises(InputError, match=r"returns probabilities.*Leave the softmax out.*nll_loss\(p.log\(\)"):
        Explainer(probabilities, train)
    given = Explainer(
        probabilities,
        train,
        "dot_grad",
        loss=lambda p, y: nn.functional.nll_loss(p.log(), y, reduction="none"),
    )
    near(given.scores(cases), Explainer(model, train, "dot_grad").scores(cases))
    Explainer(probabilities, train, loss=nn.CrossEntropyLoss())


def test_positive_weights_of_a_binary_loss_are_weights_of_its_classes() -> None:
    (x, y), model = blobs(20, seed=1), nn.Linear(5, 1).double()
    y = (y > 0).long()
    loss = nn.BCEWithLogitsLoss(pos_weight=torch.tensor([3.0]))
    given = nn.BCEWithLogitsLoss(pos_weight=torch.tensor([3.0], dtype=torch.double))
    rows = []
    for each, label in zip(x, y, strict=True):
        grads = torch.autograd.grad(given(model(each), label.double()[None]), list(model.parameters()))
        rows.append(torch.cat([g.flatten() for g in grads]))
    found = Explainer(model, (x, y), "dot_grad", loss=loss).scores(x[:4], labels=y[:4])
    near(found, torch.stack(rows[:4]) @ torch.stack(rows).T)


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (nn.CrossEntropyLoss(weight=WEIGHT[:2]), "2 weights, but the model has 3 outputs"),
        (nn.NLLLoss(), r"takes log-probabilities.*CrossEntropyLoss"),
        (nn.BCEWithLogitsLoss(), "3 outputs decides on 3 labels.*multi-label.*CrossEntropyLoss"),
        (nn.BCELoss(), "multi-label"),
        (cross_entropy, r"gives \(\) for 2 instances.*reduction='none'"),
        (lambda z, y: z, r"gives \(2, 3\) for 2 instances"),
        (lambda z, y: z[:, 0] - z.mean(), "depends on the other instances"),
        (lambda z: z, "cannot be computed.*logits .b, classes."),
        ("cross entropy", "The loss is a str"),
    ],
    ids=["weights", "nll", "bce", "bce of p", "mean", "matrix", "mixed", "one argument", "text"],
)
def test_a_loss_that_does_not_fit_is_refused(loss, message, train) -> None:
    with pytest.raises(InputError, match=message):
        Explainer(network(), train, loss=loss)


def test_classes_need_outputs_of_their_own() -> None:
    x, y = blobs(8, seed=1)
    with pytest.raises(InputError, match=r"CrossEntropyLoss needs an output for each class.*BCEWithLogitsLoss"):
        Explainer(nn.Linear(5, 1).double(), (x, y % 2), loss=nn.CrossEntropyLoss())


def test_weights_for_several_outputs_do_not_fit_one() -> None:
    x, y = blobs(8, seed=1)
    with pytest.raises(InputError, match="weights for several outputs"):
        Explainer(nn.Linear(5, 1).double(), (x, y % 2), loss=nn.BCEWithLogitsLoss(pos_weight=WEIGHT))


def test_a_function_that_needs_float32_gets_it(train, cases) -> None:
    weight = WEIGHT.float()
    model = network().float()
    single = (train[0].float(), train[1])

    def loss(logits: Tensor, labels: Tensor) -> Tensor:
        return cross_entropy(logits, labels, weight=weight, reduction="none")

    found = Explainer(model, single, loss=loss)
    assert found.relevance.workspace.classifier.loss.precision == torch.float32
    wanted = Explainer(model, single, loss=nn.CrossEntropyLoss(weight)).scores(cases)
    torch.testing.assert_close(found.scores(cases), wanted, rtol=1e-4, atol=1e-5)


def test_the_loss_goes_with_the_model_through_trials(train, test) -> None:
    model = network()
    trial = Trial.of(model, train, test, loss=LOSSES["both"], fresh=lambda seed: network())
    assert trial.workspace.classifier.loss == CrossEntropy(tuple(WEIGHT.tolist()), 0.2)
    assert trial.randomized(0, "own").workspace.classifier.loss == trial.workspace.classifier.loss
    found = audit(model, train, test, metrics=["cos_grad"], criteria=["identical_class"], loss=LOSSES["both"])
    assert found.scope.facts["loss"] == "cross entropy with weight=[0.5, 2.0, 1.0], label_smoothing=0.2"


def test_weights_have_no_meaning_for_merged_classes(train, test) -> None:
    def retrain(merged: Examples, seed: int) -> nn.Module:
        return nn.Linear(5, 2).double()

    weighed = Trial.of(network(), train, test, retrain=retrain, loss=LOSSES["weights"])
    with pytest.raises(NotApplicable, match="no weights for merged ones"):
        weighed.merged(0)
    smooth = Trial.of(network(), train, test, retrain=retrain, loss=LOSSES["smoothing"])
    assert smooth.merged(0).workspace.classifier.loss == CrossEntropy(label_smoothing=0.2)
    assert judge(smooth, ["cos_grad"], ["identical_subclass"]).outcomes


def test_a_given_function_says_that_it_is_given() -> None:
    assert str(GivenLoss(focal, torch.double, torch.device("cpu"))) == "given"
    assert str(CrossEntropy()) == "cross entropy"


def test_the_loss_of_a_classifier_can_be_given_by_hand(train) -> None:
    examples = Examples.of(train)
    model = Classifier.of(
        network(), examples, loss=lambda z, y: -log_softmax(z, dim=1).gather(1, y[:, None])[:, 0]
    )
    plain = Classifier.of(model.module, examples)
    logits = model.logits(train[0])
    torch.testing.assert_close(model.loss.residuals(logits, train[1]), plain.loss.residuals(logits, train[1]))

import pytest
import torch
from spaces import gradients_of, workspace_of

from precedents import Classifier, Examples, InputError
from precedents.curvature.gram import gradient_gram
from precedents.gradients.gradients import loss_gradients
from precedents.metrics.vectors import Question


def gradients(model, train) -> torch.Tensor:
    return loss_gradients(model, train.take(range(len(train)))).dense()


def world(model, train, memory=None) -> tuple[Classifier, Examples]:
    train = Examples.of(train)
    return Classifier.of(model, train, memory=memory), train


def test_gram_is_the_product_of_gradients(model, train) -> None:
    classifier, examples = world(model, train)
    g = gradients(classifier, examples)
    torch.testing.assert_close(gradient_gram(classifier, examples), g @ g.T)


def test_gram_by_slices_of_parameters_is_the_same(model, train) -> None:
    whole, examples = world(model, train)
    n = len(examples)
    sliced, _ = world(model, train, memory=2 * 8 * n * n + 8 * 2 * n * 10)  # ten parameters at a time
    torch.testing.assert_close(gradient_gram(sliced, examples), gradient_gram(whole, examples))


def test_gram_that_cannot_fit_is_refused_before_work(model, train) -> None:
    small, examples = world(model, train, memory=1000)
    with pytest.raises(InputError, match=r"Gram matrix of .* needs .* budget"):
        gradient_gram(small, examples)


def test_dual_kernels_equal_solving_row_by_row(model, train, test) -> None:
    from precedents import InverseFisher

    classifier, examples = world(model, train)
    workspace = workspace_of(classifier, examples)
    asked = Examples.of(test)
    inverse = InverseFisher().fit(gradients_of(workspace))
    (kernel,) = inverse.kernels(Question(gradients_of(workspace), asked))
    a, b = gradients(classifier, asked), gradients(classifier, examples)
    torch.testing.assert_close(kernel.cross, inverse.solve(a) @ b.T, rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(kernel.case_sq, (inverse.solve(a) * a).sum(dim=1), rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(kernel.train_sq, (inverse.solve(b) * b).sum(dim=1), rtol=1e-7, atol=1e-9)

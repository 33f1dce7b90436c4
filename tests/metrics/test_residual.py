"""The residual is that of the model's own loss, also where the model is sure of itself."""

import pytest
import torch
from torch import nn

from precedents import Classifier, Explainer
from precedents.metrics.features.residual import residual

LOSSES = {
    "none": None,
    "smoothing": nn.CrossEntropyLoss(label_smoothing=0.3),
    "weights": nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 5.0], dtype=torch.double)),
    "function": lambda logits, labels: nn.functional.cross_entropy(logits / 2, labels, reduction="none"),
}


def sure(linear: nn.Linear, times: float) -> nn.Linear:
    """The model with all its weights so many times as large."""
    copy = nn.Linear(5, 3).double()
    copy.load_state_dict({name: times * value for name, value in linear.state_dict().items()})
    return copy


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("times", [1, 60])
def test_it_is_the_derivative_of_the_loss_by_the_logits(loss, times, linear, examples) -> None:
    model = Classifier.of(sure(linear, times), examples, loss=LOSSES[loss])
    batch = examples.take(range(45))
    wanted = model.loss.residuals(model.finite_logits(batch), batch.labels)
    assert torch.equal(residual(model, batch), wanted)


def test_with_smoothing_it_is_what_autograd_gives(linear, examples) -> None:
    model, batch = Classifier.of(linear, examples, loss=LOSSES["smoothing"]), examples.take(range(45))
    logits = model.finite_logits(batch).requires_grad_()
    LOSSES["smoothing"](logits, batch.labels).backward()
    torch.testing.assert_close(residual(model, batch), 45 * logits.grad, rtol=1e-10, atol=1e-12)


def test_it_does_not_cancel_where_the_model_is_sure(linear, train) -> None:
    """The entry of the label is minus the sum of the others, which softmax - onehot rounds to zero."""
    model = sure(linear, 60)
    logits = model(train[0]).detach()
    right = (logits.argmax(dim=1) == train[1]) & (logits.softmax(dim=1).amax(dim=1) == 1)
    assert right.sum() > 5
    own = Explainer(model, train, "cosine:residual").scores(train[0][right], labels=train[1][right])
    others = logits[right].clone().scatter(1, train[1][right][:, None], -torch.inf)
    shares = torch.exp(others - others.amax(dim=1, keepdim=True))
    wanted = shares.scatter(1, train[1][right][:, None], -shares.sum(dim=1, keepdim=True))
    unit = wanted / wanted.norm(dim=1, keepdim=True)
    found = own[:, right.nonzero().flatten()]
    torch.testing.assert_close(found, unit @ unit.T, rtol=0, atol=1e-9)

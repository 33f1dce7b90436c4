"""A backward pass from logits: the bits of torch's own, without what torch imports for it."""

import subprocess
import sys

import torch
from torch import nn

from precedents.gradients.recording import pulled_back

FIRST = """
import sys
import torch
import precedents as pr

torch.manual_seed(0)
x, y = torch.rand(9, 1, 6, 6), torch.arange(9) % 2
layers = torch.nn.Conv2d(1, 2, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(32, 2)
model = torch.nn.Sequential(*layers)
pr.Explainer(model, (x, y)).explain(x[:2])
print("sympy" in sys.modules)
"""


def test_gradients_have_the_bits_of_those_by_grad_outputs() -> None:
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3)), torch.randn(4, 5)
    cotangent, parameters = torch.randn(4, 3), list(model.parameters())
    truth = torch.autograd.grad(model(x), parameters, cotangent)
    with torch.inference_mode():
        inferred = cotangent.clone()
    for given in (cotangent, inferred):
        logits = model(x)
        with torch.no_grad():
            found = pulled_back(logits, parameters, given)
        assert all(torch.equal(one, other) for one, other in zip(found, truth, strict=True))


def test_infinite_logits_leave_gradients_alone() -> None:
    weight = torch.ones(2, requires_grad=True)
    logits = weight * torch.tensor([torch.inf, 3.0])
    (found,) = pulled_back(logits, [weight], torch.tensor([0.0, 2.0]))
    assert found[1] == 6


def test_a_first_explanation_does_not_import_symbolic_shapes() -> None:
    ended = subprocess.run([sys.executable, "-c", FIRST], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "False"

"""Whatever a module returns, its scores are those of plain autograd, one instance at a time."""

from collections import OrderedDict
from dataclasses import dataclass
from types import SimpleNamespace
from typing import NamedTuple

import pytest
import torch
from conftest import blobs
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from precedents import Classifier, Examples, Explainer, InputError, Trial, UnknownNameError, audit, judge
from precedents.classifier.outputs import Outputs, outputs_of


class Named(NamedTuple):
    features: Tensor
    logits: Tensor


class ModelOutput(OrderedDict):
    """A mapping with attributes, as transformers have it."""

    def __getattr__(self, name: str) -> Tensor:
        return self[name]


@dataclass
class Answer:
    loss: Tensor | None
    logits: Tensor


class Returning(nn.Module):
    """A small network; `form` makes what it returns of its features and its logits."""

    def __init__(self, form, outputs: int = 3) -> None:
        super().__init__()
        self.body, self.head, self.form = nn.Linear(5, 6), nn.Linear(6, outputs), form

    def forward(self, x: Tensor):
        h = self.body(x).tanh()
        return self.form(h, self.head(h))


class Doubled(nn.Module):
    def forward(self, z: Tensor) -> Tensor:
        return 2 * z


def gradients(model: nn.Module, loss, inputs: Tensor, labels) -> list[Tensor]:
    """Of each instance's loss, by plain autograd."""
    return [gradient(model, loss(model, x, int(y))) for x, y in zip(inputs, labels, strict=True)]


def world(form, outputs: int = 3) -> nn.Module:
    return Returning(form, outputs).double()


def gradient(model: nn.Module, loss: Tensor) -> Tensor:
    return torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(model.parameters()))])


def cosines(cases: list[Tensor], train: list[Tensor]) -> Tensor:
    a, b = torch.stack(cases), torch.stack(train)
    return (a @ b.T) / (a.norm(dim=1)[:, None] * b.norm(dim=1))


def several_loss(model: nn.Module, x: Tensor, y: int) -> Tensor:
    return cross_entropy(model(x[None]), torch.tensor([y]))


FORMS = {
    "tensor": lambda h, z: z,
    "tuple": lambda h, z: (z, (h, h)),
    "loss first": lambda h, z: (z.sum(), z),
    "list": lambda h, z: [z, None],
    "dict": lambda h, z: {"logits": z, "hidden": h},
    "named tuple": lambda h, z: Named(h, z),
    "model output": lambda h, z: ModelOutput(loss=z.sum(), logits=z, hidden=h),
    "dataclass": lambda h, z: Answer(None, z),
    "object": lambda h, z: SimpleNamespace(logits=z, hidden=h),
    "squeezed": lambda h, z: z.squeeze(),
    "squeezed in a dict": lambda h, z: {"logits": z.squeeze(), "hidden": h},
    "one of a kind": lambda h, z: {"score": z, "norm": h.norm(dim=1)},
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_logits_are_found_in_whatever_is_returned(form, train, cases) -> None:
    model = world(form)
    plain = Returning(FORMS["tensor"]).double()
    plain.load_state_dict(model.state_dict())
    found = Explainer(model, train).scores(cases)
    predicted = plain(cases).argmax(dim=1)
    wanted = cosines(
        [
            gradient(plain, cross_entropy(plain(x[None]), y[None]))
            for x, y in zip(cases, predicted, strict=True)
        ],
        [gradient(plain, cross_entropy(plain(x[None]), y[None])) for x, y in zip(*train, strict=True)],
    )
    torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("place", ["second", "first"])
def test_one_of_several_outputs_can_be_named(place, train, cases) -> None:
    model = world(lambda h, z: {"first": z, "second": -z})
    sign = 1 if place == "first" else -1
    alone = Returning(lambda h, z: sign * z).double()
    alone.load_state_dict(model.state_dict())
    found = Explainer(model, train, output=place).scores(cases)
    assert torch.equal(found, Explainer(alone, train).scores(cases))


@pytest.mark.parametrize(
    ("form", "output", "message"),
    [
        (lambda h, z: (h, z), None, r"a tuple with 0: \(2, 6\), 1: \(2, 3\): .* could be 0 or 1.*output=0"),
        (lambda h, z: {"a": z, "b": z}, None, r"could be 'a' or 'b'. Say which: output='a'"),
        (lambda h, z: {"a": h[None], "b": None}, None, r"returns a dict with 'a': \(1, 2, 6\) for 2"),
        (lambda h, z: None, None, r"returns a NoneType without tensors for 2 instance\(s\)"),
        (lambda h, z: z.argmax(dim=1), None, r"returns \(2,\) for 2 instance.*returns logits"),
        (lambda h, z: z[:, :0], None, r"returns \(2, 0\) for 2 instance"),
        (
            lambda h, z: z[:, None].expand(-1, 7, -1),
            None,
            r"each of 7 positions.*classification head",
        ),
        (lambda h, z: {"logits": z[:, None]}, None, r"each of 1 positions"),
        (lambda h, z: z, 0, r"output is 0, but the model returns one tensor. Leave output out"),
    ],
)
def test_what_has_no_logits_is_refused_with_what_it_has(form, output, message, train) -> None:
    with pytest.raises(InputError, match=message):
        Explainer(world(form), train, output=output)


@pytest.mark.parametrize(
    ("form", "message"),
    [
        (lambda h, z: z if len(z) > 1 else z[..., None], r"none of them alone.*returns \(1, 3, 1\)"),
        (lambda h, z: z[h.squeeze().argmax(dim=1) >= 0], r"none of them alone.*IndexError"),
    ],
)
def test_what_fails_for_one_instance_alone_is_said(form, message, train) -> None:
    with pytest.raises(InputError, match=message):
        Explainer(world(form), train)


def test_an_unknown_output_suggests_the_nearest(train) -> None:
    with pytest.raises(UnknownNameError, match=r"No output of the model is named 'logit'. Did you mean"):
        Explainer(world(FORMS["dict"]), train, output="logit")


def test_an_output_of_another_form_than_the_first_is_refused() -> None:
    read = outputs_of({"logits": torch.zeros(2, 4)}, 2)
    for output in ({"logits": torch.zeros(3, 4)}, {"scores": torch.zeros(2, 4)}, torch.zeros(2, 4)):
        with pytest.raises(InputError, match="for 2 instance"):
            read.logits(output, 2)


# One logit for two classes.


def binary(n: int, seed: int) -> tuple[Tensor, Tensor]:
    inputs, labels = blobs(n, seed)
    return inputs, (labels > 0).long()


TWO, ASKED = binary(30, seed=1), binary(7, seed=2)[0]
SINGLE = {
    "column": lambda h, z: z,
    "vector": lambda h, z: z[:, 0],
    "squeezed": lambda h, z: z.squeeze(),
    "dict": lambda h, z: {"logits": z[:, 0]},
}


def single_loss(model: nn.Module, x: Tensor, y: int) -> Tensor:
    """The binary cross entropy of one instance, by torch."""
    output = model(x[None])
    z = output["logits"] if isinstance(output, dict) else output
    return binary_cross_entropy_with_logits(z.flatten(), torch.tensor([float(y)], dtype=torch.double))


def predictions(model: nn.Module) -> list[int]:
    return [int(single_loss(model, x, 1) < single_loss(model, x, 0)) for x in ASKED]


@pytest.mark.parametrize("form", SINGLE.values(), ids=SINGLE)
def test_one_logit_is_two_classes_and_its_loss_the_binary_cross_entropy(form) -> None:
    model = world(form, outputs=1)
    explainer = Explainer(model, TWO)
    assert explainer.explain(ASKED).predictions.tolist() == predictions(model)
    case, train = gradients(model, single_loss, ASKED, predictions(model)), gradients(model, single_loss, *TWO)
    wanted = cosines(case, train)
    torch.testing.assert_close(explainer.scores(ASKED), wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("labels", [TWO[1].double(), TWO[1][:, None].float(), TWO[1].to(torch.uint8)])
def test_labels_as_a_binary_cross_entropy_takes_them_are_class_numbers(labels) -> None:
    model = world(SINGLE["column"], outputs=1)
    found = Explainer(model, (TWO[0], labels)).scores(ASKED)
    assert torch.equal(found, Explainer(model, TWO).scores(ASKED))


def dense_hessian(model: nn.Module) -> Tensor:
    """By differentiating the mean binary cross entropy twice."""
    parameters = list(model.parameters())
    loss = torch.stack([single_loss(model, x, int(y)) for x, y in zip(*TWO, strict=True)]).mean()
    first = torch.cat([g.flatten() for g in torch.autograd.grad(loss, parameters, create_graph=True)])
    rows = [
        torch.autograd.grad(entry, parameters, retain_graph=True, materialize_grads=True) for entry in first
    ]
    return torch.stack([torch.cat([part.flatten() for part in row]) for row in rows])


@pytest.mark.parametrize(
    ("make", "head"),
    [(lambda: nn.Linear(5, 1).double(), ""), (lambda: world(SINGLE["column"], outputs=1), None)],
    ids=["linear", "network"],
)
@pytest.mark.parametrize("metric", ["dot_if", "dot:gradient/lanczos(negative=keep)"])
def test_curvature_of_one_logit_is_that_of_the_binary_cross_entropy(make, head, metric) -> None:
    model = make()
    assert Classifier.of(model, Examples.of(TWO)).only_layer == head
    hessian = dense_hessian(model)
    ridge = 1e-3 * hessian.diagonal().abs().mean()
    inverse = torch.linalg.inv(hessian + ridge * torch.eye(len(hessian), dtype=torch.double))
    case, train = gradients(model, single_loss, ASKED, predictions(model)), gradients(model, single_loss, *TWO)
    wanted = torch.stack(case) @ inverse @ torch.stack(train).T
    found = Explainer(model, TWO, metric).scores(ASKED)
    assert float((found - wanted).abs().max()) < 1e-6 * float(wanted.abs().max())


def test_the_gauss_newton_matrix_of_a_linear_logit_is_its_hessian() -> None:
    model = nn.Sequential(nn.Linear(5, 1), Doubled()).double()
    assert Classifier.of(model, Examples.of(TWO)).only_layer is None
    exact, newton = (
        Explainer(model, TWO, f"dot:gradient/hessian(kind={kind})").scores(ASKED)
        for kind in ("exact", "gauss_newton")
    )
    torch.testing.assert_close(exact, newton)


def test_the_last_layer_of_one_logit_explains_grad_cos_in_two_parts() -> None:
    model = nn.Linear(5, 1).double()
    found = Explainer(model, TWO).explain(ASKED, k=3)
    product = found.parts.residual * found.parts.feature
    torch.testing.assert_close(product, found.top.scores)
    assert found.parts.residual.abs().allclose(torch.ones(1, dtype=torch.double))


def test_a_binary_model_can_be_judged_and_audited() -> None:
    model, test = world(SINGLE["vector"], outputs=1), (ASKED, binary(7, seed=2)[1])
    assert len(judge(Trial.of(model, TWO, test), ["cos_grad", "cos_last"], ["identical_class"]).outcomes) == 2
    found = audit(model, TWO, test, metrics=["cos_grad", "dot_if", "cos_last"], k=3)
    assert found.scope.classes == 2


def test_a_regressor_is_refused(train) -> None:
    model = world(SINGLE["column"], outputs=1)
    with pytest.raises(InputError, match=r"one output, .* a label 2.*A regressor.*Cut the quantity"):
        Explainer(model, train)
    with pytest.raises(InputError, match=r"class numbers are integers, but instance 0 has .*A regressor"):
        Explainer(model, (train[0], train[0][:, 0]))


def test_probabilities_of_one_output_are_refused_unless_the_loss_is_named() -> None:
    model = world(lambda h, z: z.sigmoid(), outputs=1)
    with pytest.raises(InputError, match=r"within 0 and 1.*loss=nn.BCELoss\(\).*loss=nn.BCEWithLogitsLoss\(\)"):
        Explainer(model, TWO)
    plain = world(lambda h, z: z, outputs=1)
    plain.load_state_dict(model.state_dict())
    found = Explainer(model, TWO, loss=nn.BCELoss()).scores(ASKED)
    torch.testing.assert_close(found, Explainer(plain, TWO).scores(ASKED))
    Explainer(model, TWO, loss=nn.BCEWithLogitsLoss())


@pytest.mark.parametrize("size", [1, 3, 30])
def test_the_composition_of_batches_changes_nothing(size, monkeypatch) -> None:
    model = world(SINGLE["dict"], outputs=1)
    whole = Explainer(model, TWO).scores(ASKED)
    monkeypatch.setattr("precedents.runtime.budget.MOST", size)
    torch.testing.assert_close(Explainer(model, TWO).scores(ASKED), whole, rtol=1e-12, atol=1e-12)


def test_outputs_are_read_alike_each_time() -> None:
    assert outputs_of(torch.zeros(2, 3), 2) == Outputs()
    assert outputs_of(torch.zeros(2, 1), 2) == Outputs(form="logit")
    assert outputs_of((torch.zeros(()), torch.zeros(2, 3)), 2) == Outputs(place=1)


def test_an_output_that_is_called_logit_is_taken_before_a_hidden_layer(train) -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.head = nn.Linear(5, 4, dtype=torch.double), nn.Linear(4, 1, dtype=torch.double)

        def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
            hidden = self.first(x).tanh()
            return {"hidden": hidden, "logit": self.head(hidden)}

    model = Classifier.of(Two(), Examples.of((train[0], train[1] % 2)))
    assert model.classes == 2
    assert model.outputs.place == "logit"

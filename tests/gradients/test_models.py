"""Models as users have them: wrapped, hooked, changed in place, fed with several inputs."""

from copy import deepcopy

import pytest
import torch
from torch import Tensor, nn

from gradients.single import B, agree, normal, one_at_a_time, ruled, stirred, world
from precedents import Classifier, InputError
from precedents.gradients.gradients import loss_gradients, planned


def small() -> nn.Module:
    return stirred(nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)))


class Pair(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.numbers, self.head = nn.Embedding(7, 4), nn.Linear(3, 4), nn.Linear(4, 3)

    def forward(self, tokens: Tensor, numbers: Tensor) -> Tensor:
        return self.head(self.words(tokens).mean(dim=1) * self.numbers(numbers).tanh())


def test_inputs_that_are_a_tuple() -> None:
    ruled(stirred(Pair()), (torch.randint(7, (B, 5)), normal(B, 3)))


def test_inputs_that_are_a_dict() -> None:
    ruled(stirred(Pair()), {"numbers": normal(B, 3), "tokens": torch.randint(7, (B, 5))})


class Named(nn.Module):
    """A layer called by the name of its argument."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(4, 5), nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(input=self.body(input=x).tanh())


def test_arguments_by_name() -> None:
    ruled(stirred(Named()), normal(B, 4))


@pytest.mark.parametrize("act", [nn.ReLU, nn.ELU, nn.SiLU, nn.LeakyReLU])
def test_activations_in_place(act) -> None:
    model = nn.Sequential(
        nn.Conv2d(2, 3, 2), nn.BatchNorm2d(3), act(inplace=True), nn.Conv2d(3, 2, 2), act(inplace=True)
    )
    ruled(stirred(nn.Sequential(model, nn.Flatten(), nn.Linear(8, 3))), normal(B, 2, 4, 4))


class Residual(nn.Module):
    """Additions in place."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Conv1d(3, 3, 3, padding=1), nn.Conv1d(3, 3, 3, padding=1)
        self.norm, self.head = nn.BatchNorm1d(3), nn.Linear(12, 3)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(self.one(x))
        y += x
        y = y.relu_()
        z = self.two(y)
        z += y
        z *= 2
        return self.head(z.flatten(1))


def test_residuals_in_place() -> None:
    ruled(stirred(Residual()), normal(B, 3, 4))


class Attends(nn.Module):
    def __init__(self, batch_first: bool) -> None:
        super().__init__()
        self.attention, self.head = nn.MultiheadAttention(6, 2, batch_first=batch_first), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        y = x if self.attention.batch_first else x.transpose(0, 1)
        z, _ = self.attention(y, y, y)
        z += y
        return self.head(z.relu_().mean(dim=1 if self.attention.batch_first else 0))


@pytest.mark.parametrize("batch_first", [False, True])
def test_attention_changed_in_place(batch_first) -> None:
    ruled(stirred(Attends(batch_first)), normal(B, 4, 6))


@pytest.mark.filterwarnings("ignore")
def test_positions_changed_in_place_are_right() -> None:
    layers = nn.Linear(4, 5), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(15, 3)
    agree(stirred(nn.Sequential(*layers)), normal(B, 3, 4))


def test_a_hook_of_the_users_that_changes_an_output() -> None:
    model = small()
    model[0].register_forward_hook(lambda module, args, output: 2 * output)
    ruled(model, normal(B, 4))


def test_a_hook_of_the_users_that_changes_an_input() -> None:
    model = small()
    model[2].register_forward_pre_hook(lambda module, args: (args[0].square(),))
    ruled(model, normal(B, 4))


def test_a_hook_of_the_users_on_attention() -> None:
    layer = nn.TransformerEncoderLayer(6, 2, 5, batch_first=True)
    layer.self_attn.register_forward_hook(lambda module, args, output: (2 * output[0], output[1]))
    layer.self_attn.register_forward_pre_hook(lambda module, args: tuple(0.5 * arg for arg in args))
    ruled(stirred(nn.Sequential(layer, nn.Flatten(), nn.Linear(18, 3))), normal(B, 3, 6))


class Owner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.randn(5))

    def forward(self, x: Tensor) -> Tensor:
        return self.scale * x


@pytest.mark.filterwarnings("ignore")
def test_a_hook_of_the_users_on_a_layer_without_a_rule() -> None:
    model = stirred(nn.Sequential(nn.Linear(4, 5), Owner(), nn.Linear(5, 3)))
    model[1].register_forward_hook(lambda module, args, output: output.square())
    agree(model, normal(B, 4))


@pytest.mark.filterwarnings("ignore:.*torch.jit")
def test_a_compiled_model_is_explained_as_the_one_it_came_from() -> None:
    model = small()
    examples, batch = world(normal(B, 4))
    ours = loss_gradients(Classifier.of(torch.compile(model, backend="eager"), examples), batch).dense()
    torch.testing.assert_close(ours, one_at_a_time(model, batch.inputs, batch.labels), rtol=1e-9, atol=1e-12)


def test_a_model_in_data_parallel_is_explained_as_the_one_inside() -> None:
    model = small()
    examples, batch = world(normal(B, 4))
    ours = loss_gradients(Classifier.of(nn.DataParallel(model), examples), batch).dense()
    torch.testing.assert_close(ours, one_at_a_time(model, batch.inputs, batch.labels), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("start", ["before the first gradients", "after the first gradients"])
def test_a_model_changed_in_place_does_not_change_the_classifier(start) -> None:
    model, (examples, batch) = small(), world(normal(B, 4))
    expected = one_at_a_time(deepcopy(model), batch.inputs, batch.labels)
    classifier = Classifier.of(model, examples)
    if start.startswith("after"):
        loss_gradients(classifier, batch)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3)
    model[2] = nn.Linear(5, 2)
    torch.testing.assert_close(loss_gradients(classifier, batch).dense(), expected, rtol=1e-9, atol=1e-12)


def test_the_users_model_is_left_as_it_was() -> None:
    model = small().train()
    model[0].weight.requires_grad_(False)
    before = deepcopy(model.state_dict())
    examples, batch = world(normal(B, 4))
    loss_gradients(Classifier.of(model, examples), batch)
    assert model.training
    assert not model[0]._forward_hooks
    assert [p.requires_grad for p in model.parameters()] == [False, True, True, True]
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


class Spoils(nn.Module):
    """What a layer received is changed in place afterwards."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = x.tanh()
        y = self.body(x)
        x += 1
        return self.head(x * y)


def test_a_received_input_that_is_changed_is_refused() -> None:
    examples, batch = world(normal(B, 4))
    model = Classifier.of(stirred(Spoils()), examples)
    with pytest.raises((InputError, RuntimeError), match=r"in ?place"):
        loss_gradients(model, batch)


class SpoilsLarge(nn.Module):
    """Clips in place what a layer received, where it is large; autograd has saved a copy and says nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(4, 4), nn.Linear(12, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = x.transpose(1, 2) * 1  # not contiguous
        y = self.body(x)
        if bool((x > 1).any()):
            x.clamp_(max=1)
        return self.head((x * y).flatten(1))


def test_a_received_input_that_is_changed_after_the_trial_is_refused() -> None:
    inputs = torch.rand(B, 4, 3).double()
    inputs[-1] = 5.0
    examples, batch = world(inputs)
    model = Classifier.of(stirred(SpoilsLarge()), examples)
    assert planned(model).recording.uncovered == ()
    with pytest.raises(InputError, match=r"What a Linear received was changed in place after it was used"):
        loss_gradients(model, batch)


@pytest.mark.parametrize("size", [1, 7, 256])
def test_any_batch_gives_the_same_gradients(size) -> None:
    model, (examples, batch) = small(), world(normal(20, 4))
    classifier = Classifier.of(model, examples)
    whole = loss_gradients(classifier, batch).dense()
    parts = torch.cat([loss_gradients(classifier, each).dense() for each in examples.batches(size)])
    torch.testing.assert_close(parts, whole, rtol=1e-12, atol=1e-14)

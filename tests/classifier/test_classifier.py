import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import numpy as np
import pytest
import snapshot
import torch
from conftest import retrained
from torch import nn
from torch.nn.functional import cross_entropy, dropout, one_hot

from precedents import (
    METRICS,
    Classifier,
    Examples,
    Explainer,
    InputError,
    NotApplicable,
    NumericalError,
    Trial,
    UnknownNameError,
    judge,
)


def drawn(make, seed: int = 0) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make().double()


class Wrapped(nn.Module):
    """A Linear whose output, or input, goes through a function."""

    def __init__(self, after=lambda logits: logits, before=lambda x: x) -> None:
        super().__init__()
        self.head = nn.Linear(5, 3).double()
        self.after, self.before = after, before

    def forward(self, x: torch.Tensor):
        return self.after(self.head(self.before(x)))


class Pair(nn.Module):
    """Two inputs, by position or by name."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(2, 4), nn.Linear(3, 4)
        self.head = nn.Linear(4, 3)

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return self.head((self.left(a) + self.right(b)).tanh())


class Words(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(7, 4)
        self.memory = nn.GRU(4, 3, num_layers=2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(6, 3)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.memory(self.words(tokens))[0][:, -1])


def busy() -> nn.Module:
    """Layers that behave otherwise in train mode."""
    hidden = [nn.Linear(5, 6), nn.BatchNorm1d(6), nn.Tanh(), nn.Dropout(0.5), nn.Linear(6, 4), nn.Tanh()]
    return nn.Sequential(*hidden, nn.Linear(4, 3))


@pytest.fixture
def disturbed(train) -> nn.Module:
    model = drawn(busy).train()
    model[2].eval()
    model[4].bias.requires_grad_(False)
    cross_entropy(model[4:](torch.ones(4, 6, dtype=torch.double)), torch.tensor([0, 1, 2, 0])).backward()
    model[0].register_forward_hook(lambda *_: None)
    model[4].register_forward_pre_hook(lambda *_: None)
    return model


# The user's model comes back untouched.


@pytest.mark.parametrize("name", METRICS)
def test_an_explanation_leaves_the_model_and_the_process_untouched(name, disturbed, train, cases) -> None:
    before = snapshot.of(disturbed)
    explainer = Explainer(disturbed, train, name)
    explainer.scores(cases)
    explainer.explain(cases, k=3)
    assert snapshot.of(disturbed) == before


def test_a_judgement_leaves_the_model_and_the_process_untouched(disturbed, train, test) -> None:
    before = snapshot.of(disturbed)
    judge(Trial.of(disturbed, train, test, retrain=retrained), ["cos_grad", "cos_all", "dot_if", "cos_fisher"])
    assert snapshot.of(disturbed) == before


@pytest.mark.parametrize(
    ("labels", "metric", "hidden"),
    [(99, "cos_grad", None), (0, "cosine:gradient/hessian(negative=keep)", None), (0, "cos_last", ["nowhere"])],
)
def test_a_call_that_fails_leaves_the_model_and_the_process_untouched(
    labels, metric, hidden, disturbed, train, cases
) -> None:
    before = snapshot.of(disturbed)
    with pytest.raises((InputError, NumericalError)):
        Explainer(disturbed, (train[0], train[1] + labels), metric, hidden=hidden).scores(cases)
    assert snapshot.of(disturbed) == before


def test_a_forward_pass_that_fails_leaves_the_model_and_the_process_untouched(disturbed, train) -> None:
    before = snapshot.of(disturbed)
    explainer = Explainer(disturbed, train, "cos_all")
    with pytest.raises(NumericalError):
        explainer.scores(torch.full((2, 5), torch.nan))
    with pytest.raises(InputError):
        Explainer(disturbed, (train[0][:, :4], train[1]))
    assert snapshot.of(disturbed) == before


def test_a_random_model_that_is_refused_leaves_the_process_untouched(train) -> None:
    model = Wrapped(before=lambda x: dropout(x, 0.5))
    before = snapshot.of(model)
    with pytest.raises(InputError):
        Explainer(model, train)
    assert snapshot.of(model) == before


def test_the_copy_has_no_hooks_left(disturbed, train, cases) -> None:
    explainer = Explainer(disturbed, train, "cos_all")
    explainer.scores(cases)
    assert (
        snapshot.of(explainer.relevance.workspace.classifier.module)["hooks"] == snapshot.of(disturbed)["hooks"]
    )


def test_training_on_does_not_change_an_explainer(train, cases) -> None:
    model = drawn(lambda: nn.Linear(5, 3))
    explainer = Explainer(model, train)
    before = explainer.scores(cases)
    with torch.no_grad():
        model.weight += 1
    assert torch.equal(explainer.scores(cases), before)


def test_a_model_in_train_mode_explains_as_in_eval_mode(disturbed, train, cases) -> None:
    in_training = Explainer(disturbed, train).scores(cases)
    assert torch.equal(Explainer(disturbed.eval(), train).scores(cases), in_training)


# What is no classifier is refused.


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda x: x, "The model is a function. Pass a torch.nn.Module"),
        (Wrapped(after=lambda logits: (logits, logits)), r"could be 0 or 1. Say which: output=0"),
        (Wrapped(after=lambda logits: logits[:, 0]), r"one output, .* has a label 2.*regressor"),
        (Wrapped(after=lambda logits: logits[:, :1]), r"one output, .* has a label 2.*regressor"),
        (Wrapped(after=lambda logits: logits.sum(dim=0, keepdim=True)), r"returns \(1, 3\) for 2 instance"),
        (Wrapped(before=lambda x: dropout(x, 0.5)), "different outputs for the same input in eval mode"),
        (Wrapped(before=lambda x: x - x.mean(dim=0)), "depends on the other instances of the batch"),
        (nn.Linear(4, 3).double(), r"cannot take inputs of the shape \(2, 5\)"),
        (nn.Conv2d(1, 3, 3).double(), r"cannot take inputs of the shape \(2, 5\)"),
    ],
    ids=["function", "tuple", "vector", "one class", "mixed", "dropout", "mixing", "shape", "axes"],
)
def test_what_is_no_classifier_is_refused(model, message, train) -> None:
    with pytest.raises(InputError, match=message):
        Explainer(model, train)


@pytest.mark.parametrize(("share", "refused"), [(5e-5, False), (2e-3, True)])
def test_rounding_is_no_dependence_on_the_batch(share, refused, train) -> None:
    def rounded(logits: torch.Tensor) -> torch.Tensor:
        near_zero = logits * torch.tensor([1.0, 1.0, 1e-3])
        return near_zero + share * logits.abs().max() * (len(logits) > 1)

    with pytest.raises(InputError, match="depends on the other") if refused else nullcontext():
        Explainer(Wrapped(after=rounded), train, "cos_x")


@pytest.mark.parametrize(
    "body",
    [
        [nn.BatchNorm1d(5, track_running_stats=False)],
        [nn.Unflatten(1, (1, 1, 5)), nn.BatchNorm2d(1, track_running_stats=False), nn.Flatten()],
    ],
    ids=["rows", "images"],
)
def test_batch_norm_without_running_statistics_is_refused(body, train) -> None:
    with pytest.raises(InputError, match=r"depends on the other instances.*track_running_stats=True"):
        Explainer(nn.Sequential(*body, nn.Linear(5, 3)).double(), train)


class Failing(Wrapped):
    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def forward(self, x: torch.Tensor):
        raise self.error


@pytest.mark.parametrize("error", [ValueError("too short"), ValueError(), AssertionError()], ids=repr)
def test_a_model_that_fails_is_refused_with_the_shape_of_its_inputs(error, train) -> None:
    with pytest.raises(InputError, match=r"cannot take inputs of the shape \(2, 5\)"):
        Explainer(Failing(error), train)


class Uncopyable(Wrapped):
    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def __deepcopy__(self, memo):
        raise self.error


@pytest.mark.parametrize("error", [TypeError("cannot pickle a lock"), RuntimeError()], ids=repr)
def test_a_model_that_cannot_be_copied_is_refused(error, train) -> None:
    with pytest.raises(InputError, match=r"The model cannot be copied"):
        Explainer(Uncopyable(error), train)


def test_the_attribute_that_cannot_be_copied_is_named(train) -> None:
    model = nn.Sequential(nn.Linear(5, 4), nn.Linear(4, 3)).double()
    model[1].turns = (turn for turn in range(3))
    with pytest.raises(InputError, match=r"cannot be copied \(its attribute 1\.turns\).*generator"):
        Explainer(model, train)


def test_labels_that_the_model_has_no_output_for_are_refused(model, train) -> None:
    with pytest.raises(InputError, match=r"instance 1 has label 3, but the model has 3 classes"):
        Explainer(model, (train[0], torch.where(train[1] == 1, 3, train[1])))


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_training_instances_without_a_finite_loss_are_named(value, model, train, cases) -> None:
    x = train[0].clone()
    x[[7, 30]] = value
    with pytest.raises(NumericalError, match=r"The loss of 2 instance\(s\) is not finite: #7, #30"):
        Explainer(drawn(lambda: nn.Linear(5, 3)), (x, train[1]), "cos_grad").scores(cases)


def test_at_most_five_instances_are_named(train, cases) -> None:
    x = torch.cat([train[0][:2], train[0][2:] * torch.nan])
    with pytest.raises(NumericalError, match=r"of 43 instance\(s\) is not finite: #2, #3, #4, #5, #6 \.\.\."):
        Explainer(nn.Linear(5, 3).double(), (x, train[1])).scores(cases)


def test_cases_without_a_finite_loss_are_named(model, train, cases) -> None:
    x = cases.clone()
    x[3, 2] = torch.nan
    with pytest.raises(NumericalError, match=r"not finite: #3"):
        Explainer(model, train, "cos_x").explain(x)


def test_infinite_weights_are_found(train, cases) -> None:
    model = drawn(lambda: nn.Linear(5, 3))
    with torch.no_grad():
        model.weight[0, 0] = torch.inf
    with pytest.raises(NumericalError, match=r"not finite"):
        Explainer(model, train).scores(cases)


# Parameters.


def test_the_trainable_parameters_count(train, examples) -> None:
    model = drawn(busy)
    model[0].requires_grad_(False)
    classifier = Classifier.of(model, examples)
    assert classifier.size == sum(p.numel() for p in model.parameters() if p.requires_grad)
    assert "0.weight" not in classifier.parameters


def test_no_trainable_parameter_is_an_error_for_gradients(train) -> None:
    model = drawn(lambda: nn.Linear(5, 3)).requires_grad_(False)
    with pytest.raises(InputError, match=r"no trainable parameters.*requires_grad_"):
        Explainer(model, train, "cos_grad")


def test_no_trainable_parameter_is_no_error_for_hidden_layers(train, cases, model) -> None:
    frozen = drawn(busy).requires_grad_(False)
    assert Explainer(frozen, train, "cos_last").scores(cases).shape == (12, 45)


def test_a_shared_parameter_counts_once(train, examples) -> None:
    model = nn.Sequential(nn.Linear(5, 5), nn.Tanh(), nn.Linear(5, 5), nn.Linear(5, 3)).double()
    model[2].weight = model[0].weight
    assert Classifier.of(model, examples).size == 25 + 5 + 5 + 18


# Hidden layers.


def taps(model, examples, **options) -> list[str]:
    return [tap.module for tap in Classifier.of(model, examples, **options).taps]


def test_hidden_layers_are_what_each_linear_after_the_first_receives(classifier, model, train) -> None:
    first, second = classifier.hidden(train[0])
    torch.testing.assert_close(first, model[:2](train[0]).detach())
    torch.testing.assert_close(second, model[:4](train[0]).detach())


def test_hidden_layers_of_a_convolutional_network_are_flattened(train) -> None:
    model = drawn(
        lambda: nn.Sequential(
            nn.Unflatten(1, (1, 5)),
            nn.Conv1d(1, 2, 3),
            nn.ReLU(),
            nn.Conv1d(2, 2, 2),
            nn.Flatten(),
            nn.Linear(4, 3),
        )
    )
    found = Classifier.of(model, Examples.of(train)).hidden(train[0])
    assert [layer.shape for layer in found] == [(45, 6), (45, 4)]
    torch.testing.assert_close(found[0], model[:3](train[0]).flatten(1).detach())


def test_a_module_called_twice_is_two_hidden_layers(train, examples) -> None:
    square = nn.Linear(5, 5)
    model = nn.Sequential(square, nn.Tanh(), square, nn.Tanh(), nn.Linear(5, 3)).double()
    found = Classifier.of(model, examples).hidden(train[0])
    torch.testing.assert_close(found[0], model[:2](train[0]).detach())
    torch.testing.assert_close(found[1], model[:4](train[0]).detach())


def test_weight_normalized_layers_are_layers(train, examples) -> None:
    norm = nn.utils.parametrizations.weight_norm
    model = nn.Sequential(norm(nn.Linear(5, 4)), nn.Tanh(), norm(nn.Linear(4, 3))).double()
    (found,) = Classifier.of(model, examples).hidden(train[0])
    torch.testing.assert_close(found, model[:2](train[0]).detach())


@pytest.mark.filterwarnings("ignore::precedents.gradients.search.SlowGradientsWarning")
def test_layers_that_put_time_first_do_not_hinder_gradients(train) -> None:
    class TimeFirst(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.memory, self.head = nn.Linear(1, 2), nn.LSTM(2, 3), nn.Linear(3, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(self.memory(self.body(x.T[:, :, None]))[0][-1])

    assert Explainer(TimeFirst().double(), train, "cos_grad").scores(train[0][:2]).shape == (2, 45)


def test_hidden_layers_can_be_named(model, train, examples) -> None:
    (found,) = Classifier.of(model, examples, hidden=["2"]).hidden(train[0])
    torch.testing.assert_close(found, model[:3](train[0]).detach())


def test_the_hidden_layer_of_a_named_recurrent_module_is_its_final_states() -> None:
    tokens = torch.randint(7, (6, 5), generator=torch.Generator().manual_seed(0))
    model, examples = drawn(Words), Examples.of((tokens, torch.arange(6) % 3))
    (found,) = Classifier.of(model, examples, hidden=["memory"]).hidden(tokens)
    states = model.memory(model.words(tokens))[1].detach()  # [4, 6, 3]
    torch.testing.assert_close(found, states.transpose(0, 1).flatten(1))


def test_an_unknown_hidden_layer_suggests_the_nearest() -> None:
    tokens = torch.zeros(3, 5, dtype=torch.long)
    with pytest.raises(
        UnknownNameError, match=r"No module of the model is named 'memry'. Did you mean 'memory'"
    ):
        Explainer(drawn(Words), (tokens, torch.arange(3)), hidden=["memry"])


def test_a_hidden_layer_that_does_not_run_is_named(train) -> None:
    model = drawn(busy)
    model.spare = nn.Linear(2, 2)
    model.forward = nn.Sequential(*list(model)[:-1]).forward
    with pytest.raises(InputError, match=r"The hidden layer 'spare' did not run"):
        Explainer(model, train, hidden=["spare"])


def test_a_hidden_layer_without_instances_is_named(train) -> None:
    model = nn.Sequential(nn.Linear(5, 4), nn.Flatten(0), nn.Unflatten(0, (-1, 4)), nn.Linear(4, 3)).double()
    with pytest.raises(InputError, match=r"The hidden layer '1' gives \(8,\) for 2 instances"):
        Explainer(model, train, "cos_last", hidden=["1"])


@pytest.mark.parametrize("metric", ["cos_last", "dot_all"])
def test_a_linear_model_has_no_hidden_layers(metric, linear, train) -> None:
    with pytest.raises(NotApplicable, match=r"linear"):
        Explainer(linear, train, metric)


# Inputs.


@pytest.mark.parametrize(
    "as_inputs", [lambda x: (x[:, :2], x[:, 2:]), lambda x: {"b": x[:, 2:], "a": x[:, :2]}]
)
def test_inputs_may_be_a_tuple_or_a_dict(as_inputs, train, cases) -> None:
    class Joined(Pair):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x[:, :2], x[:, 2:])

    for metric in ("cos_grad", "cos_if", "cos_last"):
        apart = Explainer(drawn(Pair), (as_inputs(train[0]), train[1]), metric).scores(as_inputs(cases))
        whole = Explainer(drawn(Joined), train, metric).scores(cases)
        torch.testing.assert_close(apart, whole, rtol=1e-10, atol=1e-12)


def test_float_inputs_take_the_precision_of_the_model(train, cases) -> None:
    model = drawn(lambda: nn.Linear(5, 3))
    single = Explainer(model, (train[0].float(), train[1])).scores(cases.float())
    torch.testing.assert_close(single, Explainer(model, train).scores(cases), rtol=1e-5, atol=1e-5)


def test_inputs_are_flattened_to_vectors(classifier, train) -> None:
    assert torch.equal(classifier.vectors(train[0].reshape(45, 5, 1)), train[0])


def test_all_parts_of_an_input_are_in_its_vector(classifier, train) -> None:
    assert torch.equal(classifier.vectors({"a": train[0][:, :2], "b": train[0][:, 2:]}), train[0])


def test_tokens_are_no_vectors() -> None:
    tokens = torch.zeros(3, 5, dtype=torch.long)
    with pytest.raises(NotApplicable, match=r"token numbers, which are no vectors.*vectorise="):
        Explainer(drawn(Words), (tokens, torch.arange(3)), "cos_x")


def test_tokens_become_vectors_as_the_user_says() -> None:
    tokens = torch.tensor([[1, 1, 2], [2, 1, 1], [3, 4, 5]])
    explainer = Explainer(
        drawn(Words),
        (tokens, torch.arange(3)),
        "cos_x",
        vectorise=lambda t: one_hot(t, 7).sum(1),
    )
    expected = torch.tensor([[1.0, 1.0, 0.0]], dtype=torch.double)
    torch.testing.assert_close(explainer.scores(tokens[0]), expected)


def test_what_is_no_module_is_named_with_its_article(examples) -> None:
    with pytest.raises(InputError, match=r"The model is an int\. Pass a torch\.nn\.Module"):
        Classifier.of(7, examples)


def test_what_is_told_by_an_unknown_name_is_refused(model, examples) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'hiden'"):
        Classifier.of(model, examples, hiden=["0"])


class Counting(nn.Module):
    """Notes how many instances each of its forward passes has."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module, self.passes = module, []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.passes.append(len(x))
        return self.module(x)


def test_a_first_look_is_two_passes_of_two_instances_and_one_of_each_alone(model, examples) -> None:
    made = Classifier.of(Counting(model), examples)
    assert made.at_once > 0
    assert made.module.passes == [2, 2, 1, 1]


def test_the_head_input_is_what_the_last_linear_receives(classifier, model, examples) -> None:
    batch = examples.take(range(5))
    received, logits = classifier.head_input(batch)
    torch.testing.assert_close(received, model[:-1](batch.inputs).detach())
    torch.testing.assert_close(logits, model(batch.inputs).detach())
    assert not any(layer._forward_pre_hooks for layer in classifier.module.modules())


def test_what_other_threads_compute_meanwhile_is_not_taken_for_ones_own(classifier, examples) -> None:
    batches = [examples.take([i]) for i in range(8)] * 20
    alone = [(classifier.head_input(batch), classifier.hidden(batch.inputs)) for batch in batches[:8]] * 20
    with ThreadPoolExecutor(4) as pool:
        heads = pool.map(classifier.head_input, batches)
        hidden = pool.map(lambda batch: classifier.hidden(batch.inputs), batches)
        for (head, layers), other_head, other_layers in zip(alone, heads, hidden, strict=True):
            assert all(map(torch.equal, head, other_head))
            assert all(map(torch.equal, layers, other_layers))


def test_predictions_are_the_largest_logits(classifier, model, examples, train) -> None:
    assert torch.equal(classifier.predicted(examples), model(train[0]).argmax(dim=1))


def test_what_layers_return_stays_within_the_budget_whatever_is_asked(model, examples, train) -> None:
    whole = Classifier.of(model, examples)
    few = Classifier.of(model, examples, memory=8 * 4 * 20)
    assert few.at_once < len(examples) < whole.at_once == 512
    assert torch.equal(few.predicted(examples), whole.predicted(examples))
    for layer, wanted in zip(few.hidden(train[0]), whole.hidden(train[0]), strict=True):
        torch.testing.assert_close(layer, wanted)
    (last,) = few.hidden(train[0], last=True)
    assert torch.equal(last, few.hidden(train[0])[-1])


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")  # torch.compile's own, at its first use
@pytest.mark.parametrize("wrap", [nn.DataParallel, torch.compile])
def test_a_wrapped_model_explains_as_the_one_inside(wrap, model, train, cases) -> None:
    assert torch.equal(Explainer(wrap(model), train).scores(cases), Explainer(model, train).scores(cases))


# The only layer: the one Linear that holds all trainable parameters.


def test_a_linear_model_is_its_own_head(linear, examples) -> None:
    assert Classifier.of(linear, examples).only_layer == ""


def test_a_head_behind_a_flatten_is_found(examples) -> None:
    assert Classifier.of(nn.Sequential(nn.Flatten(), nn.Linear(5, 3)).double(), examples).only_layer == "1"


@pytest.mark.parametrize(
    "make",
    [
        busy,
        lambda: nn.Sequential(nn.Linear(5, 3), nn.LogSoftmax(dim=1)),
        lambda: Wrapped(after=lambda z: z.tanh()),
    ],
    ids=["network", "softmax", "tanh"],
)
def test_a_model_that_is_more_than_a_linear_has_no_head(make, examples) -> None:
    assert Classifier.of(drawn(make), examples).only_layer is None


# Fresh draws.


class Own(nn.Module):
    """A parameter that no layer owns."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(5 + torch.randn(40, 5))
        self.head = nn.Linear(40, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(x @ self.table.T)


def test_every_parameter_is_drawn_anew(examples) -> None:
    classifier = Classifier.of(
        drawn(Words), Examples.of((torch.zeros(3, 4, dtype=torch.long), torch.arange(3)))
    )
    drawn_anew = classifier.randomized(0)
    for before, after in zip(classifier.module.parameters(), drawn_anew.module.parameters(), strict=True):
        assert not torch.isclose(before, after).all()


def test_layers_draw_by_their_own_rule(classifier) -> None:
    found = classifier.randomized(3).module
    for layer in (0, 2, 4):
        bound = found[layer].in_features ** -0.5
        assert 0.7 * bound < found[layer].weight.abs().max() <= bound


def test_a_parameter_without_an_owner_keeps_its_mean_and_deviation(examples) -> None:
    found = Classifier.of(drawn(Own), examples).randomized(0).module.table.detach()
    assert float(found.mean()) == pytest.approx(5, abs=0.3)
    assert float(found.std()) == pytest.approx(1, abs=0.2)


def test_batch_norm_forgets_its_statistics(examples) -> None:
    model = drawn(busy)
    model[1].running_mean += 3
    found = Classifier.of(model, examples).randomized(0).module
    assert torch.equal(found[1].running_mean, torch.zeros(6, dtype=torch.double))


def test_equal_seeds_draw_equal_models(classifier) -> None:
    one, two = (classifier.randomized(5).module.state_dict() for _ in range(2))
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_other_seeds_draw_other_models(classifier) -> None:
    one, two = (classifier.randomized(seed).module[0].weight for seed in (5, 6))
    assert not torch.isclose(one, two).any()


def test_a_draw_leaves_the_trained_model_and_the_random_state_alone(classifier) -> None:
    before = snapshot.of(classifier.module)
    classifier.randomized(0)
    assert snapshot.of(classifier.module) == before


def test_a_draw_is_in_eval_mode_with_the_same_hidden_layers(classifier, train) -> None:
    found = classifier.randomized(0)
    assert not found.module.training
    assert [layer.shape for layer in found.hidden(train[0])] == [(45, 6), (45, 5)]


def test_doubled_is_float64(examples) -> None:
    found = Classifier.of(drawn(busy).float(), examples).doubled().module
    assert {p.dtype for p in found.parameters()} == {torch.double}


def test_a_snapshot_sees_every_kind_of_change(disturbed) -> None:
    changes = [
        lambda: disturbed[0].weight.data.add_(1),
        lambda: disturbed.eval(),
        lambda: disturbed.zero_grad(),
        lambda: disturbed[0].register_forward_hook(lambda *_: None),
        lambda: disturbed.requires_grad_(False),
        lambda: torch.rand(1),
        lambda: np.random.rand(),  # noqa: NPY002
        lambda: random.random(),
    ]
    state = torch.get_rng_state()
    for change in changes:
        before = snapshot.of(disturbed)
        change()
        assert snapshot.of(disturbed) != before
    torch.set_rng_state(state)


class CallsItself(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(5, 3)
        self.run = lambda x: self.layer(x)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.run(x)


def test_a_model_whose_copy_runs_the_original_is_refused() -> None:
    with pytest.raises(InputError, match="do not depend on its trainable parameters"):
        Explainer(CallsItself(), (torch.randn(4, 5), torch.tensor([0, 1, 2, 0])))


@pytest.mark.parametrize(("layers", "width"), [(1, 6), (2, 12)])
def test_states_that_the_head_receives_are_counted_once(layers, width) -> None:
    class Reader(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(4, 3, num_layers=layers, bidirectional=True, batch_first=True)
            self.head = nn.Linear(6, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            _, (states, _) = self.lstm(x)
            return self.head(torch.cat([states[-2], states[-1]], dim=1))

    inputs = torch.randn(5, 7, 4, generator=torch.Generator().manual_seed(0))
    module = Reader()
    hidden = Classifier.of(module, Examples.of((inputs, torch.zeros(5, dtype=torch.long)))).hidden(inputs)
    _, (states, _) = module.lstm(inputs)
    assert sum(layer.shape[1] for layer in hidden) == width
    expected = states.transpose(0, 1).flatten(1)
    assert torch.equal(torch.cat(hidden, dim=1), expected)
    assert torch.equal(hidden[-1], expected[:, -6:])


def test_a_random_draw_is_not_the_beginning_of_a_model_trained_from_the_same_seed() -> None:
    torch.manual_seed(0)
    beginning = nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3))
    train = Examples.of((torch.zeros(2, 5), torch.zeros(2, dtype=torch.long)))
    drawn = Classifier.of(beginning, train).randomized(0).module
    assert not any(torch.equal(a, b) for a, b in zip(drawn.parameters(), beginning.parameters(), strict=True))

"""A rule names the layers it covers, gives their gradients, or an equal module that has them, and is used."""

from importlib import import_module

import pytest
import torch
from torch import nn

from precedents.gradients.factors import Dense
from precedents.gradients.instrumentation import RULES, rule_of
from precedents.gradients.layers._rule import EVERYTHING, Rule
from tests.gradients.single import Alone, B, Inside, ruled, slow, stirred

each = pytest.mark.parametrize("name", RULES.names())


@each
def test_the_file_defines_its_own_name_and_says_what_it_is(name) -> None:
    assert isinstance(RULES.get(name), Rule)
    assert import_module(f"{RULES.folder.__name__}.{name}").__doc__


@each
def test_it_covers_types_of_layers(name) -> None:
    types = RULES.get(name).types
    assert types
    assert all(kind.count(".") if isinstance(kind, str) else issubclass(kind, nn.Module) for kind in types)


@each
def test_it_has_either_a_formula_or_an_equal_module(name) -> None:
    rule = RULES.get(name)
    (given,) = [each for each in (rule.parts, rule.rewritten) if each is not None]
    assert given.__doc__
    assert rule.rewritten is None or rule.covers is EVERYTHING


def test_no_type_of_layer_has_two_rules() -> None:
    covered = [kind for name in RULES.names() for kind in RULES.get(name).types]
    assert len(covered) == len(set(covered))


@each
def test_its_example_is_a_layer_of_its_own_with_parameters_that_it_covers(name) -> None:
    rule = RULES.get(name)
    layer, received = rule.example()
    assert rule_of(type(layer)) is rule
    assert rule.follows(layer.eval())
    assert any(parameter.requires_grad for parameter in layer.parameters())
    assert all(len(x) == B for x in received)


@each
@pytest.mark.parametrize("place", [Alone, Inside])
def test_its_example_is_recorded_by_the_rule_and_has_the_gradients_of_plain_autograd(name, place) -> None:
    torch.manual_seed(0)
    layer, received = RULES.get(name).example()
    received = tuple(x.double() if x.is_floating_point() else x for x in received)
    model = place(stirred(layer), *received)
    plan = ruled(model, received if len(received) > 1 else received[0])
    assert plan.recording.copies == {}


@each
def test_a_parameter_that_it_does_not_cover_is_not_left_to_it(name) -> None:
    rule = RULES.get(name)
    layer, _ = rule.example()
    layer.eval().register_parameter("unheard_of", nn.Parameter(torch.zeros(1)))
    assert rule.follows(layer) is (rule.covers is EVERYTHING and rule.applies(layer))


@each
def test_a_layer_without_trainable_parameters_costs_nothing_unless_the_rule_covers_everything(name) -> None:
    rule = RULES.get(name)
    layer, _ = rule.example()
    assert rule.follows(layer.eval().requires_grad_(False)) is (rule.covers is EVERYTHING)


def test_a_rule_without_an_example_is_none() -> None:
    with pytest.raises(TypeError, match="example"):
        Rule((nn.Linear,), RULES.get("linear").parts)


def test_a_rule_covers_the_parameters_that_it_names() -> None:
    class Affine(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale, self.shift = nn.Parameter(torch.ones(3)), nn.Parameter(torch.zeros(3))

    def parts(module, grad, x):
        yield Dense(module.scale, grad * x)

    def example():
        return Affine(), (torch.randn(4, 3),)

    assert Rule((Affine,), parts, covers=("scale", "shift"), example=example).follows(Affine())
    assert not Rule((Affine,), parts, covers=("scale",), example=example).follows(Affine())
    assert not Rule((Affine,), parts, example=example).follows(Affine())


def test_a_layer_without_a_rule_takes_a_fallback_that_is_said() -> None:
    class Affine(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.ones(3, 3))

        def forward(self, x):
            return x @ self.scale.flip(0)

    received = torch.randn(B, 3).double()
    plan, said = slow(Alone(stirred(Affine()), received), received)
    assert plan.recording.uncovered == ("Affine",)
    assert "Affine has no rule" in said

"""A rule names the layers it covers, and gives either their gradients or an equal module that has them."""

from importlib import import_module

import pytest
from torch import nn

from precedents.gradients.instrumentation import RULES
from precedents.gradients.layers._rule import Rule

each = pytest.mark.parametrize("name", RULES.names())


@each
def test_the_file_defines_its_own_name_and_says_what_it_is(name) -> None:
    assert isinstance(RULES.get(name), Rule)
    assert import_module(f"{RULES.folder.__name__}.{name}").__doc__


@each
def test_it_covers_types_of_layers(name) -> None:
    types = RULES.get(name).types
    assert types
    assert all(issubclass(kind, nn.Module) for kind in types)


@each
def test_it_has_either_a_formula_or_an_equal_module(name) -> None:
    rule = RULES.get(name)
    (given,) = [each for each in (rule.parts, rule.rewritten) if each is not None]
    assert given.__doc__


def test_no_type_of_layer_has_two_rules() -> None:
    covered = [kind for name in RULES.names() for kind in RULES.get(name).types]
    assert len(covered) == len(set(covered))

"""The examples in docstrings run and print what they say, and what is chosen by name has one."""

import doctest
from importlib import import_module
from inspect import getdoc
from pathlib import Path

import pytest

import precedents
from precedents import CRITERIA, FEATURES, PRECONDITIONERS, SIMILARITIES, Explainer, Metric, audit

PACKAGE = Path(precedents.__file__).parent
MODULES = [
    ".".join(("precedents", *file.relative_to(PACKAGE).with_suffix("").parts))
    for file in sorted(PACKAGE.rglob("*.py"))
    if ">>> " in file.read_text(encoding="utf-8")
]
NAMED = [
    *(
        (registry.kind, name, registry.get(name))
        for registry in (SIMILARITIES, FEATURES)
        for name in registry.names()
    ),
    *(
        (registry.kind, name, type(registry.get(name)))
        for registry in (PRECONDITIONERS, CRITERIA)
        for name in registry.names()
    ),
    *(("front door", each.__name__, each) for each in (Metric, Explainer, audit)),
]


@pytest.mark.parametrize("module", MODULES)
def test_examples_print_what_they_say(module) -> None:
    found = doctest.testmod(import_module(module))
    assert found.attempted > 0
    assert found.failed == 0


@pytest.mark.parametrize(("kind", "name", "value"), NAMED, ids=[f"{kind} {name}" for kind, name, _ in NAMED])
def test_what_is_chosen_by_name_shows_an_example(kind, name, value) -> None:
    assert ">>> " in (getdoc(value) or "")

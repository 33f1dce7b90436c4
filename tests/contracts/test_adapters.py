"""An adapter says what it accepts and before which others, and gives a module that returns logits."""

import inspect
from importlib import import_module

import hugging
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import nn

from precedents import Explainer, InputError
from precedents.adapters._adapter import Adapter
from precedents.adapters._find import ADAPTERS, adapter_of, in_order

each = pytest.mark.parametrize("name", ADAPTERS.names())
ROWS = torch.randn(12, 3, generator=torch.Generator().manual_seed(0)), torch.arange(12) % 2


def sklearn_model() -> LogisticRegression:
    return LogisticRegression().fit(ROWS[0].numpy(), ROWS[1].numpy())


@each
def test_the_file_defines_its_own_name_and_says_what_it_is(name) -> None:
    adapter = ADAPTERS.get(name)
    assert issubclass(adapter, Adapter)
    assert adapter.__module__.endswith(f".{name}")
    assert import_module(adapter.__module__).__doc__
    assert inspect.getdoc(adapter)


@each
def test_it_is_asked_before_adapters_that_there_are(name) -> None:
    order = [ADAPTERS.names()[[ADAPTERS.get(n) for n in ADAPTERS.names()].index(kind)] for kind in in_order()]
    for later in ADAPTERS.get(name).before:
        assert order.index(name) < order.index(later)


@each
@pytest.mark.parametrize("other", [None, 3, "a text", {"a": 1}, [], (1, 2), object()])
def test_it_does_not_accept_what_is_no_model(name, other) -> None:
    assert not ADAPTERS.get(name).accepts(other)


@each
def test_it_says_in_words_what_it_accepts(name) -> None:
    assert inspect.getdoc(ADAPTERS.get(name).accepts)


def test_every_adapter_is_asked_once() -> None:
    assert sorted(kind.__name__ for kind in in_order()) == sorted(
        ADAPTERS.get(name).__name__ for name in ADAPTERS.names()
    )


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: nn.Linear(3, 2), "pytorch"),
        (sklearn_model, "scikit_learn"),
        (lambda: hugging.trained("bert", 0), "hugging_face"),
    ],
    ids=["pytorch", "scikit_learn", "hugging_face"],
)
def test_a_model_is_read_by_the_adapter_of_its_kind(make, name) -> None:
    adapter = adapter_of(make())
    assert type(adapter) is ADAPTERS.get(name)
    assert isinstance(adapter.module, nn.Module)


@pytest.mark.parametrize(
    ("other", "words"),
    [(3, "is an int"), ("a", "is a str"), (object(), "is an object"), ([], "is a list")],
)
def test_what_no_adapter_accepts_is_refused_with_what_could_be_passed(other, words) -> None:
    with pytest.raises(InputError, match=words) as refused:
        Explainer(other, ROWS)
    for name in ADAPTERS.names():
        assert name.replace("_", " ") in str(refused.value) or name == "pytorch"

"""Gradients kept as factors give the numbers of formed ones."""

from dataclasses import replace

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from gradients.single import normal, stirred, world
from precedents import Classifier
from precedents.gradients.factors import Lookup, Outer
from precedents.gradients.gradients import PLAN, loss_gradients, planned

sizes = st.integers(1, 5)


@settings(max_examples=30)
@given(sizes, sizes, sizes, sizes, sizes, sizes)
def test_products_of_outer_products(a, b, t, s, o, i) -> None:
    parameter = normal(o, i)
    one, other = (
        Outer(parameter, normal(a, t, o), normal(a, t, i)),
        Outer(parameter, normal(b, s, o), normal(b, s, i)),
    )
    expected = one.formed().flatten(1) @ other.formed().flatten(1).T
    torch.testing.assert_close(one.products(other), expected, rtol=1e-9, atol=1e-12)


@settings(max_examples=30)
@given(sizes, sizes, sizes, sizes)
def test_squares_of_outer_products(b, t, o, i) -> None:
    outer = Outer(normal(o, i), normal(b, t, o), normal(b, t, i))
    expected = outer.formed().flatten(1).square().sum(dim=1)
    torch.testing.assert_close(outer.squares(), expected, rtol=1e-9, atol=1e-12)


@settings(max_examples=30)
@given(sizes, sizes, sizes, sizes)
def test_outer_products_are_formed_by_their_sum(b, t, o, i) -> None:
    outer = Outer(normal(o, i, 1, 1), normal(b, t, o), normal(b, t, i))
    expected = torch.einsum("bto,bti->boi", outer.left, outer.right)[..., None, None]
    torch.testing.assert_close(outer.formed(), expected, rtol=1e-9, atol=1e-12)


@settings(max_examples=30)
@given(sizes, sizes, sizes, sizes, sizes, sizes)
def test_products_of_lookups(a, b, t, s, v, e) -> None:
    table = normal(v, e)
    one, other = (Lookup(table, torch.randint(v, (n, k)), normal(n, k, e)) for n, k in ((a, t), (b, s)))
    expected = one.formed().flatten(1) @ other.formed().flatten(1).T
    torch.testing.assert_close(one.products(other), expected, rtol=1e-9, atol=1e-12)
    own = one.formed().flatten(1).square().sum(dim=1)
    torch.testing.assert_close(one.squares(), own, rtol=1e-9, atol=1e-12)


@settings(max_examples=30)
@given(sizes, sizes, sizes, sizes)
def test_what_falls_on_one_row_of_a_table_adds_up(b, t, v, e) -> None:
    lookup = Lookup(normal(v, e), torch.randint(v, (b, t)), normal(b, t, e))
    expected = torch.zeros(b, v, e, dtype=torch.double)
    for i in range(b):
        for k, row in enumerate(lookup.rows[i]):
            expected[i, row] += lookup.values[i, k]
    torch.testing.assert_close(lookup.formed(), expected, rtol=1e-9, atol=1e-12)


def test_factored_and_formed_plans_give_the_same_scores() -> None:
    model = stirred(
        nn.Sequential(nn.Embedding(200, 3), nn.Flatten(), nn.Linear(30, 40), nn.Tanh(), nn.Linear(40, 3))
    )
    examples, batch = world(torch.randint(200, (12, 10)))
    factored, formed = Classifier.of(model, examples), Classifier.of(model, examples)
    plan = planned(factored)
    assert len(plan.factored) >= 2
    formed.cache.once(PLAN, lambda: replace(plan, factored=frozenset()))
    ours, plain = loss_gradients(factored, batch), loss_gradients(formed, batch)
    assert ours.matrix.shape[1] < plain.matrix.shape[1] == ours.width
    torch.testing.assert_close(ours.products(ours), plain.products(plain), rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(ours.squares(), plain.squares(), rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(ours.dense(), plain.dense(), rtol=1e-9, atol=1e-12)

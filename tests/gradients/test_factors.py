"""Gradients kept as factors give the numbers of formed ones."""

from dataclasses import replace

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from gradients.single import normal, stirred, world
from precedents import Classifier
from precedents.gradients import factors, lookups
from precedents.gradients.factors import LARGE_NUMBERS, Outer
from precedents.gradients.gradients import PLAN, loss_gradients, planned
from precedents.gradients.lookups import Lookup

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


def test_many_positions_are_multiplied_by_pieces_of_what_they_form(monkeypatch) -> None:
    monkeypatch.setattr(factors, "PRODUCT_NUMBERS", 50)
    parameter = normal(7, 3)
    one, other = (Outer(parameter, normal(b, 9, 7), normal(b, 9, 3)) for b in (4, 5))
    pieces, expected = [], one.formed().flatten(1) @ other.formed().flatten(1).T
    whole = Outer._piece
    monkeypatch.setattr(Outer, "_piece", lambda self, *place: pieces.append(place) or whole(self, *place))
    torch.testing.assert_close(one.products(other), expected, rtol=1e-9, atol=1e-12)
    assert len(pieces) == 2 * 7
    own = other.formed().flatten(1).square().sum(dim=1)
    torch.testing.assert_close(other.squares(), own, rtol=1e-9, atol=1e-12)  # found on the way
    pieces.clear()
    few = Outer(parameter, normal(1, 1, 7), normal(1, 1, 3))
    few.products(few)
    assert pieces == []


def test_a_large_matrix_is_kept_as_factors_while_they_are_fewer_numbers() -> None:
    side = int(LARGE_NUMBERS**0.5)
    parameter = torch.empty(side, side)
    kept = [
        Outer(parameter, torch.empty(1, t, side), torch.empty(1, t, side))
        for t in (1, side // 2 - 1, side // 2)
    ]
    assert [outer.is_cheaper for outer in kept] == [True, True, False]
    small = torch.empty(side // 2, side // 2)
    assert not Outer(
        small, torch.empty(1, side // 4, side // 2), torch.empty(1, side // 4, side // 2)
    ).is_cheaper


def test_tables_are_laid_out_for_a_few_instances_at_a_time(monkeypatch) -> None:
    table = normal(40, 3)
    one, other = (Lookup(table, torch.randint(40, (b, t)), normal(b, t, 3)) for b, t in ((9, 6), (8, 2)))
    expected = one.formed().flatten(1) @ other.formed().flatten(1).T
    monkeypatch.setattr(lookups, "TABLE_NUMBERS", 150)
    monkeypatch.setattr(factors, "PRODUCT_NUMBERS", 20)
    torch.testing.assert_close(one.products(other), expected, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(other.products(one), expected.T, rtol=1e-9, atol=1e-12)


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

import pytest

from precedents import InputError
from precedents.runtime.budget import (
    BLOCK,
    BULK,
    ENOUGH,
    FEW,
    FEWER,
    KEPT,
    MOST,
    Budget,
    SharedBudget,
    available,
    readable,
)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1020, "0.996 KiB"),
        (1536, "1.5 KiB"),
        (3 * 2**20, "3 MiB"),
        (2**31, "2 GiB"),
    ],
)
def test_bytes_are_readable(count, text) -> None:
    assert readable(count) == text


@pytest.mark.parametrize(
    ("memory", "count"),
    [(1000, 1000), ("1000", 1000), ("200 MB", 200 * 10**6), ("1.5GiB", 3 * 2**29), (" 2 kb ", 2000)],
)
def test_a_budget_is_a_number_or_a_text(memory, count) -> None:
    assert Budget.of(memory).bytes == count


def test_a_budget_passes_through() -> None:
    assert Budget.of(Budget(7)) == Budget(7)


def test_no_budget_is_half_of_what_is_free() -> None:
    assert 0.3 * available() < Budget.of(None).bytes < 0.7 * available()


@pytest.mark.parametrize("memory", [0, -1, "much", "2 horses", "1.2.3 GB", ""])
def test_what_is_no_budget_is_refused(memory) -> None:
    with pytest.raises(InputError, match=r"memory is .* Pass a number of bytes or a text such as '2 GB'"):
        Budget.of(memory)


def test_what_is_there_may_be_used() -> None:
    Budget(10).required(10, "A little", "Use none.")


@pytest.mark.parametrize("given", [10, None])
def test_what_is_not_there_is_refused_with_what_to_do(given) -> None:
    with pytest.raises(InputError, match=r"Everything needs 1.* GiB, but .* is .*\. Use less\."):
        Budget(given).required(2**60, "Everything", "Use less.")


def test_a_block_has_a_row_at_least() -> None:
    assert Budget(10).rows(2**40) == 1


def test_a_block_has_no_more_rows_than_allowed() -> None:
    assert Budget(2**40).rows(1) == MOST


def test_a_block_of_which_little_is_held_has_more_rows_of_which_that_fits() -> None:
    assert Budget(2**50).rows(BLOCK // 80, stored=BLOCK // (8 * 300)) == 300
    assert Budget(8 * 8 * 10 * 30).rows(1000, stored=10) == 30
    assert Budget(8 * 8 * 1000 * 30).rows(10, stored=1000) == 30


@pytest.mark.parametrize("number", [4, 8])
def test_a_block_takes_an_eighth_of_the_budget(number) -> None:
    assert Budget(8 * number * 100 * 30).rows(100, number) == 30


def test_a_block_is_no_larger_than_helps_but_has_enough_rows() -> None:
    assert Budget(2**50).rows(BLOCK // (8 * 300)) == 300
    assert Budget(2**50).rows(BULK // (8 * ENOUGH)) == ENOUGH
    assert Budget(2**50).rows(BULK // 8) == FEW


def test_a_quarter_of_the_budget_may_be_kept() -> None:
    assert Budget(400).kept(streamed=False) == 100
    assert Budget(400).kept(streamed=True) == 100


def test_no_more_is_kept_than_helps() -> None:
    assert Budget(2**50).kept(streamed=False) == KEPT
    assert Budget(2**50).kept(streamed=True) == KEPT


def test_little_is_kept_of_a_streamed_set_unless_a_budget_is_given() -> None:
    assert Budget().kept(streamed=True) == min(FEWER, Budget().bytes // 4)


class Holder:
    """Holds something until it puts it away."""

    holding = True

    def put_away(self) -> None:
        self.holding = False


def test_where_there_is_room_nothing_is_put_away() -> None:
    shelf, holders = SharedBudget(), [Holder() for _ in range(3)]
    for holder in holders:
        shelf.take(holder, 30, Budget(100), again=True)
    assert all(holder.holding for holder in holders)


def test_who_asked_first_puts_away_first_and_no_more_do_than_must() -> None:
    shelf, (first, second, third) = SharedBudget(), [Holder() for _ in range(3)]
    shelf.take(first, 40, Budget(100))
    shelf.take(second, 40, Budget(100))
    shelf.take(third, 40, Budget(100))
    assert (first.holding, second.holding, third.holding) == (False, True, True)
    shelf.take(second, 20, Budget(100))
    assert third.holding
    shelf.take(first, 40, Budget(100))
    assert not third.holding


def test_an_owner_keeps_its_own_unless_it_can_make_it_again() -> None:
    shelf, holder = SharedBudget(), Holder()
    shelf.take(holder, 60, Budget(100))
    shelf.take(holder, 60, Budget(100))
    assert holder.holding
    shelf.take(holder, 60, Budget(100), again=True)
    assert not holder.holding


def test_what_is_light_is_put_away_last() -> None:
    shelf, (first, second, kernels, others) = SharedBudget(), [Holder() for _ in range(4)]
    shelf.take(first, 60, Budget(100))
    shelf.take(first, 10, Budget(100), light=kernels)  # older than what is put away before it
    shelf.take(second, 60, Budget(100))
    assert (first.holding, kernels.holding) == (False, True)
    shelf.take(second, 80, Budget(100), again=True)
    assert (second.holding, kernels.holding) == (False, True)
    second.holding = True  # it has made its own again
    shelf.take(second, 15, Budget(100), light=others)  # which is made of what it holds
    assert (second.holding, kernels.holding, others.holding) == (True, False, True)
    shelf.take(first, 95, Budget(100))
    assert not others.holding


def test_without_a_budget_what_is_held_is_not_counted_as_it_is_not_free() -> None:
    shelf, holders = SharedBudget(), [Holder() for _ in range(2)]
    for holder in holders:
        shelf.take(holder, available() // 3, Budget())
    assert all(holder.holding for holder in holders)
    shelf.take(Holder(), available(), Budget())
    assert not any(holder.holding for holder in holders)

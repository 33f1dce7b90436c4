import pytest

from precedents import InputError
from precedents.engine.memory import available, readable, required, rows_per_block


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1000, "1e+03 B"),
        (1536, "1.5 KiB"),
        (3 * 2**20, "3 MiB"),
        (2**31, "2 GiB"),
        (2**41, "2.05e+03 GiB"),
    ],
)
def test_bytes_are_readable(count, text) -> None:
    assert readable(count) == text


def test_what_is_there_may_be_used() -> None:
    required(1, "A byte", "Use none.")


def test_what_is_not_there_is_refused_with_what_to_do() -> None:
    with pytest.raises(InputError, match=r"Everything needs 1.* GiB, but .* of memory are free. Use less."):
        required(2**60, "Everything", "Use less.")


def test_some_memory_is_available() -> None:
    assert available() > 2**20


def test_a_block_has_a_row_at_least() -> None:
    assert rows_per_block(2**40) == 1


def test_a_block_has_no_more_rows_than_allowed() -> None:
    assert rows_per_block(1, most=7) == 7


def test_a_block_of_wide_rows_has_few_of_them() -> None:
    assert rows_per_block(2**20) == 32

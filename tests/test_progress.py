import io
from contextlib import redirect_stderr

import pytest

from precedents.runtime.progress import tracked


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def environment(monkeypatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for name in ("TTY_COMPATIBLE", "TTY_INTERACTIVE", "FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)


def shown(work) -> str:
    with redirect_stderr(Terminal()) as screen:
        work()
        return screen.getvalue()


@pytest.mark.parametrize("items", [[3, 1, 2], range(3), []])
def test_the_items_come_in_order(items) -> None:
    found = []
    shown(lambda: found.extend(tracked(items, "work", patience=-1)))
    assert found == list(items)


def test_quick_work_shows_nothing() -> None:
    assert "work" not in shown(lambda: list(tracked([1, 2], "work")))


def test_slow_work_shows_its_title() -> None:
    assert "digging" in shown(lambda: list(tracked([1, 2, 3], "digging", patience=-1)))


def test_work_within_work_shows_one_bar() -> None:
    def nested() -> None:
        for _ in tracked([1, 2], "outer", patience=-1):
            list(tracked([1, 2], "inner", patience=-1))

    screen = shown(nested)
    assert "outer" in screen
    assert "inner" not in screen


def test_work_that_fails_does_not_hide_the_next() -> None:
    def failing() -> None:
        for _ in tracked([1, 2], "first", patience=-1):
            raise KeyError

    with pytest.raises(KeyError):
        shown(failing)
    assert "second" in shown(lambda: list(tracked([1, 2], "second", patience=-1)))


def test_nothing_is_shown_where_there_is_no_terminal(capsys) -> None:
    list(tracked([1, 2], "work", patience=-1))
    assert capsys.readouterr() == ("", "")

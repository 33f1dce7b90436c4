import io
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr
from threading import Thread
from threading import enumerate as enumerate_threads
from time import sleep

import pytest
from hypothesis import given
from hypothesis import strategies as st
from waiting import Clock, until

from precedents.runtime import progress
from precedents.runtime.door import door
from precedents.runtime.engines._find import engine_of
from precedents.runtime.progress import Pace, duration, in_lines, quiet, told, tracked, within


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


def nested(work: Callable[[int], object]) -> None:
    for _ in tracked([1, 2], "outer", patience=-1):
        for item in tracked([1, 2], "inner", patience=-1):
            work(item)


def on_screen(title: str) -> bool:
    return title in sys.stderr.getvalue()


def test_quick_work_within_work_has_no_bar() -> None:
    screen = shown(lambda: nested(lambda _: sleep(0.15)))  # a bar is drawn ten times in a second
    assert "outer" in screen
    assert "inner" not in screen


def test_long_work_within_work_has_a_bar_too(monkeypatch) -> None:
    monkeypatch.setattr(progress, "LONG", 0.01)

    def work(item: int) -> None:
        sleep(0.02)
        until(lambda: item == 1 or on_screen("inner"))

    assert "outer" in shown(lambda: nested(work))


def titles(capsys) -> list[str]:
    """What the lines say before the time."""
    return [re.split(", | in ", line)[0] for line in capsys.readouterr().err.splitlines()]


def test_long_work_within_work_has_a_line_where_none_came_for_long(capsys, monkeypatch) -> None:
    clock = Clock()
    monkeypatch.setattr(progress, "monotonic", clock)
    with in_lines():
        nested(lambda _: clock.passes(7))
    assert titles(capsys) == ["outer: 1 of 2", "outer: 2 of 2"]
    with in_lines():
        nested(lambda _: clock.passes(31))
    assert titles(capsys) == ["inner: 1 of 2", "outer: 1 of 2", "inner: 1 of 2", "outer: 2 of 2"]


def test_work_that_fails_does_not_hide_the_next() -> None:
    def failing() -> None:
        for _ in tracked([1, 2], "first", patience=-1):
            raise KeyError

    with pytest.raises(KeyError):
        shown(failing)
    assert "second" in shown(lambda: list(tracked([1, 2], "second", patience=-1)))


def test_quick_work_of_a_script_without_a_terminal_shows_nothing(capsys) -> None:
    list(tracked([1, 2], "work", patience=-1))
    assert capsys.readouterr() == ("", "")


def test_slow_work_of_a_script_without_a_terminal_has_a_line_now_and_then(capsys, monkeypatch) -> None:
    monkeypatch.setattr(progress, "SCRIPT", -1.0)
    list(tracked([1, 2, 3], "digging", patience=-1))
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("digging: 1 of 3, ")


def test_lines_come_where_there_is_no_terminal_if_asked_for(capsys) -> None:
    with in_lines():
        list(tracked([1, 2, 3], "digging", patience=-1))
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[0].startswith("digging: 1 of 3, ")
    assert err.splitlines()[0].endswith(" s left")
    list(tracked([1, 2, 3], "digging", patience=-1))
    assert capsys.readouterr().err == ""


def test_the_last_line_says_that_all_is_done_and_how_long_it_took(capsys) -> None:
    with in_lines():
        list(tracked([1, 2, 3], "digging", patience=-1))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("digging: 1 of 3, ")
    assert re.fullmatch(r"digging: 3 of 3 in [\d.e-]+ s", lines[-1])
    with in_lines():
        list(tracked([1, 2, 3], "digging"))
    assert capsys.readouterr().err == ""  # nobody waited for it


def test_an_estimate_does_not_count_the_start_of_workers(monkeypatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(progress, "monotonic", lambda: clock[0])
    pace = Pace(10, at_once=2)
    for now in (30.0, 30.0, 32.0, 32.0, 34.0):  # two workers that start for 28 s, and take 2 s for each item
        assert pace.left() is None or pace.done > 2
        clock[0] = now
        pace.advance()
    assert 4 <= pace.left() <= 6
    here = Pace(10)
    clock[0] += 3
    here.advance()
    assert here.left() == 27


def test_before_there_is_an_estimate_lines_say_how_much_is_done(capsys) -> None:
    with in_lines():
        list(tracked([1, 2, 3], "digging", patience=-1, at_once=2))
    assert re.match(r"digging: 1 of 3 in [\d.e-]+ s\n", capsys.readouterr().err)


def test_lines_of_work_of_unknown_length_say_how_much_is_done(capsys) -> None:
    with in_lines():
        list(tracked(iter([1, 2, 3]), "digging", patience=-1))
    assert capsys.readouterr().err.startswith("digging: 1 done in ")


def test_quick_work_prints_no_lines(capsys) -> None:
    with in_lines():
        list(tracked([1, 2, 3], "digging"))
    assert capsys.readouterr().err == ""


def test_quiet_work_shows_nothing(capsys) -> None:
    with quiet(), in_lines():
        list(tracked([1, 2, 3], "digging", patience=-1))
        assert "digging" not in shown(lambda: list(tracked([1, 2, 3], "digging", patience=-1)))
    assert capsys.readouterr().err == ""


def test_lines_can_be_given_to_somebody_else_and_say_what_they_are_part_of(capsys) -> None:
    heard: list[str] = []
    with told(heard.append), within("garden"):
        list(tracked([1, 2, 3], "digging", patience=-1))
        assert "digging" not in shown(lambda: list(tracked([1, 2], "digging", patience=-1)))
    list(tracked([1, 2, 3], "digging", patience=-1))
    assert heard[0].startswith("garden: digging: 1 of 3, ")
    assert capsys.readouterr().err == ""


def dug(holes: int) -> int:
    return sum(1 for _ in tracked(range(holes), f"digging {holes}", patience=-1))


def test_the_lines_of_workers_come_to_who_started_them(capfd) -> None:
    heard: list[str] = []
    assert sorted(engine_of("processes").run(dug, [2, 3], heard.append)) == [(2, 2), (3, 3)]
    assert {line.partition(",")[0] for line in heard} >= {"digging 2: 1 of 2", "digging 3: 1 of 3"}
    assert list(engine_of("processes").run(dug, [4])) == [(4, 4)]
    assert capfd.readouterr().err == ""


def test_a_bar_is_there_while_the_first_item_is_worked_on() -> None:
    def slow() -> None:
        for _ in tracked([1], "digging", patience=0):
            until(lambda: on_screen("digging"))

    shown(slow)


@given(st.floats(0, 1e6))
def test_a_duration_is_read_back_within_its_precision(seconds) -> None:
    units = {"s": 1, "min": 60, "h": 3600}
    words = duration(seconds).split()
    read = sum(float(number) * units[unit] for number, unit in zip(words[::2], words[1::2], strict=True))
    assert read == pytest.approx(seconds, rel=0.06 if seconds < 10 else 0, abs=60 if seconds >= 3600 else 0.51)


def begun() -> Iterator[int]:
    """Work whose first item is there, and which nobody goes on with."""
    work = tracked([1, 2, 3], "left", patience=-1)
    next(work)
    return work


def test_work_that_a_failed_call_left_is_over_with_the_call() -> None:
    left = []

    @door
    def call() -> None:
        left.append(begun())
        raise KeyboardInterrupt

    with redirect_stderr(Terminal()):
        with pytest.raises(KeyboardInterrupt):
            call()
        assert not any(thread.name.startswith("Live") for thread in enumerate_threads())
    assert "digging" in shown(lambda: list(tracked([1, 2, 3], "digging", patience=-1)))
    left.clear()


def test_work_that_another_thread_ends_shows_nothing_any_more() -> None:
    left = [begun()]
    other = Thread(target=left.clear)
    other.start()
    other.join()
    assert "digging" in shown(lambda: list(tracked([1, 2, 3], "digging", patience=-1)))


def test_a_call_within_work_that_is_shown_does_not_end_it() -> None:
    @door
    def call() -> None:
        list(tracked([1, 2], "inner", patience=-1))

    def work() -> None:
        for _ in tracked([1, 2, 3], "outer", patience=-1):
            call()

    with in_lines(), redirect_stderr(io.StringIO()) as err:
        work()
    lines = err.getvalue().splitlines()
    assert all(line.startswith("outer: ") for line in lines)
    assert lines[-1].startswith("outer: 3 of 3 in ")

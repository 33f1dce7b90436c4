"""What the commands of jobs share: the explainer that they ask, and how what it finds is shown and written."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from precedents.cli._output import free, put, show, show_json
from precedents.cli._subject import CommandSubject
from precedents.errors import InputError

if TYPE_CHECKING:
    from precedents.explain.explainer import Explainer
    from precedents.explain.jobs._tabled import Tabled
    from precedents.explain.shares import Shares

Csv = Annotated[Path | None, Option("--csv", help="Also write all rows as CSV here.", show_default=False)]
Html = Annotated[Path | None, Option("--html", help="Also write a page with pictures.", show_default=False)]
Some = Annotated[int | None, Option("--cases", help="Only so many first cases.", show_default="all")]

Files = tuple[Path | None, Path | None]  # for CSV and for a page


def files(csv: Path | None, html: Path | None, force: bool) -> Files:
    """The files to write, if they may be."""
    return free(csv, force), free(html, force)


def explainer(chosen: CommandSubject, metric: str) -> "Explainer":
    """Of a command's subject by this metric."""
    from precedents.explain.explainer import Explainer

    return Explainer(chosen.model, chosen.train, metric, **chosen.known_to(Explainer))


def some_cases(chosen: CommandSubject, count: int | None) -> Any:
    """The test set, or its first instances."""
    if count is None:
        return chosen.test
    if not 1 <= count <= len(chosen.test):
        raise InputError(f"--cases is {count}, but the test set has {len(chosen.test)} instances.")
    return chosen.test.selected(range(count))


def one_case(chosen: CommandSubject, case: str) -> Any:
    """One instance of the test set."""
    return chosen.test.selected(case_places(chosen, [case]))


def case_places(chosen: CommandSubject, named: Sequence[str]) -> list[int]:
    """The places in the test set of cases that are named by them, or by their ids: a number is a place."""
    ids, count = chosen.test.ids or (), len(chosen.test)
    found = []
    for each in places(named) or ():
        if each in ids and isinstance(each, str):
            found.append(ids.index(each))
        elif isinstance(each, int) and 0 <= each < count:
            found.append(each)
        else:
            called = f", or have ids, as {ids[0]!r}" if ids else ""
            told = f"the test set has {count}, so cases run from 0 to {count - 1}{called}"
            raise InputError(f"There is no case {each}: {told}.")
    return found


def names(labels: Sequence[str], classes: Sequence[str] | None) -> list[Any]:
    """Classes by their names, or else by their numbers."""
    known = classes or ()
    return [each if each in known else _number(each) for each in labels]


def places(indices: Sequence[str] | None) -> list[int | str] | None:
    """Training instances by their places, and what is no number by its id; none if none are named."""
    return [_number(each) for each in indices] if indices else None


def _number(text: str) -> int | str:
    """The number that a text writes; any other text as it is."""
    return int(text) if re.fullmatch("-?[0-9]{1,18}", text) else text


def told(found: "Tabled | Shares", written: Files, as_json: bool) -> None:
    """Writes what was found to the files, and shows it."""
    csv, html = written
    if csv is not None:
        put(csv, found.to_csv())
    if html is not None:
        put(html, found.to_html())
    if as_json:
        show_json(found.to_json())
    else:
        show(str(found))

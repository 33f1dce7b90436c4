"""What the commands of jobs share: their options, what they ask, and how what it finds is shown and written."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from typer import Option

from precedents.cli._options import Data, Force, Json, Memory, Quiet, RunFolder, Target
from precedents.cli._output import free, put, reporting, show, show_json
from precedents.cli._subject import CommandSubject, subject
from precedents.errors import InputError

if TYPE_CHECKING:
    from precedents.explain.explainer import Explainer
    from precedents.explain.jobs._tabled import Tabled
    from precedents.explain.shares import Shares

Csv = Annotated[Path | None, Option("--csv", help="Also write all rows as CSV here.", show_default=False)]
Html = Annotated[Path | None, Option("--html", help="Also write a page with pictures.", show_default=False)]
Some = Annotated[int | None, Option("--cases", help="Only so many first cases.", show_default="all")]


def _option(name: str, kind: Any, default: bool | None = None) -> Parameter:
    return Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=kind)


ABOUT = [_option("run", RunFolder), _option("target", Target)]  # the options of all jobs before their own
OUTCOME = [  # the options of all jobs after their own
    _option("csv", Csv),
    _option("html", Html),
    _option("memory", Memory),
    _option("data", Data),
    _option("force", Force, False),
    _option("as_json", Json, False),
    _option("quiet", Quiet, False),
]

Files = tuple[Path | None, Path | None]  # for CSV and for a page
JobValue: TypeAlias = "Tabled | Shares"  # by a job


@dataclass(frozen=True, eq=False)
class JobRequest:
    """What a job is asked about: the subject of its command, and `opened`, which opens another run likewise."""

    subject: CommandSubject
    opened: Callable[[Path | None, str | None], CommandSubject]

    def by(self, metric: str, other: CommandSubject | None = None) -> "Explainer":
        """The explainer of the subject by this metric, or that of another."""
        from precedents.explain.explainer import Explainer

        chosen = other or self.subject
        return Explainer(chosen.model, chosen.train, metric, **chosen.known_to(Explainer))

    def case(self, named: str) -> Any:
        """One instance of the test set."""
        return self.subject.test.selected(case_places(self.subject, [named]))

    def cases(self, count: int | None) -> Any:
        """The test set, or its first instances."""
        test = self.subject.test
        if count is None:
            return test
        if not 1 <= count <= len(test):
            raise InputError(f"--cases is {count}, but the test set has {len(test)} instances.")
        return test.selected(range(count))


def job(ask: Callable[..., JobValue]) -> Callable[..., None]:
    """A command that shows and writes what `ask` finds: with its own options, and those that all jobs have."""
    own = list(signature(ask).parameters.values())[1:]
    needed = [each for each in own if each.default is each.empty]
    every = [*needed, *ABOUT, *(each for each in own if each not in needed), *OUTCOME]

    @wraps(ask)
    def command(**given: Any) -> None:
        written = files(given["csv"], given["html"], given["force"])

        def opened(run: Path | None, target: str | None) -> CommandSubject:
            return subject(run, target, given["data"]).told(memory=given["memory"])

        with reporting(given["quiet"]):
            asked = JobRequest(opened(given["run"], given["target"]), opened)
            _told(ask(asked, **{each.name: given[each.name] for each in own}), written, given["as_json"])

    command.__signature__ = Signature(every)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in every}
    return command


def files(csv: Path | None, html: Path | None, force: bool) -> Files:
    """The files to write, if they may be."""
    return free(csv, force), free(html, force)


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
    return [int(each) if each not in known and each.lstrip("-").isdigit() else each for each in labels]


def places(indices: Sequence[str] | None) -> list[int | str] | None:
    """Training instances by their places, and what is no number by its id; none if none are named."""
    return [int(each) if each.lstrip("-").isdigit() else each for each in indices] if indices else None


def _told(found: JobValue, written: Files, as_json: bool) -> None:
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

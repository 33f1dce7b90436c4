"""precedents audit: which relevance metrics may be believed on this model and these data."""

import json
import shlex
import sys
from collections.abc import Sequence
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Exit, Option

from precedents import __version__
from precedents.cli._engine import chosen_engine
from precedents.cli._names import criterion_names, items, metric_items, metric_names
from precedents.cli._options import (
    Address,
    Data,
    DryRun,
    EngineName,
    Force,
    Json,
    Memory,
    OneMetric,
    Quiet,
    RunFolder,
    Target,
)
from precedents.cli._output import free, put, reporting, say, show, show_estimate, show_json
from precedents.cli._subject import subject
from precedents.criteria._verdict import VerdictRule
from precedents.errors import InputError
from precedents.runtime.given import share

if TYPE_CHECKING:
    from precedents.criteria._result import Result

BELOW = 1
KEPT = 2  # the format of kept audits


def audit(
    run: RunFolder = None,
    target: Target = None,
    metrics: Annotated[
        list[str] | None,
        Option(help="Metrics, with commas between.", autocompletion=metric_names, show_default="all eighteen"),
    ] = None,
    criteria: Annotated[
        list[str] | None,
        Option(
            help="Criteria, with commas between.", autocompletion=criterion_names, show_default="all that can"
        ),
    ] = None,
    rule: Annotated[
        VerdictRule | None,
        Option(
            help="How verdicts are reached: interval (earned, or undecided) or paper (by the means alone).",
            show_default="interval",
        ),
    ] = None,
    cases: Annotated[int, Option(min=1, help="How many instances of the test set, from its first.")] = 200,
    report: Annotated[Path | None, Option(help="Write the report page here.", show_default=False)] = None,
    name: Annotated[str, Option(help="What the report calls the model.", show_default="its type")] = "",
    fail_under: Annotated[
        float | None,
        Option(min=0, max=1, help="Exit with 1 if the --metric has a lower success rate.", show_default=False),
    ] = None,
    metric: OneMetric = "gc",
    keep: Annotated[
        Path | None,
        Option(help="Where finished work is kept, to go on from.", show_default="in the run folder"),
    ] = None,
    memory: Memory = None,
    within: Annotated[
        str | None,
        Option(help="What all work may take, as '10 min'; the rest is left out.", show_default="1 h"),
    ] = None,
    afford: Annotated[
        float | None, Option(help="Seconds that explaining one case may take.", show_default=False)
    ] = None,
    engine: EngineName = None,
    address: Address = None,
    data: Data = None,
    force: Force = False,
    dry_run: DryRun = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Puts relevance metrics on trial on a model: verdicts, intervals, chance levels, a recommendation.

    The success rate of a metric is the least of its identical class and identical subclass rates. Interrupted
    or killed, the same command goes on where it stopped. What cannot be afforded is left out, with the reason.

    Examples:
      $ precedents audit runs/digits-logistic_regression --metrics gc,gd,cos_x --report page.html --name Digits
      $ precedents audit runs/digits-logistic_regression --metrics gc,gd,cos_x --cases 50 --fail-under 0.9
      $ precedents audit runs/digits-logistic_regression --criteria "identical_class(k=5)" --json
      $ precedents audit runs/digits-logistic_regression --metrics gc,cos_x --cases 50 --rule paper
      $ precedents audit runs/digits-logistic_regression --cases 20 --memory "500 MB" --within "10 min"
      $ precedents audit runs/digits-logistic_regression --metrics gc,cos_x --cases 50 --engine processes
      $ precedents audit runs/digits-logistic_regression --dry-run
      $ precedents audit --target my_model:factory --metrics gc --keep kept

    """
    report = free(report, force)
    if fail_under is not None:
        share(fail_under, "--fail-under")
    wanted = {"metrics": metric_items(metrics), "criteria": items(criteria), "rule": rule}
    if keep is None and run is not None:
        keep = run / kept_folder(cases, **wanted)
    place = None if keep is None else keep.absolute()  # wherever a user's code may go
    with reporting(quiet, _interrupted(keep)):
        from precedents.audit.agenda import Agenda
        from precedents.audit.estimate import estimate
        from precedents.audit.front_door import audit as audited
        from precedents.audit.limits import Limits
        from precedents.metrics.paper import metric as metric_of

        metric_of(metric)
        if fail_under is not None:
            _can_hold(metric, wanted["metrics"], wanted["criteria"])
        chosen = subject(run, target, data).told(
            keep=place,
            memory=memory,
            within=within,
            afford=afford,
            engine=chosen_engine(engine, address),
            **wanted,
        )
        test = chosen.test.selected(range(min(cases, len(chosen.test))))
        if dry_run:
            agenda = Agenda.of(chosen.trial(test), **chosen.known_to(Agenda.of))
            show_estimate(estimate(agenda, Limits.of(**chosen.known_to(Limits.of))), as_json)
            return
        found = audited(chosen.model, chosen.train, test, **chosen.options)
        if report is not None:
            put(report, found.to_html(shlex.join(["precedents", *sys.argv[1:]]), name))
        if as_json:
            show_json(found.to_json())
        else:
            show(found)
        least = None if fail_under is None else found.least(metric)
    if least is not None and fail_under is not None:
        _hold(metric, least, fail_under)


def _can_hold(metric: str, metrics: Sequence[str] | None, criteria: Sequence[str] | None) -> None:
    """Refuses, before any work, what would have no success rate of this `metric` in the end."""
    from precedents.criteria import CRITERIA
    from precedents.criteria._judgement import by_text
    from precedents.metrics.paper import METRICS, name_of
    from precedents.metrics.paper import metric as metric_of

    known = [name_of(metric_of(each)) for each in (METRICS if metrics is None else metrics)]
    if known and name_of(metric_of(metric)) not in known:
        others = f"{', '.join(known)}. Pass --metric {known[0]}, or name {metric} in --metrics."
        raise InputError(f"--fail-under is of --metric {metric}, but this audit has {others}")
    if criteria and not any(each.counts for each in by_text(criteria).values()):
        counting = " or ".join(each for each in CRITERIA.names() if CRITERIA.get(each).counts)
        raise InputError(f"--fail-under is of {counting}. Name one of them in --criteria.")


def _hold(metric: str, least: "Result", under: float) -> None:
    """Ends with an exit code where the least success rate is lower, and says where the cases do not tell."""
    told = f"precedents: The success rate of {metric} is {least.mean:.3f}"
    if not least.mean >= under:  # also where it is no number
        say(f"{told}, below {under}.")
        raise Exit(BELOW)
    if least.low < under:
        over = f"over {len(least.values)} cases its 95% interval begins at {least.low:.3f}"
        say(f"{told}, but {over}: a true rate below {under} is not excluded. Take more --cases.")


def kept_folder(cases: int, **wanted: Any) -> str:
    """The folder in a run that an audit is kept in; its name differs when settings, versions or format do."""
    asked = {"metrics": None, "criteria": None, "rule": None} | wanted
    settings = [asked, cases, __version__, version("torch"), KEPT]
    return f"audit-{blake2b(json.dumps(settings, sort_keys=True).encode(), digest_size=4).hexdigest()}"


def _interrupted(keep: Path | None) -> str:
    if keep is None:
        return "Interrupted: nothing was kept. With --keep FOLDER the same command can go on where it stopped."
    return f"Interrupted: what is finished is kept in {keep}, and the same command goes on from there."

"""precedents explore: pages about a model's cases and their precedents, in the browser."""

import webbrowser
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from precedents.cli._names import metric_items, metric_names
from precedents.cli._options import Data, Memory, Quiet, RunFolder, Target
from precedents.cli._output import reporting, show
from precedents.cli._subject import subject
from precedents.cli.audit import kept_folder
from precedents.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from precedents.audit.audit import Audit

METRICS = "gc,cos_last,gd"
HOST = "127.0.0.1"
KEPT = "explorer"  # the folder in a run


def explore(
    run: RunFolder = None,
    target: Target = None,
    metrics: Annotated[
        list[str] | None,
        Option(help="Metrics, with commas between.", autocompletion=metric_names, show_default=METRICS),
    ] = None,
    index: Annotated[
        Path | None,
        Option(metavar="FOLDER", help="Answer from an index, which `index build` makes.", show_default=False),
    ] = None,
    audit: Annotated[
        Path | None,
        Option(help="What `precedents audit --json` printed of this model.", show_default=False),
    ] = None,
    keep: Annotated[
        Path | None,
        Option(help="Where answers and tags are kept.", show_default="in the run folder"),
    ] = None,
    port: Annotated[int, Option(help="Where it listens; 0 is any port that is free.")] = 0,
    no_browser: Annotated[bool, Option("--no-browser", help="Do not open a browser.")] = False,
    host: Annotated[str, Option(help="The address of this machine that it listens on.")] = HOST,
    allow_remote: Annotated[
        bool, Option("--allow-remote", help="Allow a --host beyond this machine; needs TLS.")
    ] = False,
    certificate: Annotated[Path | None, Option(help="For TLS: a file in PEM.", show_default=False)] = None,
    key: Annotated[Path | None, Option(help="Its private key, in PEM.", show_default=False)] = None,
    memory: Memory = None,
    data: Data = None,
    quiet: Quiet = False,
) -> None:
    """Opens pages about all cases, their precedents, the training set and the metrics, in the browser.

    The first line on stdout is the address, with a token that is new at every start: whoever has it sees the
    data. All cases are explained in the background and kept, so that the next start has them at once. Ctrl-C
    ends it.

    Examples:
      $ precedents explore runs/digits-logistic_regression --no-browser
      $ precedents explore --target my_model:factory --metrics gc,cos_x --port 8123 --no-browser

    """
    again: dict[str, Any] = {
        "--metrics": ",".join(metrics or []),
        "--index": index,
        "--audit": audit,
        "--keep": keep,
    }
    again |= {"--port": port, "--host": host if host != HOST else None, "--allow-remote": allow_remote}
    again |= {"--certificate": certificate, "--key": key, "--memory": memory, "--no-browser": no_browser}
    names = metric_items(metrics or [METRICS]) or []
    keep = keep if keep is not None or run is None else run / KEPT
    with reporting(quiet, "The explorer has ended."):
        try:
            from precedents.audit.ledger import MANIFEST
            from precedents.explorer.findings import audited as audit_of
            from precedents.explorer.front_door import CASES
            from precedents.explorer.origin import Provenance
            from precedents.explorer.running import started
            from precedents.explorer.server import Listener
            from precedents.explorer.store import refuse_file
            from precedents.explorer.world import World
        except ModuleNotFoundError as error:
            raise MissingExtraError(error.name or "starlette", "explorer") from None
        from precedents.audit.front_door import audit as audited
        from precedents.explain.explainer import Explainer

        place = Listener(host, port, allow_remote, certificate, key)
        refuse_file(keep, "--keep")
        found = None if audit is None else _read(audit)
        chosen = subject(run, target, data).told(memory=memory)
        known = chosen.known_to(Explainer) | {"audit": found}
        if index is None:
            explainer = Explainer(chosen.model, chosen.train, names[0], **known)
        else:
            explainer = Explainer.load(index, chosen.model, chosen.train, **known)
        cases = chosen.test.selected(range(min(CASES, len(chosen.test))))
        options = chosen.told(keep=None if run is None else run.absolute() / kept_folder(CASES)).options
        world = World.of(
            explainer,
            chosen.test,
            names if index is not None and metrics is not None else names[1:],
            Provenance(
                run=text_of(run),
                target=target,
                **chosen.returned(Explainer),
                data=text_of(data),
                index=text_of(index),
                indexed="" if index is None else explainer.name,
                again=options_of(again),
            ),
            folder=None if keep is None else keep.absolute(),
            audit=found,
            auditing=partial(audited, chosen.model, chosen.train, cases, **options),
            name=str(chosen.options.get("name", "")),
        )
        explorer = started(world, place)
        show(explorer.address)
        if found is None and run is not None and (run / kept_folder(CASES) / MANIFEST).is_file():
            world.jobs.ask("audit", "audit", partial(audit_of, world), lasting=True)
        if not no_browser:
            webbrowser.open(explorer.address)
        explorer.wait()


def text_of(given: Path | None) -> str | None:
    """A path as it was typed."""
    return None if given is None else str(given)


def options_of(given: "Mapping[str, Any]") -> tuple[str, ...]:
    """The words of the options that were given.

    >>> options_of({"--metrics": "gc,gd", "--port": 0, "--no-browser": True, "--keep": None})
    ('--metrics', 'gc,gd', '--no-browser')
    """
    return tuple(
        w for name, value in given.items() if value for w in ((name,) if value is True else (name, str(value)))
    )


def _read(path: Path) -> "Audit":
    from precedents.audit.audit import Audit

    if not path.is_file():
        raise InputError(f"{path} is no file. Write one: precedents audit RUN --json > {path}")
    return Audit.from_json(path.read_text(encoding="utf-8"))

"""explore: the explorer of an explainer and its test set, in a script or a notebook."""

import webbrowser
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from precedents.audit.audit import Audit
from precedents.audit.front_door import audit as audited
from precedents.errors import InputError, MissingExtraError
from precedents.explain.explainer import Explainer
from precedents.runtime.door import door
from precedents.runtime.given import path, whole_number
from precedents.runtime.wording import a_type

if TYPE_CHECKING:
    from precedents.explorer.running import Explorer

CASES = 200  # of an audit that is asked for on its page


@door
def explore(
    explainer: Explainer,
    test: Any = None,
    *,
    metrics: Sequence[str] = (),
    audit: Audit | None = None,
    keep: str | Path | None = None,
    port: int = 0,
    proxy: str | None = None,
    browser: bool = False,
) -> "Explorer":
    """Starts the explorer of a model in a thread: pages about all cases, their precedents and the training set.

    It needs the extra `explorer`. Whoever has its address, which is new at every start, can see the data.

    explainer: of the model; its metric is the first of the explorer.
    test: the cases, with labels; a Trainer brings its own.
    metrics: more metrics, by which all cases are explained too.
    audit: what `precedents.audit` found of this model: headings say which metrics it may be believed by.
    keep: a folder for what was computed, so that the next start has it at once; and for tags.
    port: where it listens on this machine; any that is free without it.
    proxy: the address at which a proxy serves it, as Jupyter's "https://hub.example.org/user/me/proxy/8123/".
    browser: whether a browser is opened.
    """
    if not isinstance(explainer, Explainer):
        raise InputError(
            f"explainer is {a_type(explainer)}. Pass one: pr.explore(pr.Explainer(model, train), test)."
        )
    try:
        from precedents.explorer.origin import Provenance
        from precedents.explorer.running import started
        from precedents.explorer.server import Listener
        from precedents.explorer.store import refuse_file
        from precedents.explorer.world import World
    except ModuleNotFoundError as error:
        raise MissingExtraError(error.name or "starlette", "explorer") from None
    folder = None if keep is None else path(keep, "keep")
    refuse_file(folder, "keep=")
    subject = explainer.subject
    cases = subject.test(test)
    if audit is not None:
        audit.about(explainer.name, subject)
    place = Listener(port=whole_number(port, "port", least=0))
    shown: dict[str, Any] = {"classes": subject.classes, "render": subject.render, "name": subject.name}
    few = cases.selected(range(min(CASES, len(cases))))
    world = World.of(
        explainer,
        cases,
        metrics,
        Provenance(),
        folder=folder,
        audit=audit,
        auditing=partial(audited, subject.classifier, subject.train, few, **shown),
    )
    explorer = started(world, place, framed=True, proxy=proxy)
    if browser:
        webbrowser.open(explorer.address)
    return explorer

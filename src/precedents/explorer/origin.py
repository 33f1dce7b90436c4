"""Provenance: where a model comes from, so that what a page shows can be typed again, in Python or a shell."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

RUN = """from pathlib import Path
import precedents as pr
from precedents.zoo.run import Run

run = Run.open(Path({place!r}))
data, test = run.prepared.dataset, run.prepared.test
shown = {{"classes": data.classes, "render": data.render, "vectorise": data.vectorise}}
explainer = pr.Explainer(run.model, run.prepared.train, {metric!r}, **shown)
"""
TARGET = """import precedents as pr
from {module} import {function}

model, train, test = {function}()
test = pr.Examples.of(test)
explainer = pr.Explainer(model, train, {metric!r})
"""
SCRIPT = """import precedents as pr

test = pr.Examples.of(test)
explainer = pr.Explainer(model, train, {metric!r})
"""


@dataclass(frozen=True)
class Provenance:
    """A run folder, a factory of the user's, or an explainer of a script; at most one of the first two."""

    run: str | None = None
    target: str | None = None

    def python(self, metric: str, line: str) -> str:
        """Python that makes the explainer of a metric, and a line that uses it."""
        if self.run is not None:
            begun = RUN.format(place=self.run, metric=metric)
        elif self.target is not None:
            module, _, function = self.target.partition(":")
            begun = TARGET.format(module=module, function=function, metric=metric)
        else:
            begun = SCRIPT.format(metric=metric)
        return f"{begun}{line}\n"

    def command(self, *words: str) -> str:
        """A command of the shell about this model; empty if no command can know it."""
        subject: Sequence[str] = (
            [self.run] if self.run is not None else ["--target", self.target] if self.target is not None else []
        )
        return shlex.join(["precedents", words[0], *subject, *words[1:]]) if subject else ""

"""Provenance: where a model comes from, so that what a page shows can be typed again, in Python or a shell."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

RUN = """from pathlib import Path
import precedents as pr
from precedents.zoo.run import Run

run = Run.open({place})
data, test = run.prepared.dataset, run.prepared.test
shown = {{"classes": data.classes, "render": data.render, "vectorise": data.vectorise}}
explainer = {explainer}
"""
TARGET = """import precedents as pr
from {module} import {function}

{opened}
explainer = {explainer}
test = explainer.subject.test(test)
"""
SCRIPT = """import precedents as pr

explainer = {explainer}
test = explainer.subject.test(test)
"""
OPENED = {  # by what a factory returns
    "three": "model, train, test = {function}()",
    "two": "(model, train), test = {function}(), None",
    "one": "model, train, test = {function}(), None, None",
    "mapping": 'made = {function}()\nmodel, train, test = map(made.get, ("model", "train", "test"))',
}


@dataclass(frozen=True)
class Provenance:
    """A run folder, a factory of the user's, or an explainer of a script; at most one of the first two."""

    run: str | None = None
    target: str | None = None
    form: str = "three"  # what the factory returns, a key of `OPENED`,
    options: Sequence[str] = ()  # and of a mapping the keys that an explainer takes besides
    data: str | None = None  # the folder of the files of data sets
    index: str | None = None  # the folder of an index,
    indexed: str = ""  # and its metric
    again: Sequence[str] = ()  # options of the command that started the explorer

    def python(self, metric: str, line: str) -> str:
        """Python that makes the explainer of a metric, and a line that uses it."""
        if self.run is not None:
            folders = [f"Path({each!r})" for each in (self.run, self.data) if each is not None]
            explainer = self._explainer("run.model, run.prepared.train", metric, "**shown")
            begun = RUN.format(place=", ".join(folders), explainer=explainer)
        elif self.target is not None:
            module, _, function = self.target.partition(":")
            told = [f"{name}=made[{name!r}]" for name in self.options]
            explainer = self._explainer("model, train", metric, *told)
            opened = OPENED[self.form].format(function=function)
            begun = TARGET.format(module=module, function=function, opened=opened, explainer=explainer)
        else:
            begun = SCRIPT.format(explainer=self._explainer("model, train", metric))
        return f"{begun}{line}\n"

    def _explainer(self, sets: str, metric: str, *told: str) -> str:
        """Python that is the explainer of a model and its training set: of the index, where that answers."""
        if self.index is not None and metric == self.indexed:
            return f"pr.Explainer.load({', '.join([repr(self.index), sets, *told])})"
        return f"pr.Explainer({', '.join([sets, repr(metric), *told])})"

    def command(self, name: str, *words: str, metric: str | None = None) -> str:
        """A command of the shell about this model, by a metric; empty if no command can know it."""
        if self.run is None and self.target is None:
            return ""
        subject = [self.run] if self.run is not None else ["--target", str(self.target)]
        told = [] if metric is None else ["--metric", metric]
        if name == "explain" and self.index is not None and metric == self.indexed:
            told += ["--index", self.index]
        if self.data is not None:
            told += ["--data", self.data]
        return shlex.join(["precedents", name, *subject, *words, *told])

    @property
    def restart(self) -> str:
        """The command that starts this explorer again."""
        return self.command("explore", *self.again)

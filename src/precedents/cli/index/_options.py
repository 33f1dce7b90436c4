"""Options that the commands of this group share, and what their processes make the model of."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from precedents.cli._options import steady
from precedents.cli._subject import CommandSubject, subject

if TYPE_CHECKING:
    from precedents.index.build import Given
    from precedents.metrics.relevance import Relevance

IndexPath = Annotated[
    Path, Option("--index", metavar="FOLDER", callback=steady, help="The folder of the index.")
]


@dataclass(frozen=True)
class Named:
    """A run or a target, of which any process makes the model and the training set."""

    run: Path | None
    target: str | None
    data: Path | None
    metric: str

    def __call__(self, memory: int | str) -> "Relevance":
        """The metric for them, not fitted yet."""
        return given(self.subject(), self.metric)(memory)

    def subject(self) -> CommandSubject:
        """The model, the training set and what else is known."""
        return subject(self.run, self.target, self.data)


def given(chosen: CommandSubject, metric: str) -> "Given":
    """What an index is of."""
    from precedents.index.build import Given

    return Given(chosen.model, chosen.train, metric, told(chosen))


def told(chosen: CommandSubject) -> dict[str, Any]:
    """Of the options those that say what the model and the data are."""
    from precedents.index.index import IndexOptions

    known = IndexOptions.__optional_keys__ - {"memory", "rows", "shard"}
    return {name: value for name, value in chosen.options.items() if name in known}

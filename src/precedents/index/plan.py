"""The plan of an index: written first, never changed; its hash is in every file that is made by it.

It says of which model, metric and rows the index is, how the rows are divided into shards and batches, and with
how much memory and how many threads they are computed: so that whoever makes a shard makes the same bytes.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from shlex import quote
from typing import Any

import torch
from torch import Tensor

from precedents._version import __version__
from precedents.classifier.behaviour import behaviour, differences, tolerance
from precedents.data.examples import Examples
from precedents.errors import FormatError, StaleError, StoreError
from precedents.gradients.gradients import planned
from precedents.index.codes import BUCKETS, EXACT, KEPT, LEFT
from precedents.index.origin import VECTORS, Origin, or_made_by, other_features, row_marks, vectors_told
from precedents.index.recall import Recall
from precedents.metrics.features.gradient import gradient
from precedents.metrics.relevance import Relevance
from precedents.runtime.advice import typed
from precedents.runtime.atomic import stored
from precedents.runtime.progress import tracked
from precedents.runtime.sealed import sealed, unsealed
from precedents.runtime.strict_json import loads, text_of

Write = Callable[[Path, str | bytes], None]  # how a file is written

FORMAT = 3
CODE = (KEPT, LEFT, EXACT, BUCKETS)
PLAN = "plan.json"
ROWS = 4096  # of a shard
TRIED = 64  # instances by which whoever joins a build shows that its model is the same
COLUMNS = ("logits", "losses")


@dataclass(frozen=True)
class PlannedShard:
    """Consecutive rows, and a mark of all of them with their labels."""

    start: int
    stop: int
    mark: str

    @property
    def places(self) -> range:
        """The places of its rows in the training set."""
        return range(self.start, self.stop)


@dataclass(frozen=True)
class IndexPlan:
    """What an index is of, and how it is made."""

    metric: str
    origin: Origin
    shards: Sequence[PlannedShard]
    batch: int  # rows that are computed at once
    memory: int  # bytes that whoever makes a shard may use
    threads: int
    sample: int  # rows that the basis is made of
    labels: str  # a mark of the labels of all rows up to these
    code: Sequence[int]  # coordinates, buckets of the rest, columns without a sketch, buckets of longer rows
    behaviour: Mapping[str, Any]  # what the model makes of a few of the rows
    before: str = ""  # the hash of the plan whose rows these are added to, if any
    shift: int = 0  # how many rows before these were removed when these were added
    version: str = __version__
    format: int = FORMAT

    @classmethod
    def of(cls, relevance: Relevance, memory: int, rows: int) -> "IndexPlan":
        """For all rows of a training set, with so many in a shard."""
        every = range(len(relevance.workspace.train))
        return cls(
            metric=str(relevance.metric),
            origin=Origin.of(relevance),
            shards=_shards(relevance.workspace.train, every, rows),
            batch=_batch(relevance),
            memory=memory,
            threads=torch.get_num_threads(),
            sample=Recall(relevance).sample,
            labels=_labels(relevance, len(every)),
            code=CODE,
            behaviour=behaviour_of_few(relevance, every),
        )

    def added(self, relevance: Relevance, removed: int) -> "IndexPlan":
        """For the rows of a larger training set that come after these, of which some were removed."""
        train, first = relevance.workspace.train, self.places.stop
        places = range(first, len(train) + removed)
        shards = _shards(train, places, len(self.shards[0].places), removed)
        found = behaviour_of_few(relevance, range(first - removed, len(train)))
        labels = _labels(relevance, len(train))
        return replace(self, shards=shards, before=self.hash, shift=removed, behaviour=found, labels=labels)

    @cached_property
    def text(self) -> str:
        """The plan as its file has it: JSON with a checksum."""
        return sealed(json.dumps(asdict(self), indent=1)) + "\n"

    @cached_property
    def hash(self) -> str:
        """Which names all that is made by it."""
        return blake2b(self.text.encode(), digest_size=16).hexdigest()

    @property
    def seal(self) -> Tensor:
        """The hash as a tensor, to be in a file of tensors."""
        return torch.tensor(list(bytes.fromhex(self.hash)), dtype=torch.uint8)

    @property
    def places(self) -> range:
        """The places in the training set of all rows of the plan."""
        return range(self.shards[0].start, self.shards[-1].stop)

    @classmethod
    def read(cls, path: Path) -> "IndexPlan":
        """A plan that was written; a damaged one is refused, and one of another version."""
        try:
            content = unsealed(text_of(path).encode())
            values = None if content is None else loads(content)
            if values is not None and (values["format"], values["version"]) != (FORMAT, __version__):
                raise FormatError(
                    f"{path} has the format {values['format']} of version {values['version']}; this is version "
                    f"{__version__}, which reads its own format {FORMAT}. {again(path.parent)}"
                )
            if values is not None:
                shards = [PlannedShard(**each) for each in values["shards"]]
                return cls(**{**values, "origin": Origin(**values["origin"]), "shards": shards})
        except OSError as error:
            raise StoreError(f"{path} cannot be read: {error}.") from error
        except (ValueError, KeyError, TypeError) as error:
            if isinstance(error, FormatError):
                raise
            raise FormatError(f"{path} is damaged: {error}. {again(path.parent)}") from None
        raise FormatError(f"{path} is damaged: it has no checksum. {again(path.parent)}")

    def write(self, path: Path, by: Write = stored) -> None:
        """Whole or not at all."""
        by(path, self.text)

    def refuse(self, relevance: Relevance, folder: Path) -> None:
        """Refuses a model or a metric that the plan is not of, by what differs."""
        found = list(self.origin.differences(Origin.of(relevance)))
        if tuple(self.code) != CODE:
            found.append(f"the size of the codes ({tuple(self.code)} then, {CODE} now)")
        found = found or list(otherwise(self.behaviour, relevance))
        if not found and self.labels != _labels(relevance, self.places.stop - self.shift):
            found = ["the labels of the training set"]
        refuse(found, folder)


def otherwise(then: Mapping[str, Any], relevance: Relevance) -> Iterator[str]:
    """Which of the few rows that `behaviour_of_few` told of are others, or what is made otherwise of them."""
    places, n = then["places"], len(relevance.workspace.train)
    if places[-1] >= n:
        yield f"the number of training instances (more than {places[-1]} then, {n} now)"
        return
    now, within = _behaviour(relevance, places), tolerance(relevance.workspace.classifier)
    other = [place for place, row, here in zip(places, then["rows"], now["rows"], strict=True) if row != here]
    if other:
        yield f"rows or labels of the training set (at {other[0]}){or_made_by(relevance)}"
        return
    before, here = (
        {name: torch.tensor(each[name], dtype=torch.double) for name in COLUMNS} for each in (then, now)
    )
    told = [each.partition(" (")[0] for each in differences(before, here, within)]
    yield from told or other_features(then["vectors"], relevance, within)


def behaviour_of_few(relevance: Relevance, places: range) -> dict[str, Any]:
    """What the model and its loss make of evenly spaced instances and the largest, and some vectors."""
    found = _behaviour(relevance, sorted({*spread(places, TRIED), relevance.workspace.train.largest[0]}))
    return {**found, "vectors": vectors_of_few(relevance, places)}


def vectors_of_few(relevance: Relevance, places: range) -> dict[str, Any]:
    """What tells the features of the largest and evenly spaced instances; where these are zero, of others."""
    train = relevance.workspace.train
    if train.ordered:  # whose later instances are dear to read
        return vectors_told(relevance, places[:VECTORS])
    first = [train.largest[0], *spread(places, VECTORS), *spread(places, TRIED)]
    return vectors_told(relevance, list(dict.fromkeys(first)))


def _batch(relevance: Relevance) -> int:
    """How many rows are computed at once: those of one pass, so that passes are the same everywhere."""
    vectors = relevance.vectors
    own = planned(relevance.workspace.classifier).size if vectors.features is gradient else vectors.at_once
    return min(vectors.at_once, own)


def _behaviour(relevance: Relevance, places: Sequence[int]) -> dict[str, Any]:
    """What the model and its loss make of some instances."""
    few = relevance.workspace.train.selected(places)
    found = behaviour(relevance.workspace.classifier, few, seen=False)
    numbers = {name: found[name].tolist() for name in COLUMNS}
    own = [f"{mark.hex()} {label}" for mark, label in zip(few.marks(), few.labels.tolist(), strict=True)]
    return {"places": list(places), "rows": own, **numbers}


def spread(places: range, most: int) -> list[int]:
    """Evenly spaced places, the first and the last among them."""
    count = min(most, len(places))
    return sorted({places[i * (len(places) - 1) // max(1, count - 1)] for i in range(count)})


def _shards(train: Examples, places: range, rows: int, shift: int = 0) -> list[PlannedShard]:
    """The rows in shards, each with its mark; they are read at their places less the shift."""
    starts, found = range(places.start, places.stop, rows), []
    for start in tracked(starts, "marks of the rows"):
        stop = min(start + rows, places.stop)
        found.append(PlannedShard(start, stop, mark_of(train, range(start - shift, stop - shift))))
    return found


def _labels(relevance: Relevance, n: int) -> str:
    """A mark of the first n labels."""
    labels = relevance.workspace.train.labels[:n].numpy().tobytes()
    return blake2b(labels, digest_size=16).hexdigest()


def mark_of(train: Examples, places: range) -> str:
    """A text that differs when a row, a label or the order of these differs."""
    labels = train.labels[places.start : places.stop].numpy().tobytes()
    return blake2b(row_marks(train, places).numpy().tobytes() + labels, digest_size=16).hexdigest()


def refuse(found: Sequence[str], folder: Path, advice: str | None = None) -> None:
    """Refuses what an index is not of; without advice it is to be built again."""
    if found:
        told = advice or again(folder)
        raise StaleError(f"{folder} does not fit, for these differ: {'; '.join(found)}. {told}")


def again(folder: Path) -> str:
    """What to do with an index that cannot be used."""
    return f"Build it again, elsewhere or when it is removed: {build_of(folder)}"


def build_of(folder: Path) -> str:
    """How an index is built, or goes on."""
    return typed(
        f"Index.build(model, train, {str(folder)!r})",
        f"precedents index build {{of}} --index {quote(str(folder))}",
    )


def number_of(then: int, now: int) -> str:
    """In words that the training set has another size."""
    return f"the number of training instances ({then} then, {now} now)"


def refuse_grown(then: int, now: int, folder: Path) -> None:
    """Refuses a training set with more instances than an index has, with what adds them."""
    told = typed(
        f"add them: Index.extend({str(folder)!r}, model, train), or index.add(rows) before the set has grown",
        f"add them: precedents index add {{of}} --index {quote(str(folder))}",
    )
    if now > then:
        found = [number_of(then, now)]
        rather = again(folder).replace("Build", "build", 1)
        refuse(found, folder, f"If the new ones stand at its end, {told}. Otherwise {rather}")


@contextmanager
def threads(count: int) -> Iterator[None]:
    """As many threads of torch within."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)

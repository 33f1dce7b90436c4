"""What records say: values by setting, piece of work and repeat, and outcomes as estimates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, final

from precedents.errors import FormatError, InputError, UnknownNameError
from precedents.reproduction import records
from precedents.reproduction.published import is_rate, published
from precedents.reproduction.records import Piece, Records


@final
@dataclass(frozen=True)
class RepeatedValue:
    """One number for each repeat, and what goes with them."""

    values: tuple[float, ...]
    cases: float | None = None  # of a repeat, on average
    chance: float | None = None
    nulls: tuple[float, ...] = ()  # halves of the null intervals: over training instances, over cases

    @property
    def mean(self) -> float:
        """The mean over the repeats."""
        return fmean(self.values)

    @property
    def std(self) -> float | None:
        """Over the repeats; of a single one there is none."""
        return stdev(self.values) if len(self.values) > 1 else None

    @property
    def repeats(self) -> int:
        """How many there are."""
        return len(self.values)


@dataclass(frozen=True)
class SettingResults:
    """All that is recorded of one setting."""

    setting: str
    header: Mapping[str, Any]
    pieces: Mapping[Piece, Mapping[int, Any]]  # a value by repeat

    def of(self, *piece: str) -> list[Any]:
        """The values of a piece by repeat, in the order of the repeats."""
        found = self.pieces.get(piece, {})
        return [found[repeat] for repeat in sorted(found)]

    def under(self, kind: str) -> dict[str, list[Any]]:
        """The values of all pieces (kind, name), by name; empty ones, of what has no meaning, are left out."""
        found = {piece[1]: self.of(*piece) for piece in self.pieces if len(piece) == 2 and piece[0] == kind}
        return {name: kept for name, values in found.items() if (kept := [value for value in values if value])}

    def outcome(self, metric: str, criterion: str) -> RepeatedValue | None:
        """How a metric did by a criterion, if it was tried."""
        there = [value for value in self.of("outcome", metric, criterion) if "mean" in value]
        if not there:
            return None
        chances = [value["chance"] for value in there if value.get("chance") is not None]
        nulls = [tuple(value["nulls"].values()) for value in there if value.get("nulls")]
        return RepeatedValue(
            tuple(value["mean"] for value in there),
            fmean(value["count"] for value in there),
            fmean(chances) if chances else None,
            tuple(map(fmean, zip(*nulls, strict=False))),
        )

    def missing(self, metric: str, criterion: str) -> str:
        """Why there is no outcome: the recorded reason, or none yet."""
        reasons = (value.get("missing") for value in self.of("outcome", metric, criterion))
        return next(filter(None, reasons), "")

    def tried(self, criterion: str | None = None) -> list[str]:
        """The metrics with outcomes by a criterion, or by any."""
        found = (p for p in self.pieces if p[0] == "outcome" and criterion in (None, p[2]))
        return list(dict.fromkeys(piece[1] for piece in found))

    def criteria(self) -> list[str]:
        """The criteria that there are outcomes by."""
        return list(dict.fromkeys(piece[2] for piece in self.pieces if piece[0] == "outcome"))

    def model(self, kind: str, what: str) -> RepeatedValue | None:
        """A number of the models `trained` or `merged`, such as `test accuracy`."""
        there = [value[what] for value in self.of("model", kind) if value.get(what) is not None]
        return RepeatedValue(tuple(there)) if there else None

    @property
    def repeats(self) -> int:
        """How many repeats there is anything of."""
        return len({repeat for values in self.pieces.values() for repeat in values})


@dataclass(frozen=True)
class Duration:
    """Seconds that a piece of work took."""

    setting: str
    repeat: int
    piece: Piece
    seconds: float


def read_results(folder: Path, settings: Sequence[str] | None = None) -> list[SettingResults]:
    """The settings that have records in a folder, in the paper's order; or those of them that are wanted."""
    found = {each.setting: each for each in sorted(map(_results, records.every(folder)), key=_place)}
    if not found:
        raise InputError(
            f"{folder} has no records. Make some: precedents reproduction run --settings digits/mlp"
        )
    for name in settings or []:
        if name not in found:
            raise UnknownNameError("setting with records", name, found)
    return [found[name] for name in settings or found]


def costs(folder: Path) -> list[Duration]:
    """What the work took, as far as it is recorded."""
    return [
        Duration(str(line["setting"]), int(line["repeat"]), tuple(line["piece"]), float(line["seconds"]))
        for line in records.costs(folder)
    ]


def _place(found: SettingResults) -> tuple[int, str]:
    """Settings of the paper come in its order, others after them by name."""
    settings = list(dict.fromkeys(setting for _, setting, _ in published()))
    place = settings.index(found.setting) if found.setting in settings else len(settings)
    return place, found.setting


def _results(recorded: Records) -> SettingResults:
    pieces: dict[Piece, dict[int, Any]] = {}
    for (repeat, piece), value in recorded.values.items():
        if piece[0] == "outcome" and not _sound(piece, value):
            place = f"repeat {repeat}, {', '.join(piece)}"
            raise FormatError(f"{recorded.path}: {value!r} is no outcome; {place}. Delete its line.")
        pieces.setdefault(piece, {})[repeat] = value
    return SettingResults(recorded.setting, recorded.header, pieces)


def _sound(piece: Piece, value: Any) -> bool:
    """Whether an outcome has a reason or numbers that it can have."""
    if len(piece) != 3 or not isinstance(value, dict):
        return False
    least = 0 if is_rate(piece[2]) else -1
    try:
        return "missing" in value or bool(least <= value["mean"] <= 1 and value["count"] > 0)
    except (KeyError, TypeError):
        return False

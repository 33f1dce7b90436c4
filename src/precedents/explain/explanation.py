"""Explanation: cases with the training instances that are their precedents, to print, plot and export."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from operator import index
from typing import TYPE_CHECKING, Any

from torch import Tensor

from precedents.data.batch import Batch
from precedents.data.ids import Id
from precedents.data.inputs import Inputs, alone, bare, mapped
from precedents.errors import InputError, NotApplicable
from precedents.explain.cautions import UNRANKED
from precedents.explain.decomposition import Decomposition
from precedents.explain.exporting import as_csv, as_page, framed
from precedents.explain.naming import Sharing
from precedents.explain.shares import Shares
from precedents.explain.strips import KEY, demanded, legend, of_read, strips, tag, unasked
from precedents.metrics.ranking import TopK
from precedents.runtime.given import whole_number
from precedents.seen import clipped, told
from precedents.views.comparison import WIDTH, beginning, line
from precedents.views.fragments import page
from precedents.views.gallery import figure
from precedents.views.instance import Render, Shown, is_picture, scores, shown
from precedents.views.marks import excerpt, joined

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    from matplotlib.figure import Figure

COLUMNS = 3  # of a table row by their shares, in print


@dataclass(frozen=True)
class Precedent:
    """A training instance offered as evidence."""

    rank: int  # from 1
    index: int  # its place in the training set
    label: int
    score: float
    agrees: bool  # whether its class is the predicted one
    percentile: float  # how many percent of the training instances have a lower score
    cautions: tuple[str, ...] = ()  # what speaks against it, as `caution` says
    residual_cosine: float | None = None  # for Grad-Cos: the part of the residuals at the last layer,
    feature_cosine: float | None = None  # and the part of what that layer receives
    id: Id | None = None  # what its owner calls it, if that is known


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why these cases were predicted as they were: for each, the most relevant training instances."""

    metric: str
    predictions: Tensor  # [m], or the labels that were given instead
    top: TopK  # indices and scores [m, k]
    labels: Tensor  # [m, k], of the precedents
    cases: Inputs = field(repr=False)  # [m, ...]
    precedents_inputs: Inputs = field(repr=False)  # [m, k, ...]
    percentiles: Tensor  # [m, k]
    flags: Sequence[Sequence[Sequence[str]]] = field(repr=False)  # for each case and precedent its cautions
    parts: Decomposition | None = field(default=None, repr=False)
    warnings: Sequence[str] = ()  # sentences about the metric
    classes: Sequence[str] | None = None
    render: Render | None = field(default=None, repr=False)
    originals: tuple[Sequence[Any], Sequence[Sequence[Any]]] | None = field(default=None, repr=False)  # of both
    numbers: Sequence[int] = ()  # what the cases are called; their places here, if nothing is said
    spread: Mapping[str, float] = field(default_factory=dict, repr=False)  # of a table's columns
    curvature: str | None = None  # what M is, where the metric has one; the memory may have decided
    given: bool = False  # whether the cases' labels were given, as if they had been predicted
    remarks: Sequence[Sequence[str]] = ()  # for each case what speaks against all of its precedents
    case_ids: Sequence[Id] | None = None  # [m], what their owner calls the cases,
    ids: Sequence[Sequence[Id]] | None = None  # [m, k], and the precedents
    completeness: Sequence[str] = ()  # for each case how it is known that none is missing, if not by a pass
    truth: Tensor | None = None  # [m], the true labels of the cases, if they were given
    count: int = 0  # of training instances, by which percentiles have digits
    sharing: Sharing | None = field(default=None, repr=False)  # divides scores into parts

    def __len__(self) -> int:
        return len(self.predictions)

    def __getitem__(self, case: int) -> "Explanation":
        """The explanation of one of the cases."""
        i = self._place(case)
        one = slice(i, i + 1)
        return replace(
            self,
            predictions=self.predictions[one],
            top=TopK(self.top.indices[one], self.top.scores[one]),
            labels=self.labels[one],
            cases=mapped(lambda leaf: leaf[one], self.cases),
            precedents_inputs=mapped(lambda leaf: leaf[one], self.precedents_inputs),
            percentiles=self.percentiles[one],
            flags=self.flags[one],
            parts=None if self.parts is None else self.parts.of_cases(one),
            originals=None if self.originals is None else (self.originals[0][one], self.originals[1][one]),
            numbers=self.numbers[one],
            remarks=self.remarks[one],
            case_ids=None if self.case_ids is None else self.case_ids[one],
            ids=None if self.ids is None else self.ids[one],
            completeness=self.completeness[one],
            truth=None if self.truth is None else self.truth[one],
        )

    def __iter__(self) -> Iterator["Explanation"]:
        return (self[i] for i in range(len(self)))

    def precedents(self, case: int = 0) -> list[Precedent]:
        """The precedents of a case, most relevant first."""
        case = self._place(case)
        found, predicted = self.top.indices[case].tolist(), int(self.predictions[case])
        none = [None] * len(found)
        rows = zip(
            range(1, len(found) + 1),
            found,
            self.labels[case].tolist(),
            self.top.scores[case].tolist(),
            (self.labels[case] == predicted).tolist(),
            self.percentiles[case].tolist(),
            map(tuple, self.flags[case]),
            none if self.parts is None else self.parts.residual[case].tolist(),
            none if self.parts is None else self.parts.feature[case].tolist(),
            none if self.ids is None else self.ids[case],
            strict=True,
        )
        return [Precedent(*row) for row in rows]

    def _place(self, case: int) -> int:
        """The place of a case, counted from the first; one that there is not is an IndexError."""
        if isinstance(case, bool) or not hasattr(case, "__index__"):
            raise InputError(f"case is {clipped(repr(case))}. Pass the place of a case, a whole number.")
        if not -len(self) <= index(case) < len(self):
            raise IndexError(f"There is no case {case} among {len(self)}.")
        return range(len(self))[index(case)]

    def name(self, label: int) -> str:
        """The name of the class that a `label` is the number of, or its number."""
        return str(label) if self.classes is None else str(self.classes[label])

    def number(self, case: int) -> int:
        """The number of the case at this place."""
        return self.numbers[case] if self.numbers else case

    def called(self, case: int) -> str:
        """What a person sees the case at this place called: its id, or else its number."""
        return f"case {self.number(case) if self.case_ids is None else clipped(str(self.case_ids[case]))}"

    def seen_name(self, label: int) -> str:
        """The name of the class of a `label` as a person sees it."""
        return clipped(self.name(label))

    def outcome(self, case: int) -> str:
        """What a `case` was predicted to be, and what it is in truth where that is another class."""
        said = int(self.predictions[case])
        true = said if self.truth is None else int(self.truth[case])
        wrong = f", in truth {self.seen_name(true)}" if true != said else ""
        return f"{'taken for' if self.given else 'predicted'} {self.seen_name(said)}{wrong}"

    @property
    def wrong(self) -> list[int]:
        """The places of the cases that are something else in `truth`, whose labels may be names."""
        if self.truth is None:
            raise InputError("Nothing says which predictions are wrong. Say it: explain(x, truth=y).")
        return [int(i) for i in (self.predictions != self.truth).nonzero()]

    def shares(self, case: int = 0, rank: int = 1) -> Shares:
        """Why the precedent of this rank is relevant to this case: its score, in parts that sum to it.

        As `Explainer.shares`; a metric whose score is no such sum is NotApplicable, with the reason.
        """
        i, k = self._place(case), self.top.indices.shape[1]
        if self.sharing is None:
            raise NotApplicable("This explanation has no explainer with it. Ask one: explainer.shares(x, i).")
        precedent = self.precedents(i)[whole_number(rank, "rank", 1, k) - 1]
        offered = mapped(lambda leaf: leaf[i], self.precedents_inputs)
        one = Batch(alone(self.cases, i), self.predictions[i : i + 1], [i])
        other = Batch(alone(offered, rank - 1), self.labels[i, rank - 1 : rank], [precedent.index])
        called = self.called(i), f"{tag(precedent)} {self.seen_name(precedent.label)}"
        return self.sharing.between(one, other, (self.seen(i), self.seen(i, rank)), called, precedent.id)

    def __str__(self) -> str:
        curvature = [] if self.curvature is None else [f"Curvature: {self.curvature}."]
        sentences = [self._sentence(case) for case in range(len(self))]
        return "\n".join([*sentences, *map(told, [*curvature, *self.warnings])])

    def _sentence(self, case: int) -> str:
        named = len(self) > 1 or self.numbers or self.case_ids is not None
        which = f"{self.called(case)}: " if named else ""
        found = self.precedents(case)
        places = max(len(tag(p)) for p in found)
        names = max(len(self.seen_name(p.label)) for p in found)
        asked = None if self.render is None else self.seen(case)  # what has no names cannot be read
        about = f' for "{self._excerpt(case, asked)}"' if isinstance(asked, str) else ""
        lines = [f"{which}{self.outcome(case)}{about}, because of"]
        for p, score in zip(found, scores([p.score for p in found]), strict=True):
            above = "" if UNRANKED in p.cautions else f"above {self._above(p.percentile)}%"
            cautions = f"({', '.join(p.cautions)})" if p.cautions else ""
            shown = [f"{tag(p):<{places}}", f"{self.seen_name(p.label):<{names}}", score, above, cautions]
            lines.append("".join(f"  {part}" for part in shown if part))
            said = [] if asked is None else self._lines(case, p.rank, asked)
            lines += [" " * (places + 4) + each for each in said]
        lines += [f"  {self.completeness[case]}"] if self.completeness else []
        return "\n".join([*lines, *(f"  {told(remark)}" for remark in self._remarks(case))])

    def _excerpt(self, case: int, text: str) -> str:
        """What is printed of a case's text: of a long one, what matters to the score of the first precedent."""
        found = of_read(self, case, 1) if len(text) > WIDTH // 2 else None
        if found is None or found.words is None:
            return beginning(text, WIDTH // 2)
        return excerpt(found.words[0].marked(text), WIDTH // 2)

    def _lines(self, case: int, rank: int, asked: Shown) -> list[str]:
        """What is printed of a precedent: of a long text what matters to the score, of a row what adds most."""
        shown = self.seen(case, rank)
        read = isinstance(shown, Mapping) or (isinstance(shown, str) and len(shown) > WIDTH)
        found = of_read(self, case, rank) if read else None
        if isinstance(shown, str) and found is not None and found.words is not None:
            return [excerpt(found.words[1].marked(shown), WIDTH)]
        said = line(shown, asked, self.spread)
        columns = [] if found is None else found.largest_columns(COLUMNS)
        return [*([] if said is None else [said]), *([f"by share: {joined(columns)}"] if columns else [])]

    def _above(self, percentile: float) -> str:
        """As many digits as so many training instances have; where scores are estimates, whole numbers."""
        digits = 0 if self.completeness else max(0, math.ceil(math.log10(max(1, self.count))) - 2)
        return f"{math.floor(10**digits * percentile + 1e-6) / 10**digits:.{digits}f}"

    def _remarks(self, case: int) -> Sequence[str]:
        return self.remarks[case] if self.remarks else ()

    def seen(self, case: int, rank: int = 0) -> Shown:
        """What a person sees of a case, or of its precedent of this rank."""
        return shown(self._given(case, rank), self.render)

    def _given(self, case: int, rank: int) -> Any:
        """The same as its owner has it, or else as the model is fed it."""
        if self.originals is not None:
            return self.originals[1][case][rank - 1] if rank else self.originals[0][case]
        if rank:
            return bare(mapped(lambda leaf: leaf[case], self.precedents_inputs), rank - 1)
        return bare(self.cases, case)

    def to_dict(self) -> dict[str, Any]:
        """Plain values: the metric, and for each case its prediction and its precedents."""
        return {
            "metric": self.metric,
            "curvature": self.curvature,
            "labels": "given" if self.given else "predicted",
            "warnings": list(self.warnings),
            "cases": [
                {
                    "case": self.number(case),
                    **self.own_id("id", case),
                    "prediction": self.plain(int(self.predictions[case])),
                    **({} if self.truth is None else {"truth": self.plain(int(self.truth[case]))}),
                    "cautions": list(self._remarks(case)),
                    "completeness": self.completeness[case] if self.completeness else "exact; by a full pass",
                    "precedents": [
                        _values(p) | {"label": self.plain(p.label), "cautions": list(p.cautions)}
                        for p in self.precedents(case)
                    ],
                }
                for case in range(len(self))
            ],
        }

    def own_id(self, name: str, case: int) -> dict[str, Id]:
        """The id of a case under this name, if it is known."""
        return {} if self.case_ids is None else {name: self.case_ids[case]}

    def plain(self, label: int) -> int | str:
        """The name of the class of a `label`, or its number as a number."""
        return label if self.classes is None else self.name(label)

    def to_json(self) -> str:
        """What `to_dict` gives, as JSON."""
        return json.dumps(self.to_dict(), indent=2)

    def to_frame(self, inputs: bool = False) -> "pd.DataFrame":
        """A pandas frame, one row per case and precedent.

        With `inputs`, also the texts or the columns of both, and the residual and feature parts of Grad-Cos.
        """
        return framed(self, inputs)

    def to_csv(self, file: "str | Path | None" = None, inputs: bool = True) -> str:
        """The frame as comma-separated values, with or without `inputs`; also written to a `file` if given.

        A text that a spreadsheet would run as a formula has an apostrophe before it.
        """
        return as_csv(self.to_frame(inputs), file)

    def plot(self, shares: bool = False) -> "Figure":
        """The cases and their precedents side by side, as a matplotlib figure.

        With `shares`, what each score is a sum of: heat maps on both pictures, of the layer with the largest
        share; the words or the columns with the largest shares. A metric without parts is NotApplicable.
        """
        found = demanded(self) if shares else {}
        return figure(strips(self, found), "\n".join(self._heading(shares)))

    def to_html(self, file: "str | Path | None" = None, shares: bool = False) -> str:
        """A page by itself, to be passed on, which is also written to the `file`, if one is given.

        For light and dark, for screens and phones. Words and columns of up to 60 precedents are shown by their
        shares of the score; with `shares` those of all, and pictures under heat maps, as `plot` has them.
        """
        found = demanded(self) if shares else unasked(self)
        title, *rest = self._heading(shares)
        return as_page(page(strips(self, found), "\n".join([legend(self.given), *rest])), title, file)

    def _repr_html_(self) -> str:
        """What notebooks show."""
        return page(strips(self, unasked(self)), "\n".join(self._heading()))

    def _heading(self, shares: bool = False) -> list[str]:
        key = [KEY] if shares and is_picture(self.seen(0)) else []
        curvature = "" if self.curvature is None else f" ({self.curvature})"
        of_cases = [f"{self.called(i)}: {said}" for i in range(len(self)) for said in self._remarks(i)]
        first = f"Precedents by {self.metric}{curvature}"
        return list(map(told, [first, *key, *self.warnings, *of_cases]))


def _values(precedent: Precedent) -> dict[str, Any]:
    """The values of a precedent by name, its id only where it has one."""
    return {name: value for name, value in asdict(precedent).items() if name != "id" or value is not None}

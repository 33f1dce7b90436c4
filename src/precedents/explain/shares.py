"""Shares: why a precedent is relevant to a case, in parts that sum to the score, to print, draw and export."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from torch import Tensor

from precedents.data.ids import Id, shown_id
from precedents.errors import UnknownNameError
from precedents.explain.exporting import as_csv, as_page
from precedents.seen import clipped
from precedents.views.fragments import paragraphs
from precedents.views.heat import HeatMap, ShareView, both_under
from precedents.views.instance import Cell, Shown, is_picture
from precedents.views.marks import WordShares, joined

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    from matplotlib.figure import Figure

LEGEND = (
    "The score is the sum of its shares: layer by layer, and within a layer of regions, words or columns. "
    "Green speaks for this precedent, red against it. A share is a part of the likeness of the two, and no "
    "cause of the prediction."
)
WIDEST = 120  # letters of a layer's name in print
MOST = 8  # layers, words or columns that are printed
PICTURES = 4  # layers that are drawn on both pictures
SHOWN = 4  # columns of a table row that are shown beside others
LAYER = 20  # letters of a layer below a picture
UsedRows = tuple[tuple[int, ...], tuple[int, ...]]  # of the case and of the precedent


@dataclass(frozen=True, eq=False)
class LayerShares:
    """What one layer adds to a score, and within it each position of the case and of the precedent.

    `case` sums over all positions of the precedent, and `precedent` over all of the case: each sums, with
    `whole`, to `share`. `columns` are what entries of a flat layer's input add to it, which sum so, too.
    """

    layer: str  # its name in the model
    kind: str  # its type
    share: float  # of the score
    case: Tensor | None = None  # in the shape of the layer's positions,
    precedent: Tensor | None = None  # and the same of the precedent; none where the layer has no positions
    columns: Tensor | None = None  # in the input's shape, if the layer receives the input
    of_input: bool = False  # whether it does
    whole: float = 0.0  # what is not divided further
    tokens: UsedRows = ((), ())  # of an embedding: the rows that were used

    def times(self, factor: float) -> "LayerShares":
        """All of it, and so each part, `factor` times as large."""
        case, precedent, columns = (
            None if each is None else each * factor for each in (self.case, self.precedent, self.columns)
        )
        return replace(
            self,
            share=self.share * factor,
            whole=self.whole * factor,
            case=case,
            precedent=precedent,
            columns=columns,
        )

    @property
    def pictures(self) -> tuple[Tensor, Tensor] | None:
        """The shares of both as pictures [h, w], where positions or columns are those of pictures."""
        if self.case is not None and self.precedent is not None and self.case.ndim == self.precedent.ndim == 2:
            return self.case, self.precedent
        if self.columns is not None and self.of_input and self.columns.ndim in (2, 3):
            flat = self.columns.reshape(-1, *self.columns.shape[-2:]).sum(dim=0)
            return flat, flat
        return None


@dataclass(frozen=True, eq=False)
class Shares:
    """The score of one case and one training instance, divided into what it is a sum of.

    >>> import torch, precedents as pr
    >>> x, y = torch.eye(3), torch.tensor([0, 1, 0])
    >>> shares = pr.Explainer(torch.nn.Linear(3, 2), (x, y), "dot_x").shares(x[0] + x[1], 1)
    >>> print(shares.score, shares.columns)
    1.0 {'x1': 1.0}
    """

    metric: str
    score: float
    index: int  # of the training instance
    layers: tuple[LayerShares, ...]  # in the model's order; their shares sum to the score
    case: Shown = field(repr=False)  # what a person sees of both
    precedent: Shown = field(repr=False)
    titles: tuple[str, str] = ("case", "precedent")
    words: tuple[WordShares, WordShares] | None = field(default=None, repr=False)  # of both texts
    columns: Mapping[str, float] = field(default_factory=dict, repr=False)  # of a table, by name
    id: Id | None = None  # what its owner calls the training instance

    def __getitem__(self, layer: str) -> LayerShares:
        """The shares within a layer, by its name in the model."""
        for each in self.layers:
            if each.layer == layer:
                return each
        raise UnknownNameError("layer with shares", layer, [each.layer for each in self.layers])

    def __str__(self) -> str:
        called = f"#{self.index}" if self.id is None else shown_id(self.id)
        lines = [f"{called}: {self.score:+.3f} by {self.metric}, of which"]
        named = {id(s): (clipped(s.layer, WIDEST), clipped(s.kind)) for s in self.layers}
        width, kinds = (max(map(len, each)) for each in zip(*named.values(), strict=True))
        kept = sorted(self.layers, key=lambda each: -abs(each.share))[:MOST]
        shown = [each for each in self.layers if each in kept]
        lines += [
            f"  {layer:<{width}}  {kind:<{kinds}}  {s.share:+.3f}{self._percent(s.share)}"
            for s, (layer, kind) in ((s, named[id(s)]) for s in shown)
        ]
        left = [each.share for each in self.layers if each not in kept]
        lines += [f"  {len(left)} more layers: {sum(left):+.3f}"] if left else []
        for name, words in zip(("case", "precedent"), self.words or (), strict=False):
            lines += [f"  words of the {name}: {joined(words.largest(MOST))}"] if words.largest(1) else []
        lines += (
            [f"  columns: {joined(self.largest_columns(MOST))}"] if self.columns and self.words is None else []
        )
        biases = [each.whole for each in self.layers if each.of_input and each.columns is not None]
        lines += [f"  bias: {sum(biases):+.3f}"] if any(biases) else []
        return "\n".join(lines)

    def _percent(self, share: float) -> str:
        """The share as a part of the score, where all parts have its sign."""
        alike = all(each.share * self.score >= 0 for each in self.layers) and self.score != 0
        return f"  {100 * share / self.score:3.0f}%" if alike else ""

    def largest_columns(self, most: int) -> list[tuple[str, float]]:
        """The columns of a table with the largest shares, at `most` so many."""
        return sorted(self.columns.items(), key=lambda item: -abs(item[1]))[:most]

    @property
    def heat_maps(self) -> list[HeatMap]:
        """The layers with the largest shares that can be drawn on both pictures, in the model's order."""
        drawn = [(each, found) for each in self.layers if (found := each.pictures) is not None]
        kept = sorted(drawn, key=lambda pair: -abs(pair[0].share))[:PICTURES]
        return [
            HeatMap(f"{s.layer} {s.kind}", s.share, *(each.numpy() for each in found))
            for s, found in drawn
            if any(s is other for other, _ in kept)
        ]

    @property
    def heat_map(self) -> HeatMap | None:
        """That of the layer with the largest share, of those that can be drawn on both pictures."""
        pictured = is_picture(self.case) and is_picture(self.precedent)
        return max(self.heat_maps, key=lambda each: abs(each.share), default=None) if pictured else None

    @property
    def visible(self) -> bool:
        """Whether something of it is seen in the instances: a heat map, words or columns."""
        columns = bool(self.columns) and isinstance(self.precedent, Mapping)
        return self.heat_map is not None or self.words is not None or columns

    def cell(self, title: str, agrees: bool | None = None) -> Cell:
        """The precedent with its shares, to stand beside others under this `title`; whether it `agrees` shows.

        A picture has that of the case below it, both under the heat map of the layer that the title then names;
        a text has its words, and a row its columns.
        """
        heat = self.heat_map
        if heat is not None and is_picture(self.case) and is_picture(self.precedent):
            named = f"{title}\n{clipped(heat.title, LAYER)} {heat.share:+.3f}"
            return Cell(named, both_under(self.case, self.precedent, heat), agrees)
        words = None if self.words is None else self.words[1]
        return Cell(title, self.precedent, agrees, words, dict(self.largest_columns(SHOWN)))

    def to_dict(self) -> dict[str, Any]:
        """Plain values: the score, and what the layers, words and columns add to it."""
        layers = [{"layer": s.layer, "kind": s.kind, "share": s.share, "whole": s.whole} for s in self.layers]
        sides = [] if self.words is None else zip(("case", "precedent"), self.words, strict=True)
        words = {side: [list(piece) for piece in each.pieces] for side, each in sides}
        own = {"index": self.index, **({} if self.id is None else {"id": self.id})}
        return {
            "metric": self.metric,
            "score": self.score,
            **own,
            "layers": layers,
            "words": words,
            "columns": dict(self.columns),
        }

    def to_json(self) -> str:
        """What `to_dict` gives, as JSON."""
        return json.dumps(self.to_dict(), indent=2)

    def to_frame(self) -> "pd.DataFrame":
        """A pandas frame, one row per part: `of` a layer, a position of the case or of the precedent, a column.

        The rows of each kind within a layer, with its part that is `whole`, sum to the row of the layer.
        """
        import pandas as pd

        rows = [row for each in self.layers for row in _rows(each)]
        return pd.DataFrame(rows, columns=["layer", "kind", "of", "place", "share"])

    def plot(self) -> "Figure":
        """Both instances with their shares: layers as bars, heat maps on pictures, words, columns."""
        return self._view.figure()

    def to_csv(self, file: "str | Path | None" = None) -> str:
        """The frame as comma-separated values, which are also written to the `file`, if one is given."""
        return as_csv(self.to_frame(), file)

    def to_html(self, file: "str | Path | None" = None) -> str:
        """A page by itself, to be passed on, which is also written to the `file`, if one is given."""
        view = self._view
        case, precedent = (each.replace("\n", ", ") for each in self.titles)
        fragment = paragraphs([LEGEND]) + view.fragment(titled=False)
        return as_page(fragment, f"Why {precedent} for {case}: {view.title}, of which", file)

    def _repr_html_(self) -> str:
        """What notebooks show."""
        return self._view.fragment()

    @property
    def _view(self) -> ShareView:
        cells = Cell(self.titles[0], self.case), Cell(self.titles[1], self.precedent)
        bars = {f"{each.layer} {each.kind}": each.share for each in self.layers}
        title = f"{self.score:+.3f} by {self.metric}"
        columns = dict(self.largest_columns(2 * MOST))
        return ShareView(title, cells, bars, self.heat_maps, self.words, columns)


def _rows(layer: LayerShares) -> list[dict[str, Any]]:
    """A layer as rows of a frame."""
    own = {"layer": layer.layer, "kind": layer.kind}
    rows = [own | {"of": "layer", "place": "", "share": layer.share}]
    if layer.whole:
        rows.append(own | {"of": "whole", "place": "", "share": layer.whole})
    for name in ("case", "precedent", "columns"):
        values = getattr(layer, name)
        if values is not None:
            of = "column" if name == "columns" else name
            rows += [
                own | {"of": of, "place": ",".join(map(str, place)), "share": float(values[tuple(place)])}
                for place in values.ne(float("nan")).nonzero().tolist()
            ]
    return rows

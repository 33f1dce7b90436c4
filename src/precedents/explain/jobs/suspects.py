"""Suspects: training labels that may be wrong, most suspicious first, each with the reasons against it.

The doubt in a label is what the model says against it, and what its neighbourhood does:

    doubt = min(loss, 10) + log((most votes + 4) / (votes for the label + 4))

The 25 nearest training instances vote, each for its own label: by the cosine of all hidden layers (of a
sketch of 512 numbers, where they have more), or of the inputs where a model has no hidden layer. What has a
cosine of zero, as texts without a word in common, has no vote: fewer do, or none. Both terms are logarithms
of likelihoods, so that they are added as the words of independent witnesses are. Where neighbours
disagree among themselves, no label has many more votes than another, and the loss decides; where the model
has learnt its training set by heart, every loss is small, and the neighbours do. How this was chosen, and how
it compares with the loss alone, is measured: benchmarks/suspects.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from textwrap import fill

import torch
from torch import Tensor

from precedents.classifier.classifier import Classifier
from precedents.data.batch import Batch
from precedents.data.examples import Examples
from precedents.explain.jobs._neighbours import alike, nearest, own_features, units, votes
from precedents.explain.jobs._portrayal import Portrayal
from precedents.explain.jobs._tabled import DRAWN, Row, Tabled
from precedents.gradients.rows import Rows
from precedents.metrics.features.all_hidden import all_hidden
from precedents.metrics.ranking import TopK, descending
from precedents.metrics.relevance import Relevance
from precedents.metrics.vectors import Features, Vectors
from precedents.views.gallery import Strip

NEIGHBOURS = 25  # training instances that have a say in a label
CAPPED = 10.0  # of losses: beyond it, one is as bad as another
UNCAST = 4  # votes that each label has before any neighbour votes: few votes say little
PIECE = 4096  # losses that are made at once
CAPTION = 22  # letters of a line below a picture
BESIDE = 5  # neighbours that are drawn beside a suspect
TABLES, FLOAT64 = 4, 8  # of all instances and classes, that are held at a time, and bytes of their numbers


@dataclass(frozen=True, eq=False)
class Evidence:
    """What speaks against the label of each training instance."""

    labels: Tensor  # [n]
    chances: Tensor  # [n, c], the model's probabilities
    loss: Tensor  # [n], by the model's own loss
    squares: Tensor  # [n], the squared lengths under the metric: the inner product with itself
    votes: Tensor  # [n, c], how many neighbours with anything in common have each label
    neighbours: TopK  # [n, 25]
    accusers: Sequence[Sequence[int]] = ()  # for each instance the wrongly predicted cases it is a precedent of

    @cached_property
    def doubt(self) -> Tensor:
        """How much speaks against each label [n]."""
        votes = self.votes + UNCAST
        own = votes.gather(1, self.labels[:, None])[:, 0]
        return self.loss.nan_to_num(nan=CAPPED).clamp(max=CAPPED) + (votes.amax(dim=1) / own).log()

    @cached_property
    def better(self) -> Tensor:
        """The label [n] that the model and the neighbours say together, which may be the one that is there."""
        return (self.chances + self.votes / self.voters.clamp(min=1)[:, None]).argmax(dim=1)

    @cached_property
    def voters(self) -> Tensor:
        """How many neighbours vote [n]."""
        return self.votes.sum(dim=1)

    @cached_property
    def against(self) -> Tensor:
        """The shares [n] of those that vote which have another label; NaN where none does."""
        return 1 - self.votes.gather(1, self.labels[:, None])[:, 0] / self.voters


@dataclass(frozen=True, eq=False)
class Suspects(Tabled):
    """Training labels that may be wrong, most suspicious first.

    >>> import torch, precedents as pr
    >>> x = torch.tensor([[1.0, 0.0], [1.1, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 1.2], [0.0, 0.9]])
    >>> model = torch.nn.Linear(2, 2, bias=False)
    >>> _ = model.weight.data.copy_(4 * torch.eye(2))
    >>> print(pr.Explainer(model, (x, torch.tensor([0, 0, 0, 1, 1, 0]))).suspects(k=1))
    1 of 6 training labels that may be wrong, most suspicious first
      #5  given 0  better 1  loss 3.63  67% of 3 neighbours have another label
    """

    metric: str
    evidence: Evidence = field(repr=False)
    indices: Sequence[int]  # most suspicious first
    portrayal: Portrayal = field(repr=False)
    judged: bool = False  # whether there were cases to accuse
    left_out: Sequence[str] = ()  # what is said of wrong predictions that accuse nobody
    texts: Sequence[str] = field(default=(), repr=False)  # how those of the first suspects begin

    columns = (
        "rank",
        "index",
        "id",
        "label",
        "better",
        "doubt",
        "loss",
        "probability",
        "neighbours_with_another_label",
        "self_relevance",
        "accused_by",
    )

    legend = (
        "Look at them from the top, and stop where you have found nothing wrong for a while. Each stands "
        "before its nearest training instances. ✗: that one has another label."
    )

    @property
    def heading(self) -> str:
        """How many of how many."""
        return (
            f"{len(self.indices)} of {len(self.evidence.labels)} training labels that may be wrong, "
            "most suspicious first"
        )

    @property
    def notes(self) -> Sequence[str]:
        """How many wrong predictions accuse nobody, as the metric cannot rank for them."""
        return self.left_out

    def __len__(self) -> int:
        return len(self.indices)

    def rows(self) -> list[Row]:
        """Each suspect with the reasons against it."""
        return [self._row(rank, i) for rank, i in enumerate(self.indices, 1)]

    def _row(self, rank: int, i: int) -> Row:
        found, label = self.evidence, int(self.evidence.labels[i])
        return {
            "rank": rank,
            "id": None,
            **self.portrayal.own(i),
            "better": self._better(i),
            "doubt": float(found.doubt[i]),
            "loss": float(found.loss[i]),
            "probability": float(found.chances[i, label]),
            "neighbours_with_another_label": float(found.against[i]) if found.voters[i] else None,
            "self_relevance": float(found.squares[i]),
            "accused_by": list(found.accusers[i]) if self.judged else None,
        }

    def _better(self, i: int) -> int | str | None:
        """The label that is proposed; none where the one that is there is the likeliest."""
        found = int(self.evidence.better[i])
        return None if found == int(self.evidence.labels[i]) else self.portrayal.plain(found)

    def printed(self) -> list[Sequence[str]]:
        """Instance, label, better label, and the reasons in words."""
        return [
            (self.portrayal.tag(row["index"]), f"given {row['label']}", *self._reasons(row))
            for row in self.rows()
        ]

    def _reasons(self, row: Row) -> tuple[str, ...]:
        """A better label, and what speaks against the one that is there; what there is nothing of is empty."""
        return (
            "" if row["better"] is None else f"better {row['better']}",
            f"loss {row['loss']:.2f}",
            self._against(row),
            _accused(row["accused_by"]),
        )

    def _against(self, row: Row) -> str:
        """What the neighbours say."""
        voters, share = int(self.evidence.voters[row["index"]]), row["neighbours_with_another_label"]
        if not voters:
            return "no neighbours"
        return f"{share:.0%} of {voters} neighbour{'s have' if voters > 1 else ' has'} another label"

    def strips(self) -> list[Strip]:
        """Each suspect beside its nearest neighbours, those with another label marked."""
        return [self._strip(i) for i in self.indices[:DRAWN]]

    def _strip(self, i: int) -> Strip:
        labels, row, found = self.evidence.labels, self._row(0, i), self.evidence.neighbours
        beside = [int(j) for j in found.indices[i, :BESIDE][alike(found)[i, :BESIDE]]]
        return Strip(
            self.portrayal.cell(i, "\n".join(fill(reason, CAPTION) for reason in self._reasons(row) if reason)),
            [self.portrayal.cell(j, "", bool(labels[j] == labels[i])) for j in beside],
        )


def _accused(cases: Sequence[int] | None) -> str:
    if not cases:
        return ""
    return f"accused by {len(cases)} wrong prediction{'s' if len(cases) > 1 else ''}"


def evidence(relevance: Relevance, squares: Tensor, accusers: Sequence[Sequence[int]] = ()) -> Evidence:
    """What speaks against each label, in one pass for the model's answers and for the neighbours' vectors.

    `squares` are the squared lengths under the metric, of a pass that was made already.
    """
    workspace = relevance.workspace
    train, model = workspace.train, workspace.classifier
    model.budget.bound(
        TABLES * FLOAT64 * len(train) * model.classes,
        f"What a model and neighbours say of {len(train)} labels of {model.classes} classes",
        "Allow more memory: memory=.",
    )
    answers = Answering(own_features(workspace), torch.empty(len(train), model.classes, dtype=torch.double))
    own = units(replace(Vectors.of(workspace, answers.features), features=answers))
    found = nearest(own, own, NEIGHBOURS, "neighbours", same=True, room=model.budget.bytes // 16)
    logits = answers.logits
    pairs = zip(logits.split(PIECE), train.labels.split(PIECE), strict=True)
    losses = torch.cat([model.loss(*pair).double() for pair in pairs])
    own_votes = votes(found, train.labels, model.classes)
    return Evidence(train.labels, logits.softmax(dim=1), losses, squares, own_votes, found, accusers)


@dataclass(frozen=True, eq=False)
class Answering:
    """Features that note what the model answers, in the same pass."""

    features: Features  # all hidden layers, or the inputs
    logits: Tensor  # [n, c], float64

    @property
    def __name__(self) -> str:
        """What progress is called."""
        return "answers and layers"

    def __call__(self, model: Classifier, batch: Batch) -> Tensor | Rows:
        """The vectors of some training instances, whose logits are noted."""
        if self.features is all_hidden:
            layers, logits = model.hidden_and_logits(batch.inputs)
            self.logits[list(batch.indices)] = model.checked_logits(logits, batch.indices)
            return torch.cat(layers, dim=1).double()
        for start in range(0, len(batch.labels), model.at_once):
            few = batch.between(start, start + model.at_once)
            self.logits[list(few.indices)] = model.finite_logits(few)
        return self.features(model, batch)


def most_suspicious(found: Evidence, k: int) -> list[int]:
    """The k labels with the largest doubt; ties to the smaller index."""
    return [int(i) for i in descending(found.doubt[None])[0, :k]]


def wrong_cases(cases: Examples, predicted: Tensor) -> list[int]:
    """The places of the cases that are wrongly predicted."""
    return [int(i) for i in (cases.labels != predicted).nonzero().flatten()]


def accusers_of(top: TopK, places: Sequence[int], unranked: Tensor, n: int) -> list[list[int]]:
    """For each training instance the cases, whose places are given, that it is a precedent of.

    Cases that are `unranked` [m] accuse nobody.
    """
    found: list[list[int]] = [[] for _ in range(n)]
    for case, row, lost in zip(places, top.indices.tolist(), unranked.tolist(), strict=True):
        for i in [] if lost else row:
            found[i].append(case)
    return found

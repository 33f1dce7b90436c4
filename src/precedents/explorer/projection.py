"""Projection: many vectors on a plane, so that neighbours stay neighbours; the same bytes for the same seed.

First the principal components, then the steps of PaCMAP (Wang, Huang, Rudin and Shaposhnik, "Understanding how
dimension reduction tools work", JMLR 22, 2021): three kinds of pairs pull and push, near ones, a few that are
midway, and far ones, with weights that change in three phases.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from precedents.explorer.measures import Step

NEAR, MIDWAY, FAR = 10, 5, 20  # pairs of a point
CANDIDATES = 50  # nearest points of which the near pairs are chosen
DRAWN = 6  # points of which the second nearest is midway
PHASES = (100, 100, 250)  # steps
RATE, FIRST, SECOND, TINY = 1.0, 0.9, 0.999, 1e-7  # of Adam
BEGIN = 0.01  # times the first two principal components
EXACT = 12_000  # points up to which neighbours are found by comparing all
NEARBY = 8  # cells that neighbours are looked for in, of more points
BLOCK = 2_048  # points that are compared at once,
PIECE = 1_024  # and that are moved at once
TRUSTED, SAMPLE = 15, 500  # neighbours that a map is judged by, and points that it is judged at


@dataclass(frozen=True)
class MapPairs:
    """Points [n, pairs of each] that every point is drawn to or pushed from."""

    near: Tensor
    midway: Tensor
    far: Tensor

    @cached_property
    def every(self) -> Tensor:
        """All of them [n, pairs], near ones first."""
        return torch.cat([self.near, self.midway, self.far], dim=1)


def components(rows: Tensor, count: int) -> Tensor:
    """The first principal components [n, count] of rows, each with a sign that the data decide."""
    centred = rows - rows.mean(dim=0)
    covariance = (centred.T @ centred).double()
    directions = torch.linalg.eigh(covariance).eigenvectors.flip(1)[:, :count].to(rows)
    signs = directions.gather(0, directions.abs().argmax(dim=0)[None]).sign()
    return centred @ (directions * signs)


def neighbours(points: Tensor, k: int) -> Tensor:
    """The k nearest other points [n, k] of each; of many points those of nearby cells."""
    n = len(points)
    squares = points.square().sum(dim=1)
    found = torch.empty(n, k, dtype=torch.long)
    for rows, among in _compared(points, k):
        distances = squares[among] - 2 * points[rows] @ points[among].T
        distances[rows[:, None] == among[None]] = torch.inf
        found[rows] = among[distances.topk(k, dim=1, largest=False).indices]
    return found


def _compared(points: Tensor, k: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Points, and those among which their neighbours are looked for."""
    every = torch.arange(len(points))
    if len(points) <= EXACT:
        yield from ((rows, every) for rows in every.split(BLOCK))
        return
    cell, centres = _cells(points)
    order = cell.argsort(stable=True)
    members = order.split(torch.bincount(cell, minlength=len(centres)).tolist())
    near = torch.cdist(centres, centres).argsort(dim=1, stable=True)
    for own, others in zip(members, near, strict=True):
        among = torch.cat([members[int(i)] for i in others[:NEARBY]])
        if len(among) <= k:
            among = torch.cat([members[int(i)] for i in others])
        yield from ((rows, among) for rows in own.split(BLOCK) if len(rows))


def _cells(points: Tensor, rounds: int = 8) -> tuple[Tensor, Tensor]:
    """A cell for each point, and the cells' centres, by a few rounds of k-means from points evenly apart."""
    count = int(len(points) ** 0.5)
    centres = points[torch.linspace(0, len(points) - 1, count).long()]
    for _ in range(rounds):
        cell = torch.cat([torch.cdist(piece, centres).argmin(dim=1) for piece in points.split(8 * BLOCK)])
        sums = torch.zeros_like(centres).index_add_(0, cell, points)
        counts = torch.bincount(cell, minlength=count)[:, None]
        centres = torch.where(counts > 0, sums / counts.clamp(min=1), centres)
    return cell, centres


def pairs_of(points: Tensor, seed: int) -> MapPairs:
    """The pairs of all points."""
    n, drawn = len(points), torch.Generator().manual_seed(seed)
    candidates = neighbours(points, min(CANDIDATES, n - 1))
    apart = _distances(points, candidates)
    scale = apart[:, 3:6].mean(dim=1).clamp(min=1e-10)
    scaled = apart.square() / (scale[:, None] * scale[candidates])
    near = candidates.gather(1, scaled.argsort(dim=1, stable=True)[:, :NEAR])
    midway = torch.empty(n, MIDWAY, dtype=torch.long)
    for i in range(MIDWAY):
        some = torch.randint(n, (n, DRAWN), generator=drawn)
        second = _distances(points, some).argsort(dim=1, stable=True)[:, 1:2]
        midway[:, i : i + 1] = some.gather(1, second)
    return MapPairs(near, midway, torch.randint(n, (n, FAR), generator=drawn))


def _distances(points: Tensor, others: Tensor) -> Tensor:
    """From each point to some others [n, j]."""
    found = torch.empty(others.shape, dtype=points.dtype)
    for start in range(0, len(points), BLOCK):
        rows = slice(start, start + BLOCK)
        found[rows] = (points[others[rows]] - points[rows, None]).norm(dim=2)
    return found


def weights(step: int) -> tuple[float, float, float]:
    """Of near, midway and far pairs at a step.

    >>> weights(0), weights(150), weights(300)
    ((2.0, 1000.0, 1.0), (3.0, 3.0, 1.0), (1.0, 0.0, 1.0))
    """
    if step < PHASES[0]:
        share = step / PHASES[0]
        return 2.0, (1 - share) * 1000.0 + share * 3.0, 1.0
    return (3.0, 3.0, 1.0) if step < PHASES[0] + PHASES[1] else (1.0, 0.0, 1.0)


def forces(places: Tensor, pairs: MapPairs, given: tuple[float, float, float]) -> Tensor:
    """The gradient [n, 2] of PaCMAP's loss at these places."""
    n, every = len(places), pairs.every
    sizes = [pairs.near.shape[1], pairs.midway.shape[1], pairs.far.shape[1]]
    kinds = torch.repeat_interleave(torch.tensor(sizes))
    weight = places.new_tensor([given[0] * 20, given[1] * 20_000, -given[2] * 2])[kinds]
    scale = places.new_tensor([11.0, 10_001.0, 2.0])[kinds]  # distances begin at one
    pulls = [torch.empty(every.shape, dtype=places.dtype) for _ in range(2)]
    for start in range(0, n, PIECE):  # which stay in the processor's cache
        rows = slice(start, start + PIECE)
        apart = [places[rows, axis, None] - places[:, axis].take(every[rows]) for axis in range(2)]
        strength = weight / (apart[0].square() + apart[1].square() + scale).square_()
        for pull, along in zip(pulls, apart, strict=True):
            torch.mul(along, strength, out=pull[rows])
    others = every.flatten()
    back = [torch.bincount(others, pull.flatten(), n) for pull in pulls]
    return torch.stack([pull.sum(dim=1) - each for pull, each in zip(pulls, back, strict=True)], dim=1).to(
        places
    )


def projected(points: Tensor, seed: int = 0, told: Step = lambda *_: None) -> Tensor:
    """The points [n, d] on a plane [n, 2]; `d` components, the most important first."""
    if len(points) <= DRAWN:
        return components(points, 2) if points.shape[1] > 1 else torch.cat([points, 0 * points], dim=1)
    pairs = pairs_of(points, seed)
    places = BEGIN * points[:, :2].clone() if points.shape[1] > 1 else torch.cat([points, 0 * points], dim=1)
    first, second, steps = torch.zeros_like(places), torch.zeros_like(places), sum(PHASES)
    for step in range(steps):
        gradient = forces(places, pairs, weights(step))
        first.mul_(FIRST).add_(gradient, alpha=1 - FIRST)
        second.mul_(SECOND).addcmul_(gradient, gradient, value=1 - SECOND)
        rate = RATE * (1 - SECOND ** (step + 1)) ** 0.5 / (1 - FIRST ** (step + 1))
        places.addcdiv_(first, second.sqrt().add_(TINY), value=-rate)
        told(step + 1, steps)
    return places


def trust(points: Tensor, places: Tensor) -> float:
    """The share of the 15 nearest neighbours of some points that are among the 15 nearest on the map."""
    n = len(points)
    k = min(TRUSTED, n - 1)
    some = torch.linspace(0, n - 1, min(SAMPLE, n)).long().unique()
    true, shown = (_nearest(each, some, k) for each in (points, places))
    return float((true[:, :, None] == shown[:, None]).any(dim=2).double().mean())


def _nearest(points: Tensor, some: Tensor, k: int) -> Tensor:
    distances = torch.cdist(points[some], points)
    distances[torch.arange(len(some)), some] = torch.inf
    return distances.topk(k, dim=1, largest=False).indices

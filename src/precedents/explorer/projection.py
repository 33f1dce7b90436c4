"""Projection: many vectors on a plane, so that neighbours stay neighbours; the same bytes for the same seed.

First the principal components, then the steps of PaCMAP (Wang, Huang, Rudin and Shaposhnik, "Understanding how
dimension reduction tools work", JMLR 22, 2021): three kinds of pairs pull and push, near ones, a few that are
midway, and far ones, with weights that change in three phases. Of very many points some are moved, evenly
spaced in the set, and each other one is put among those of them that it is nearest to.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

import torch
from torch import Tensor

from precedents.explorer.measures import Step
from precedents.runtime.checkpoint import InPlace, Resumed

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
LARGEST = 100_000  # points that are moved; of more, so many of them
AMONG = 3  # moved points that another one is put among
TRUSTED, SAMPLE = 15, 500  # neighbours that a map is judged by, and points that it is judged at
DISTANCES = 2**24  # that are held at once


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
    return nearest(points, points, k)


def nearest(points: Tensor, among: Tensor, k: int) -> Tensor:
    """The k nearest [n, k] to each point of those `among` which they are looked for; itself is none of them."""
    squares, same = among.square().sum(dim=1), among is points
    found = torch.empty(len(points), k, dtype=torch.long)
    for rows, others in _compared(points, among, k):
        distances = squares[others] - 2 * points[rows] @ among[others].T
        if same:
            distances[rows[:, None] == others[None]] = torch.inf
        found[rows] = others[distances.topk(k, dim=1, largest=False).indices]
    return found


def _compared(points: Tensor, among: Tensor, k: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Points, and those among which their neighbours are looked for."""
    every = torch.arange(len(among))
    if len(among) <= EXACT:
        yield from ((rows, every) for rows in torch.arange(len(points)).split(BLOCK))
        return
    cell, centres = _cells(among)
    members = _members(cell, len(centres))
    asking = members if among is points else _members(_cell(points, centres), len(centres))
    near = torch.cdist(centres, centres).argsort(dim=1, stable=True)
    for own, others in zip(asking, near, strict=True):
        there = torch.cat([members[int(i)] for i in others[:NEARBY]])
        if len(there) <= k:
            there = torch.cat([members[int(i)] for i in others])
        yield from ((rows, there) for rows in own.split(BLOCK) if len(rows))


def _members(cell: Tensor, count: int) -> Sequence[Tensor]:
    """The points of each cell."""
    return cell.argsort(stable=True).split(torch.bincount(cell, minlength=count).tolist())


def _cell(points: Tensor, centres: Tensor) -> Tensor:
    """The nearest centre of each point."""
    return torch.cat([torch.cdist(piece, centres).argmin(dim=1) for piece in points.split(8 * BLOCK)])


def _cells(points: Tensor, rounds: int = 8) -> tuple[Tensor, Tensor]:
    """A cell for each point, and the cells' centres, by a few rounds of k-means from points evenly apart."""
    count = int(len(points) ** 0.5)
    centres = points[torch.linspace(0, len(points) - 1, count).long()]
    for _ in range(rounds):
        cell = _cell(points, centres)
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
    if len(points) <= LARGEST:
        return moved(points, seed, told)
    some = torch.arange(LARGEST) * (len(points) - 1) // (LARGEST - 1)
    return placed(points, some, moved(points[some], seed, told))


def moved(points: Tensor, seed: int, told: Step) -> Tensor:
    """PaCMAP's steps; within `kept_in` a folder, from where they were killed."""
    pairs = pairs_of(points, seed)
    places = BEGIN * points[:, :2].clone() if points.shape[1] > 1 else torch.cat([points, 0 * points], dim=1)
    first, second, steps = torch.zeros_like(places), torch.zeros_like(places), sum(PHASES)

    def mark() -> str:
        return f"map {seed} {blake2b(points.numpy().tobytes(), digest_size=16).hexdigest()} {torch.__version__}"

    for step in Resumed(range(steps), mark, InPlace({"places": places, "first": first, "second": second})):
        gradient = forces(places, pairs, weights(step))
        first.mul_(FIRST).add_(gradient, alpha=1 - FIRST)
        second.mul_(SECOND).addcmul_(gradient, gradient, value=1 - SECOND)
        rate = RATE * (1 - SECOND ** (step + 1)) ** 0.5 / (1 - FIRST ** (step + 1))
        places.addcdiv_(first, second.sqrt().add_(TINY), value=-rate)
        told(step + 1, steps)
    return places


def placed(points: Tensor, some: Tensor, places: Tensor) -> Tensor:
    """All points on the plane, given the places of `some`: each other one among the nearest of these."""
    own = points[some]
    near = nearest(points, own, AMONG)
    apart = torch.stack([(points - own[near[:, i]]).norm(dim=1) for i in range(AMONG)], dim=1)
    weight = 1 / apart.clamp(min=1e-10)
    found = (places[near] * (weight / weight.sum(dim=1, keepdim=True))[:, :, None]).sum(dim=1)
    found[some] = places
    return found


def trust(points: Tensor, places: Tensor) -> float:
    """The share of the 15 nearest neighbours of some points that are among the 15 nearest on the map."""
    n = len(points)
    k = min(TRUSTED, n - 1)
    some = torch.linspace(0, n - 1, min(SAMPLE, n), dtype=torch.double).long().unique()
    true, shown = (_nearest(each, some, k) for each in (points, places))
    return float((true[:, :, None] == shown[:, None]).any(dim=2).double().mean())


def _nearest(points: Tensor, some: Tensor, k: int) -> Tensor:
    """The k nearest others of some points, by comparing with all."""
    found = []
    for few in some.split(max(1, DISTANCES // len(points))):
        distances = torch.cdist(points[few], points)
        distances[torch.arange(len(few)), few] = torch.inf
        found.append(distances.topk(k, dim=1, largest=False).indices)
    return torch.cat(found)

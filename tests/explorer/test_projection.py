"""The map's steps against slow and obvious ones; the same bytes for a seed; neighbours stay neighbours."""

from itertools import count

import pytest
import torch

from precedents.explorer import projection
from precedents.explorer.projection import MapPairs, components, forces, neighbours, pairs_of, projected, trust
from precedents.runtime import checkpoint
from precedents.runtime.checkpoint import kept_in


def clusters(n: int = 300, d: int = 12, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    drawn = torch.Generator().manual_seed(seed)
    group = torch.arange(n) % 5
    centres = 6 * torch.randn(5, d, generator=drawn)
    return centres[group] + torch.randn(n, d, generator=drawn), group


def test_components_are_those_of_a_singular_value_decomposition() -> None:
    points, _ = clusters()
    found = components(points.double(), 4)
    centred = points.double() - points.double().mean(dim=0)
    truth = torch.linalg.svd(centred, full_matrices=False)
    wanted = truth.U[:, :4] * truth.S[:4]
    assert torch.allclose(found.abs(), wanted.abs(), atol=1e-6)


def test_neighbours_are_the_nearest_others() -> None:
    points, _ = clusters()
    distances = torch.cdist(points, points)
    distances.fill_diagonal_(torch.inf)
    truth = distances.topk(7, dim=1, largest=False).indices
    assert torch.equal(neighbours(points, 7).sort(dim=1).values, truth.sort(dim=1).values)


def test_neighbours_by_cells_are_almost_always_the_nearest(monkeypatch) -> None:
    points, _ = clusters(3000)
    truth = neighbours(points, 10)
    monkeypatch.setattr(projection, "EXACT", 100)
    found = neighbours(points, 10)
    assert float((truth[:, :, None] == found[:, None]).any(dim=2).double().mean()) > 0.9
    assert not (found == torch.arange(3000)[:, None]).any()


def test_forces_are_the_gradient_of_the_loss() -> None:
    points, _ = clusters(40)
    pairs = pairs_of(points, 0)
    places = torch.randn(
        40, 2, dtype=torch.double, generator=torch.Generator().manual_seed(1), requires_grad=True
    )
    given = (2.0, 30.0, 1.0)

    def apart(others: torch.Tensor) -> torch.Tensor:
        return (places[:, None] - places[others]).square().sum(dim=2) + 1

    near, midway, far = (apart(getattr(pairs, name)) for name in ("near", "midway", "far"))
    loss = (
        (given[0] * near / (10 + near)).sum()
        + (given[1] * midway / (10_000 + midway)).sum()
        + (given[2] / (1 + far)).sum()
    )
    (gradient,) = torch.autograd.grad(loss, places)
    assert torch.allclose(forces(places.detach(), pairs, given), gradient, atol=1e-9)


def test_near_pairs_are_no_pairs_with_oneself() -> None:
    points, _ = clusters(60)
    pairs = pairs_of(points, 0)
    assert isinstance(pairs, MapPairs)
    assert not (pairs.near == torch.arange(60)[:, None]).any()
    assert pairs.near.shape == (60, 10)
    assert pairs.far.shape == (60, 20)


def test_a_map_has_the_same_bytes_for_the_same_seed_and_keeps_neighbours() -> None:
    points, group = clusters()
    told = []
    one = projected(points, 3, lambda done, total: told.append((done, total)))
    assert torch.equal(one, projected(points, 3))
    assert not torch.equal(one, projected(points, 4))
    assert told[-1] == (450, 450)
    nearest = neighbours(one, 5)
    assert float((group[nearest] == group[:, None]).double().mean()) > 0.95
    assert trust(points, one) > 2 * trust(
        points, torch.rand(300, 2, generator=torch.Generator().manual_seed(0))
    )


def test_a_map_that_was_killed_goes_on_and_has_the_same_bytes(tmp_path, monkeypatch) -> None:
    points, _ = clusters(60)
    whole = projected(points, 3)
    steps = count()

    def killed(*_) -> None:
        if next(steps) == 20:
            raise KeyboardInterrupt

    with monkeypatch.context() as often, kept_in(tmp_path):
        often.setattr(checkpoint, "EVERY", 0.0)  # every step is kept
        often.setattr(checkpoint, "LIGHT", 0.0)
        with pytest.raises(KeyboardInterrupt):
            projected(points, 3, killed)
    told: list[int] = []
    with kept_in(tmp_path):
        again = projected(points, 3, lambda done, _: told.append(done))
    assert torch.equal(again, whole)
    assert told[0] == 21


def test_of_very_many_points_some_are_moved_and_the_others_stand_among_them(monkeypatch) -> None:
    points, group = clusters(900)
    monkeypatch.setattr(projection, "LARGEST", 300)
    some = torch.arange(300) * 899 // 299
    found, own = projected(points, 3), projection.moved(points[some], 3, lambda *_: None)
    assert torch.equal(found[some], own)
    other = next(i for i in range(900) if i not in some.tolist())
    distances = torch.cdist(points[other : other + 1], points[some])[0]
    near = distances.topk(3, largest=False).indices
    weight = 1 / distances[near]
    assert torch.allclose(found[other], (own[near] * weight[:, None]).sum(dim=0) / weight.sum(), atol=1e-4)
    nearest = neighbours(found, 5)
    assert float((group[nearest] == group[:, None]).double().mean()) > 0.95
    drawn = torch.rand(900, 2, generator=torch.Generator().manual_seed(0))
    assert trust(points, found) > 2 * trust(points, drawn)


def test_trust_does_not_depend_on_how_many_distances_are_held(monkeypatch) -> None:
    points, _ = clusters()
    places = components(points, 2)
    whole = trust(points, places)
    monkeypatch.setattr(projection, "DISTANCES", 900)
    assert trust(points, places) == whole


def test_trust_of_the_points_themselves_is_one() -> None:
    points, _ = clusters(100, d=2)
    assert trust(points, points) == 1.0


def test_few_points_have_a_map_too() -> None:
    for n, d in ((1, 3), (4, 3), (8, 1), (9, 2)):
        found = projected(torch.rand(n, d, generator=torch.Generator().manual_seed(n)))
        assert found.shape == (n, 2)
        assert found.isfinite().all()

"""Count sketches: by their definition, column by column, however the rows are stored."""

import pytest
import torch
from torch import Tensor, nn

from precedents.gradients.factors import Outer
from precedents.gradients.lookups import Lookup
from precedents.gradients.patches import Patched, Window
from precedents.gradients.rows import Rows
from precedents.index.sketch import CountSketch


def by_definition(sketch: CountSketch, rows: Tensor) -> Tensor:
    """Each column by itself: its sign, and its bucket."""
    found = torch.zeros(len(rows), sketch.length, dtype=rows.dtype)
    for column in range(sketch.width):
        bucket = (column + int(sketch.offsets[column // sketch.buckets])) % sketch.buckets
        found[:, bucket] += rows[:, column] * int(sketch.signs[column])
    return found


@pytest.mark.parametrize(("width", "buckets"), [(1000, 64), (65, 64), (128, 64), (7, 3), (129, 128)])
def test_each_column_goes_to_its_bucket_with_its_sign(width: int, buckets: int) -> None:
    rows, sketch = torch.randn(3, width, dtype=torch.double), CountSketch(width, buckets)
    torch.testing.assert_close(sketch.of(Rows.of(rows)), by_definition(sketch, rows))


def test_rows_that_are_shorter_stay_as_they_are() -> None:
    rows = torch.randn(3, 20)
    assert torch.equal(CountSketch(20, 20).of(Rows.of(rows)), rows)


def factored(kind: str) -> Rows:
    """Rows with formed columns before, between and after a factored part."""
    b, ones = 5, torch.ones(5, dtype=torch.double)
    matrix = torch.randn(b, 50, dtype=torch.double)
    if kind == "outer":
        part = Outer(torch.zeros(6, 7), torch.randn(b, 3, 6).double(), torch.randn(b, 3, 7).double())
    elif kind == "lookup":
        part = Lookup(torch.zeros(9, 4), torch.randint(9, (b, 6)), torch.randn(b, 6, 4).double())
    else:
        window = Window((3, 3), (1, 1), (1, 1), (1, 1), (1, 1))
        back, received = torch.randn(b, 4, 5, 5).double(), torch.randn(b, 2, 5, 5).double()
        part = Patched.of(torch.zeros(4, 2, 3, 3), back, received, window)
    size = part.parameter.numel()
    return Rows(matrix, ones, ((slice(20, 20 + size), part),))


@pytest.mark.parametrize("kind", ["outer", "lookup", "patched"])
@pytest.mark.parametrize("buckets", [32, 10_000])
def test_factors_meet_the_buckets_of_formed_rows(kind: str, buckets: int) -> None:
    torch.manual_seed(0)
    rows = factored(kind)
    sketch = CountSketch(rows.width, buckets)
    torch.testing.assert_close(sketch.of(rows), sketch.of(Rows.of(rows.dense())))


def test_inner_products_are_kept_on_average() -> None:
    torch.manual_seed(0)
    one, other = torch.randn(2, 500, dtype=torch.double)
    other += one
    sketches = [CountSketch(500, 64, seed) for seed in range(400)]
    found = torch.stack([torch.dot(*s.of(Rows.of(torch.stack([one, other])))) for s in sketches])
    sigma = (one.norm() * other.norm()) / 64**0.5
    assert abs(found.mean() - one @ other) < 4 * sigma / 400**0.5
    assert found.std() < 2 * sigma


def test_signs_and_buckets_are_those_of_any_machine() -> None:
    sketch = CountSketch(10, 4, seed=3)
    assert sketch.signs.tolist() == CountSketch(10, 4, seed=3).signs.tolist()
    assert CountSketch(10_000, 64, 0).signs.tolist() != CountSketch(10_000, 64, 1).signs.tolist()
    assert CountSketch(40, 4, 0).signs.tolist() == CountSketch(10_000, 64, 0).signs[:40].tolist()


def test_a_generators_state_is_left_alone() -> None:
    before = torch.get_rng_state()
    CountSketch(100, 8).of(Rows.of(nn.functional.one_hot(torch.arange(4), 100).double()))
    assert torch.equal(before, torch.get_rng_state())

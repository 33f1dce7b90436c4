"""The bound of codes is never violated; their estimates are near."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from precedents.gradients.rows import Rows
from precedents.index import codes as codes_module
from precedents.index.codes import Coder, Codes, unit
from precedents.index.search import Alike, Pool, Search


def coded(rows: Tensor, sample: int) -> tuple[Coder, Codes]:
    sketch = Coder.sketch_of(rows.shape[1])
    coder = Coder.of(sketch, unit(sketch, Rows.of(rows[:sample])))
    return coder, coder.codes(Rows.of(rows))


def cosines(cases: Tensor, rows: Tensor) -> Tensor:
    lengths = cases.double().norm(dim=1)[:, None] * rows.double().norm(dim=1)
    return torch.where(lengths > 0, cases.double() @ rows.double().T / lengths, 0.0)


KINDS = ["plain", "alike", "duplicates", "zeros", "one large", "few directions", "tiny", "huge"]


def drawn(kind: str, n: int, width: int, seed: int) -> Tensor:
    """Rows as gradients may be, and as they should not be."""
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(n, width, generator=generator)
    if kind == "alike":
        rows = rows * 1e-3 + rows[0]
    elif kind == "duplicates":
        rows = rows[torch.randint(3, (n,), generator=generator)]
    elif kind == "zeros":
        rows[torch.rand(n, generator=generator) < 0.5] = 0
    elif kind == "one large":
        rows[:, width // 2] *= 1e4
    elif kind == "few directions":
        rows = torch.randn(n, 2, generator=generator) @ torch.randn(2, width, generator=generator)
    return rows * {"tiny": 1e-20, "huge": 1e15}.get(kind, 1.0)


@given(
    kind=st.sampled_from(KINDS),
    asked=st.sampled_from(KINDS),
    n=st.integers(4, 60),
    width=st.integers(1, 900),
    sample=st.integers(1, 60),
    seed=st.integers(0, 2**32),
    precision=st.sampled_from([torch.float, torch.double]),
)
@settings(max_examples=150, deadline=None)
def test_no_cosine_exceeds_what_is_proved(kind, asked, n, width, sample, seed, precision) -> None:
    rows = drawn(kind, n, width, seed).to(precision)
    cases = torch.cat([drawn(asked, 4, width, seed + 1).to(precision), rows[:2], -rows[:1]])
    coder, codes = coded(rows, sample)
    known = codes.approximation(coder, Rows.of(cases))
    assert known.most is not None
    assert (cosines(cases, rows) <= known.most).all()


@pytest.mark.parametrize("width", [300, 3000])
def test_estimates_are_near_whether_rows_are_sketched_first_or_not(width: int, monkeypatch) -> None:
    torch.manual_seed(0)
    monkeypatch.setattr(codes_module, "EXACT", 1000)
    monkeypatch.setattr(codes_module, "BUCKETS", 1000)
    directions = torch.randn(5, width)
    rows, cases = (torch.randn(m, 5) @ directions + 0.5 * torch.randn(m, width) for m in (400, 20))
    coder, codes = coded(rows, 100)
    known = codes.approximation(coder, Rows.of(cases))
    errors = (known.about - cosines(cases, rows)).abs()
    assert errors.max() < 0.15
    assert (known.most is None) == (width > 1000)


def test_a_row_of_any_width_takes_about_a_kilobyte() -> None:
    rows = torch.randn(300, 20_000)
    _, codes = coded(rows, 280)
    assert sum(each.element_size() * each.numel() for each in vars(codes).values()) <= 1100 * len(rows)


def test_numbers_that_are_none_stay_none_and_spoil_no_others() -> None:
    torch.manual_seed(0)
    rows = torch.randn(50, 200)
    coder, codes = coded(rows, 20)
    spoilt = rows.clone()
    spoilt[7, 3] = torch.nan
    found = coder.codes(Rows.of(spoilt))
    assert found.squares.isnan().nonzero().flatten().tolist() == [7]
    others = [i for i in range(50) if i != 7]
    torch.testing.assert_close(found.kept[others], codes.kept[others])


@given(
    kind=st.sampled_from(KINDS),
    asked=st.sampled_from([*KINDS, "a row", "minus a row"]),
    n=st.integers(200, 500),
    width=st.integers(2, 300),
    k=st.integers(1, 12),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=60, deadline=None)
def test_a_list_that_is_proved_has_no_better_row_left(kind, asked, n, width, k, seed) -> None:
    rows = drawn(kind, n, width, seed).double()
    if asked in KINDS:
        case = drawn(asked, 4, width, seed + 1)[:1].double()
    else:
        case = rows[n // 2 : n // 2 + 1] * (1 if asked == "a row" else -1)
    coder, codes = coded(rows, 64)
    true = cosines(case, rows)[0]
    lengths = case.norm() * rows.norm(dim=1)

    def score(_: int, cross: Tensor, places: Tensor) -> Tensor:
        return torch.where(lengths[places] > 0, cross / lengths[places], 0.0)

    pool = Pool(1, lambda places: case @ rows[places].T)
    apart = Alike(lambda places: [str(place).encode() for place in places])
    (found,) = Search(codes.approximation(coder, Rows.of(case)), score, apart, pool, k).found()
    best = true[pool.places].topk(min(k, len(pool.places))).values
    if found.sure == "proved":
        torch.testing.assert_close(best, true.topk(k).values, rtol=1e-9, atol=1e-12)

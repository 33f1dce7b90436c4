"""The memory budget is a bound: what is used stays within it, and a stated constant, or is refused at first."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from torch import nn

import precedents as pr
from precedents.runtime.budget import CONSTANT, Budget
from precedents.runtime.users_code import out_of_memory

HERE = Path(__file__).parent.parent.parent
TABLE = [  # model, metric, job, budget, whether it must be done
    ("wide", "cos_grad", "explain", "20 MB", False),
    ("wide", "cos_grad", "explain", "100 MB", False),
    ("wide", "cos_grad", "explain", "600 MB", True),
    ("wide", "cos_grad", "estimate", "600 MB", True),
    ("wide", "cos_last", "explain", "100 MB", True),
    ("wide", "cos_if", "explain", "100 MB", False),
    ("wide", "cos_fisher", "audit", "20 MB", False),
    ("wide", "cosine:gradient/ekfac", "explain", "600 MB", False),
    ("large", "cos_grad", "explain", "60 MB", True),
    ("texts", "cos_grad", "explain", "100 MB", True),
    ("texts", "cos_grad", "scores", "300 MB", True),
    ("texts", "dot_grad", "estimate", "100 MB", True),
    ("texts", "cos_last", "explain", "100 MB", True),
    ("short transformer", "cos_grad", "explain", "250 MB", True),  # of a gradient of 56 MB, a few are too many
    ("short transformer", "cos_grad", "explain", "120 MB", False),
    ("sparse", "cos_grad", "explain", "100 MB", True),
    ("sparse", "cos_x", "scores", "100 MB", True),
    ("sparse", "cos_grad", "estimate", "100 MB", True),
    ("sparse", "cos_if", "explain", "500 MB", True),
    ("sparse", "cos_if", "explain", "200 MB", False),
    ("sparse", "cos_fisher", "explain", "50 MB", True),
    ("sparse", "cos_grad", "audit", "300 MB", True),
    ("small", "cos_grad", "explain", "50 MB", True),
    ("small", "cos_all", "scores", "50 MB", True),
    ("small", "cos_fisher", "scores", "100 MB", True),
    ("small", "cos_grad", "audit", "100 MB", True),
    ("rows", "cos_grad", "explain 1000", "100 MB", True),
    ("rows", "cos_grad", "explain 1000", "2 GB", True),
    ("rows", "cos_fisher", "explain 1000", "100 MB", True),
    ("rows", "cos_grad", "answers 1000", "100 MB", True),
    ("rows", "cos_grad", "groups 1000", "100 MB", True),
    ("rows", "cos_grad", "suspects", "100 MB", True),
    ("many classes", "cos_x", "suspects", "64 MB", False),
    ("many classes", "cos_x", "suspects", "340 MB", True),
    ("pictures", "cos_grad", "explain", "100 MB", False),
    ("pictures", "cos_grad", "explain", "140 MB", True),  # tried on one instance
    ("pictures", "cos_grad", "shares", "140 MB", False),
    ("pictures", "cos_grad", "shares", "700 MB", True),
    ("few rows", "cos_grad", "explain 20000", "100 MB", True),
]


EACH = """
import io, json, os, sys
from benchmarks import peak

for model, lines in json.load(sys.stdin).items():
    child = os.fork()
    if not child:
        sys.argv, sys.stdin = ["peak", model], io.StringIO(lines)
        peak.main()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""


@pytest.fixture(scope="module")
def found() -> dict[tuple[str, ...], dict[str, Any]]:
    """What every row of the table came to, in a process for each model."""
    rows = [row[:4] for row in TABLE]
    lines = {model: "" for model, *_ in rows}
    for model, *asked in rows:
        lines[model] += "|".join(asked) + "\n"
    ran = subprocess.run(
        [sys.executable, "-c", EACH], cwd=HERE, input=json.dumps(lines), capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    return dict(zip(rows, map(json.loads, ran.stdout.splitlines()), strict=True))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process its peak memory")
@pytest.mark.parametrize("row", TABLE, ids=lambda row: " ".join(row[:4]))
def test_what_is_used_stays_within_the_budget_or_is_refused_at_first(row, found) -> None:
    *key, done = row
    ended, peak = found[tuple(key)]["ended"], found[tuple(key)]["peak"]
    bound = Budget.of(key[3]).bytes
    assert (ended == "done") == done, ended
    assert peak <= (bound + CONSTANT) / 2**20, f"{peak:.0f} MiB"
    assert done or ("needs" in ended and "budget is" in ended and "memory" in ended)


def test_many_precedents_of_many_cases_are_refused_at_first() -> None:
    x = torch.randn(2000, 8)
    explainer = pr.Explainer(nn.Linear(8, 4), (x, torch.arange(2000) % 4), memory="100 MB")
    with pytest.raises(
        pr.BudgetError, match=r"^What 2000 precedents of 1000 cases.*fewer cases at once.*memory"
    ):
        explainer.explain(x[:1000], k=2000)
    assert len(explainer.explain(x[:1000], k=20).predictions) == 1000


def test_groups_of_cases_are_smaller_where_there_are_more_scores() -> None:
    def largest(n: int, k: int) -> int:
        x = torch.randn(n, 8)
        explainer = pr.Explainer(nn.Linear(8, 4), (x, torch.arange(n) % 4), memory="10 MB")
        cases = pr.Examples.of((torch.randn(5000, 8), torch.zeros(5000).long()))
        groups = list(explainer.relevance.vectors.groups(cases, k))
        assert sum(map(len, groups)) == 5000
        return max(map(len, groups))

    assert largest(10, 1) > largest(100, 1) > largest(1000, 1) > largest(1000, 1000)


class Greedy(nn.Module):
    """A model that asks for more memory than there is, once it is told to."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.layers, self.how = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2)), how

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if len(x) == 3:  # not at the first look
            if self.how == "torch":
                torch.empty(10**13)
            raise MemoryError
        logits: torch.Tensor = self.layers(x)
        return logits


@pytest.mark.parametrize("how", ["torch", "python"])
def test_out_of_memory_is_one_line(how) -> None:
    explainer = pr.Explainer(Greedy(how), (torch.randn(20, 4), torch.arange(20) % 2), "cos_last", memory="2 GB")
    with pytest.raises(pr.BudgetError, match=r"^The model ran out of memory.*memory=") as caught:
        explainer.explain(torch.randn(3, 4))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("error", "is_one"),
    [
        (MemoryError(), True),
        (OSError(12, "Cannot allocate memory"), True),
        (OSError(2, "No such file"), False),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"), True),
        (RuntimeError("shape mismatch"), False),
    ],
)
def test_errors_that_say_that_there_is_no_memory(error, is_one) -> None:
    assert (out_of_memory(error) is not None) == is_one


def test_a_budget_knows_the_copies_of_models_for_as_long_as_they_live() -> None:
    model = nn.Sequential(nn.Linear(1000, 1000), nn.ReLU(), nn.Linear(1000, 3))
    data = torch.randn(20, 1000), torch.arange(20) % 3
    budget = Budget.of("100 MB")
    classifier = pr.Classifier.of(model, pr.Examples.of(data), memory=budget)
    one = 100_000_000 - budget.bytes
    assert one >= 4_000_000
    drawn = classifier.randomized(0)
    assert 100_000_000 - budget.bytes == 2 * one
    del drawn
    assert 100_000_000 - budget.bytes == one


def test_what_is_free_is_what_a_container_may_use(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("precedents.runtime.budget.GROUP", tmp_path)
    free = psutil.virtual_memory().available
    (tmp_path / "memory.current").write_text("1000\n")
    (tmp_path / "memory.max").write_text("5000\n")
    assert Budget().bytes == 2000
    (tmp_path / "memory.max").write_text("max\n")
    assert Budget().bytes == pytest.approx(free // 2, rel=0.5)


@pytest.mark.parametrize("metric", ["cos_grad", "cos_fisher", "cos_if", "cos_last"])
def test_an_estimate_does_not_count_what_is_there(metric) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 30), nn.Tanh(), nn.Linear(30, 3))
    x, y = torch.randn(3000, 20), torch.arange(3000) % 3
    explainer = pr.Explainer(model, (x, y), metric)
    before = explainer.estimate(1)
    explainer.explain(x[0])
    assert explainer.estimate(1).seconds < before.seconds

"""A basis that is lost is made again, and so are codes of another one."""

from pathlib import Path
from shutil import copytree

import pytest
import torch
from torch import Tensor, nn

from precedents import Explainer, FormatError, Index

from .worlds import Set

MEMORY = "100 MB"
N = 1500


@pytest.fixture(scope="module")
def world() -> tuple[nn.Module, Set, Tensor]:
    """A model with few directions, which depend on the sample."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        x = torch.randn(N + 5, 2)
        y = (x[:, 0] * x[:, 1] > 0).long()
        model = nn.Sequential(nn.Linear(2, 12), nn.Tanh(), nn.Linear(12, 2))
        optimizer = torch.optim.Adam(model.parameters(), 1e-2)
        for _ in range(60):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    return model, (x[:N], y[:N]), x[N:]


@pytest.fixture(scope="module")
def saved(world, tmp_path_factory) -> Path:
    """What was saved of an index that has grown: its basis is of its first rows alone."""
    model, (x, y), _ = world
    folder = tmp_path_factory.mktemp("grown")
    Index.build(model, (x[:1000], y[:1000]), folder / "a", memory=MEMORY).add((x[1000:], y[1000:]))
    Explainer.load(folder / "a", model, (x, y), memory=MEMORY).save(folder / "b")
    return folder / "b"


def answers_of_a_pass(world, folder: Path) -> None:
    model, train, cases = world
    found = Explainer.load(folder, model, train, memory=MEMORY).explain(cases, 5)
    expected = Explainer(model, train, index=False).explain(cases, 5)
    assert found.completeness
    torch.testing.assert_close(found.top.scores, expected.top.scores, rtol=1e-5, atol=1e-6)


def test_what_was_coded_with_a_lost_basis_is_made_again(world, saved, tmp_path) -> None:
    model, train, _ = world
    folder = copytree(saved, tmp_path / "i")
    answers_of_a_pass(world, folder)
    (folder / "basis.safetensors").unlink()
    with pytest.raises(FormatError, match=r"basis\.safetensors cannot be read"):
        Explainer.load(folder, model, train, memory=MEMORY)
    Index.build(model, train, folder)
    answers_of_a_pass(world, folder)


def test_the_basis_of_another_folder_is_refused(world, saved, tmp_path) -> None:
    model, train, _ = world
    one, other = (copytree(saved, tmp_path / name) for name in ("one", "other"))
    (other / "basis.safetensors").unlink()
    Index.build(model, train, other)
    (one / "basis.safetensors").write_bytes((other / "basis.safetensors").read_bytes())
    with pytest.raises(FormatError, match=r"000000\.safetensors is of another basis than basis\.safetensors"):
        Explainer.load(one, model, train, memory=MEMORY)
    Index.build(model, train, one)
    answers_of_a_pass(world, one)

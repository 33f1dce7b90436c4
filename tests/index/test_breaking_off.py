"""A build that cannot go on says why, keeps what is done, and is taken up by the next call as that is given."""

import json
import sys
from pathlib import Path
from subprocess import run

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

from precedents import Index, StoreError, UserCodeError
from precedents.index.shards import WORKSHOPS

MEMORY = "100 MB"
X, Y = torch.randn(1600, 6, generator=torch.Generator().manual_seed(0)), torch.arange(1600) % 3


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 3))


class Failing(Dataset):
    """Whose disk is away after some readings, if any are said."""

    def __init__(self, readings: int) -> None:
        self.readings, self.read = readings, 0

    def __len__(self) -> int:
        return len(X)

    def __getitem__(self, i: int) -> tuple[Tensor, int]:
        self.read += 1
        if self.readings and self.read > self.readings:
            raise OSError("disk away")
        return X[i], int(Y[i])


def test_a_build_that_goes_on_reads_what_it_is_given(tmp_path: Path) -> None:
    told = {"memory": MEMORY, "rows": 200, "engine": "serial"}
    with pytest.raises(UserCodeError, match="disk away"):
        Index.build(network(), Failing(5000), tmp_path / "i", **told)
    assert (tmp_path / "i" / "plan.json").is_file()
    assert not WORKSHOPS
    assert Index.build(network(), Failing(0), tmp_path / "i", **told).state.complete


def test_each_worker_of_a_build_has_its_share_of_the_free_memory(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("precedents.runtime.budget.available", lambda: 6 * 2**30)
    for engine, planned in ((None, 2**31), ("processes(workers=3)", 2**30)):
        folder = tmp_path / str(engine)
        Index.build(network(), (X, Y), folder, engine=engine)
        assert json.loads((folder / "plan.json").read_text())["memory"] == planned


def test_a_folder_that_cannot_be_written_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match=r"file/i cannot be written: .* Name a folder that can be\."):
        Index.build(network(), (X, Y), tmp_path / "file" / "i", memory=MEMORY)
    Index.build(network(), (X, Y), tmp_path / "i", memory=MEMORY, shard="2/2")
    (tmp_path / "i" / "shards").write_text("x")
    with pytest.raises(StoreError, match=r"shards cannot be written: .* Name a folder that can be\."):
        Index.build(network(), (X, Y), tmp_path / "i", memory=MEMORY)


FULL = """
import resource, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from index.test_breaking_off import MEMORY, X, Y, network
from precedents import Index
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
Index.build(network(), (X, Y), Path(sys.argv[2]), memory=MEMORY)
"""


def test_a_disk_that_is_full_is_said_in_one_line_and_the_build_goes_on(tmp_path: Path) -> None:
    tests = str(Path(__file__).parent.parent)
    ended = run(
        [sys.executable, "-c", FULL, tests, str(tmp_path / "i")], capture_output=True, text=True, check=False
    )
    said = ended.stderr.splitlines()[-1]
    assert said.startswith("precedents.errors.StoreError")
    assert "safetensors cannot be written" in said
    assert "Make room there, and the same call goes on" in said
    assert Index.build(network(), (X, Y), tmp_path / "i", memory=MEMORY).state.complete

"""An audit that is killed goes on where it stopped, and ends with the same bytes."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import blobs, mlp, retrained, trained

from precedents import Audit, InputError, Trial, audit
from precedents.errors import FormatError, StaleError

RUN = """
import os, signal, sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from audit.test_resume import audited, lines
folder = Path(sys.argv[2])
for after in map(int, sys.argv[3:]):
    child = os.fork()
    if not child:
        audited(folder)
        os._exit(0)
    ended, limit = 0, time.monotonic() + 120
    while lines(folder) < after and not ended and time.monotonic() < limit:
        ended, status = os.waitpid(child, os.WNOHANG)
        time.sleep(0.0005)
    if not ended:
        os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
    print(os.waitstatus_to_exitcode(status), lines(folder), flush=True)
"""
FOLDER = Path(__file__).parents[1]
ALL = 155  # 18 profiles, 7 kernels, 18 x 7 outcomes, agreement; the code of retrain, its files, what it gave


def audited(keep=None, **options) -> Audit:
    train, test = blobs(45, seed=1), blobs(12, seed=2)
    given = {"retrain": retrained, "k": 5} | options
    return audit(given.pop("model", None) or trained(mlp, train), train, test, keep=keep, **given)


@pytest.fixture(scope="module")
def expected() -> str:
    return audited().to_json()


@pytest.fixture(scope="module")
def finished(tmp_path_factory, expected) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    assert audited(folder).to_json() == expected
    return folder


def lines(folder: Path) -> int:
    records = folder / "records.jsonl"
    return records.read_bytes().count(b"\n") if records.exists() else 0


def killed(folder: Path, after: list[int]) -> list[tuple[int, int]]:
    """Runs the audit again and again, each time killed once so many records are there: exit codes, records."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(FOLDER), str(folder), *map(str, after)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    return [(int(code), int(there)) for code, there in map(str.split, done.stdout.splitlines())]


def test_killing_it_at_several_moments_gives_the_same_bytes(tmp_path, expected) -> None:
    codes, there = zip(*killed(tmp_path, [1, 25, 70]), strict=True)
    assert codes == (-signal.SIGKILL,) * 3
    assert 0 < there[0] < there[1] < there[2] < ALL
    assert audited(tmp_path).to_json() == expected
    assert lines(tmp_path) == ALL


@pytest.mark.parametrize("share", [0.0, 0.001, 0.2, 0.5, 0.77, 0.999])
def test_a_file_cut_at_any_place_is_completed(share, finished, tmp_path, expected) -> None:
    content = (finished / "records.jsonl").read_bytes()
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    (tmp_path / "records.jsonl").write_bytes(content[: int(share * len(content))])
    assert audited(tmp_path).to_json() == expected
    pieces = [json.loads(line)["piece"] for line in (tmp_path / "records.jsonl").read_text().splitlines()]
    assert len(pieces) == len({tuple(piece) for piece in pieces}) == ALL


def test_what_is_finished_is_not_done_again(finished, expected, monkeypatch) -> None:
    def never(*_):
        raise AssertionError("trained again")

    before = (finished / "records.jsonl").read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(Trial, "_merged", never)
        assert audited(finished).to_json() == expected
    assert (finished / "records.jsonl").read_bytes() == before


def test_what_can_be_afforded_may_change(finished) -> None:
    assert audited(finished, afford=1e-9).recommendation.metric is None
    assert audited(finished, afford=1e3).recommendation.metric is not None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 4}, r"differs in: criteria .*, k \(5, not 4\)"),
        ({"metrics": ["cos_grad"]}, "differs in: metrics"),
        ({"retrain": None}, r"retrain \(True, not False\)"),
        ({"hidden": ["1"]}, r"hidden \(None, not \['1'\]\)"),
        ({"model": trained(mlp, blobs(45, seed=1), seed=1)}, "differs in: model fingerprint"),
    ],
)
def test_a_folder_of_something_else_is_refused(options, message, finished) -> None:
    with pytest.raises(StaleError, match=message):
        audited(finished, **options)


def test_other_data_are_refused(finished, model, train, test) -> None:
    x = train[0].clone()
    x[0, 0] += 1
    with pytest.raises(StaleError, match="training set fingerprint"):
        audit(model, (x, train[1]), test, keep=finished, retrain=retrained, k=5)
    with pytest.raises(StaleError, match="test set fingerprint"):
        audit(model, train, (test[0], (test[1] + 1) % 3), keep=finished, retrain=retrained, k=5)


def test_damaged_folders_are_refused(finished, tmp_path) -> None:
    manifest, records = tmp_path / "manifest.json", tmp_path / "records.jsonl"
    records.write_text("{}\n")
    with pytest.raises(FormatError, match="no manifest beside it"):
        audited(tmp_path)
    manifest.write_text("[]")
    with pytest.raises(FormatError, match="is no manifest"):
        audited(tmp_path)
    for name in ("manifest.json", "behaviour.safetensors"):
        (tmp_path / name).write_bytes((finished / name).read_bytes())
    with pytest.raises(FormatError, match=r"Line 1 of .* is damaged"):
        audited(tmp_path)
    with pytest.raises(InputError, match="is no folder and cannot become one"):
        audited(manifest)


def test_nothing_else_is_left_in_the_folder(finished) -> None:
    names = [".lock", "behaviour.safetensors", "manifest.json", "records.jsonl"]
    assert sorted(path.name for path in finished.iterdir()) == names

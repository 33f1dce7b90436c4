"""Processes: start, exit codes, Ctrl-C, kill and resume, closed pipes, completion."""

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep

import pytest

from cli.conftest import ROOT, RUN, ended, started
from precedents.cli._main import main
from precedents.cli._output import Interrupted, reporting

AUDIT = f"audit {RUN} --cases 30 --metrics gc,gd,cos_x --json"


def records(folder: Path) -> int:
    return sum(file.read_bytes().count(b"\n") for file in (folder / RUN).glob("audit-*/records.jsonl"))


def stopped(folder: Path, how: signal.Signals, after: int, *more: str):
    """An audit that is sent a signal when so many pieces are done."""
    process = started(*AUDIT.split(), *more, cwd=folder)
    deadline = monotonic() + 300
    while records(folder) < after and process.poll() is None and monotonic() < deadline:
        sleep(0.002)
    process.send_signal(how)
    return ended(process)


def test_an_audit_that_was_killed_and_interrupted_goes_on_and_gives_the_same_bytes(
    folder, world, tmp_path, monkeypatch, precedents
) -> None:
    assert stopped(folder, signal.SIGKILL, 3).code == -signal.SIGKILL
    killed = records(folder)
    assert killed >= 3
    done = stopped(folder, signal.SIGINT, killed + 5, "--report", "report.html")
    assert (done.code, done.out) == (130, "")
    assert "Traceback" not in done.err
    (said,) = [line for line in done.err.splitlines() if "Interrupted" in line]
    assert f"is kept in {RUN}/audit-" in said
    assert "the same command goes on from there" in said
    assert not list(folder.glob("*report.html*"))
    interrupted = records(folder)
    resumed = precedents(*AUDIT.split())
    assert records(folder) > interrupted
    shutil.copytree(world, tmp_path / "uninterrupted")
    monkeypatch.chdir(tmp_path / "uninterrupted")
    assert resumed.out == precedents(*AUDIT.split()).out


def test_ctrl_c_during_training_leaves_nothing(tmp_path) -> None:
    process = started(*["train", "--dataset", "digits", "--model", "cnn", "--epochs", "10000"], cwd=tmp_path)
    assert process.stderr is not None
    first = process.stderr.readline()
    sleep(0.3)
    process.send_signal(signal.SIGINT)
    done = ended(process)
    assert first.startswith("Training cnn on 600 instances of digits")
    assert done.code == 130
    assert done.err.splitlines()[-1] == "precedents: Interrupted: nothing was written."
    assert not list(tmp_path.iterdir())


def test_ctrl_c_in_code_that_is_a_string_has_the_same_exit_code(tmp_path) -> None:
    (tmp_path / "my_model.py").write_text('def make():\n    exec("raise KeyboardInterrupt")\n')
    done = ended(started("audit", "--target", "my_model:make", cwd=tmp_path))
    assert (done.code, done.err.partition(".")[0]) == (130, "precedents: Interrupted: nothing was kept")


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("criteria", 0),
        (f"audit {RUN} --metrics dot_x --metric dot_x --criteria identical_class --fail-under 1 --quiet", 1),
        ("explain nowhere --case 1", 2),
    ],
)
def test_the_exit_code_is_the_processes(command, code, folder) -> None:
    done = ended(started(*command.split(), cwd=folder))
    assert done.code == code, done.err
    assert "Traceback" not in done.err


def test_a_reader_that_stops_reading_is_no_error(tmp_path) -> None:
    with started("metrics", "--json", cwd=tmp_path) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 141


def test_json_goes_through_a_pipe_while_messages_do_not(folder) -> None:
    command = f"{sys.executable} -m precedents train --dataset wine --model mlp --epochs 1 --json"
    piped = (
        f"{command} 2> messages | {sys.executable} -c 'import json, sys; print(json.load(sys.stdin)[\"run\"])'"
    )
    done = subprocess.run(["bash", "-c", piped], cwd=folder, capture_output=True, text=True, timeout=100)
    assert (done.stdout, done.stderr) == ("runs/wine-mlp\n", "")
    assert "Training mlp" in (folder / "messages").read_text()


@pytest.mark.parametrize(("given", "used"), [(None, "PASSIVE"), ("active", "ACTIVE")])
def test_waiting_threads_make_way_unless_the_environment_says_otherwise(
    given, used, tmp_path, monkeypatch
) -> None:
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    more = {"OMP_DISPLAY_ENV": "true"} | ({"OMP_WAIT_POLICY": given} if given else {})
    done = ended(started(*["train", "--dataset", "wine", "--model", "mlp", "--dry-run"], cwd=tmp_path, **more))
    assert f"OMP_WAIT_POLICY = '{used}'" in done.err


LIGHT = """
import json, sys
from precedents.cli._main import main
for command in json.loads(sys.argv[1]):
    code = main(command.split())
    heavy = {"torch", "numpy", "pandas", "matplotlib"} & set(sys.modules)
    print(code, *heavy, file=sys.stderr)
"""
LISTINGS = ["", "--help", "audit --help", "metrics", "criteria --json", "--version"]


def test_help_and_listings_start_without_torch() -> None:
    command = [sys.executable, "-c", LIGHT, json.dumps(LISTINGS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stderr.splitlines() == ["0"] * len(LISTINGS)


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("precedents tr", {"train"}),
        ("precedents train --dataset di", {"digits"}),
        ("precedents train --model logi", {"logistic_regression"}),
        ("precedents explain --metric cos_g", {"cos_grad"}),
        ("precedents audit --metrics gc,cos_g", {"gc,cos_grad"}),
        ("precedents audit --criteria identical_c", {"identical_class"}),
    ],
)
def test_names_are_completed_from_the_registries(line, offered, monkeypatch, capfd) -> None:
    for name, value in completing(line).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit) as done:
        main([])
    assert done.value.code == 0
    assert set(capfd.readouterr().out.split()) == offered


def completing(line: str) -> dict[str, str]:
    """What a shell sets when it asks how a line could go on."""
    count = str(len(line.split()) - 1)
    return {"_PRECEDENTS_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": count}


def test_the_shell_is_answered_by_the_command(tmp_path) -> None:
    done = ended(started(cwd=tmp_path, **completing("precedents tr")))
    assert (done.code, done.out.split()) == (0, ["train"])


def test_the_script_is_the_command() -> None:
    script = (ROOT / "pyproject.toml").read_text().partition("[project.scripts]\n")[2].splitlines()[0]
    assert script == 'precedents = "precedents.cli._main:main"'


def test_ctrl_c_while_a_class_is_made_is_one_too() -> None:
    def imported() -> None:
        with reporting(True, "stopped"):
            raise RuntimeError("Error calling __set_name__") from KeyboardInterrupt()  # as Python 3.11 does

    with pytest.raises(Interrupted, match="stopped"):
        imported()

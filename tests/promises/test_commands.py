"""Commands in continuous integration: what a user's module does is contained, and no failure is a success."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from precedents.cli._main import main

ROOT = Path(__file__).parents[2]
SHORT = ("--metrics", "cos_x", "--criteria", "identical_class")

MODULE = """
import atexit, ctypes, io, logging, os, signal, sys, threading, warnings
import torch

X = torch.randn(12, 4, generator=torch.Generator().manual_seed(0))
Y = torch.arange(12) % 3

class Net(torch.nn.Module):
    def __init__(self, before=lambda: None):
        super().__init__()
        self.layer, self.before = torch.nn.Linear(4, 3, bias=False), before
        self.layer.weight.data = torch.arange(12.0).reshape(3, 4).sin()
    def forward(self, x):
        self.before()
        return self.layer(x)

class Odd(BaseException): pass

def made(before=lambda: None): return Net(before), (X, Y), (X, Y)
def plain(): return made()
def leave(*code): sys.exit(*code)
def exit_0(): sys.exit(0)
def exit_none(): sys.exit()
def exit_text(): sys.exit("so long")
def exit_raised(): raise SystemExit(0)
def odd(): raise Odd("w\\x1b[31m")
def closed(): raise GeneratorExit
def interrupted(): raise KeyboardInterrupt
def stopped(): raise StopIteration
def net_exits(): return made(exit_0)
def net_odd(): return made(odd)
def shout():
    print("printed"); sys.stdout.write("written"); sys.__stdout__.write("to dunder\\n")
    os.write(1, b"to the descriptor\\n"); ctypes.CDLL(None).puts(b"by C"); os.system("echo by a child")
def shouting():
    shout()
    if "pytest" not in sys.modules:
        atexit.register(print, "at the end")
    return made()
def net_shouts(): return made(shout)
def logs(): logging.basicConfig(stream=sys.stdout, level=0); logging.info("logged"); return made()
def away(): os.chdir("/"); return made()
def net_away(): return made(lambda: os.chdir("/"))
def arguments(): sys.argv[:] = ["evil"]; return made()
def streams(): sys.stdout = sys.stderr = io.StringIO(); return made()
def closes(): sys.stdout.close(); return made()
def filters(): warnings.simplefilter("error"); return made()
def environment(): os.environ.clear(); return made()
def settings():
    torch.set_grad_enabled(False); torch.set_num_threads(1); torch.manual_seed(99); return made()
def handlers(): signal.signal(signal.SIGINT, signal.SIG_IGN); return made()
"""


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """The current folder, with a user's module in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "argv", ["precedents", "audit"])
    name = f"contained_{abs(hash(str(tmp_path)))}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    (tmp_path / "name").write_text(name)
    yield tmp_path
    sys.modules.pop(name, None)


def ran(capfd, folder: Path, command: str, factory: str, *more: str) -> tuple[int, str, str]:
    import torch

    grad, threads = torch.is_grad_enabled(), torch.get_num_threads()
    environment = dict(os.environ)
    capfd.readouterr()
    try:
        code = main([*command.split(), "--target", f"{(folder / 'name').read_text()}:{factory}", *more])
    finally:
        torch.set_grad_enabled(grad)
        torch.set_num_threads(threads)
        os.environ.update(environment)
    return code, *capfd.readouterr()


FAILURES = {
    "exit_0": "SystemExit: 0",
    "exit_none": "SystemExit",
    "exit_text": "SystemExit: so long",
    "exit_raised": "SystemExit: 0",
    "odd": "Odd: w⟨U+001B⟩[31m",
    "closed": "GeneratorExit",
    "stopped": "StopIteration",
    "net_exits": "SystemExit: 0",
    "net_odd": "Odd: w⟨U+001B⟩[31m",
}


@pytest.mark.parametrize(
    "command",
    [("audit", *SHORT, "--metric", "cos_x", "--fail-under", "0"), ("explain", "--case", "0")],
    ids=lambda c: c[0],
)
@pytest.mark.parametrize("factory", FAILURES)
def test_a_factory_that_leaves_is_a_failure_in_one_line(factory, command, folder, capfd) -> None:
    code, out, err = ran(capfd, folder, command[0], factory, *command[1:])
    assert code == 2
    assert out == ""
    assert len(err.splitlines()) == 1
    assert FAILURES[factory] in err
    assert ".py, line " in err


@pytest.mark.parametrize(
    "body",
    [
        "import sys; sys.exit(0)",
        "raise SystemExit",
        "class B(BaseException): pass\nraise B",
        "1 / 0",
        "import nowhere_at_all",
        "def (",
    ],
)
def test_a_module_that_leaves_while_it_is_imported_is_a_failure(body, folder, capfd) -> None:
    (folder / "leaving.py").write_text(body)
    capfd.readouterr()
    assert main(["audit", "--target", "leaving:factory", "--fail-under", "0.9"]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("precedents: leaving cannot be imported: ")
    assert len(err.splitlines()) == 1
    sys.modules.pop("leaving", None)


def test_a_ctrl_c_in_a_factory_is_an_interruption(folder, capfd) -> None:
    assert ran(capfd, folder, "audit", "interrupted", *SHORT)[0] == 130


CONTAINED = [
    "plain",
    "shouting",
    "net_shouts",
    "logs",
    "away",
    "net_away",
    "arguments",
    "streams",
    "closes",
    "filters",
    "environment",
    "settings",
    "handlers",
]


@pytest.mark.parametrize("factory", CONTAINED)
def test_whatever_a_factory_does_the_result_is_the_same_json_alone(factory, folder, capfd) -> None:
    import signal

    handler, arguments = signal.getsignal(signal.SIGINT), list(sys.argv)
    wanted = ran(capfd, folder, "explain", "plain", "--case", "0", "--json")[1]
    code, out, _ = ran(capfd, folder, "explain", factory, "--case", "0", "--json", "--html", "page.html")
    assert code == 0
    assert json.loads(out) == json.loads(wanted)
    assert (folder / "page.html").is_file()
    assert Path.cwd() == folder or factory == "net_away"
    assert signal.getsignal(signal.SIGINT) == handler
    assert sys.argv == arguments


@pytest.mark.parametrize("factory", ["away", "net_away"])
def test_a_factory_that_goes_elsewhere_moves_no_path(factory, folder, capfd) -> None:
    code, out, _ = ran(
        capfd, folder, "audit", factory, *SHORT, "--keep", "kept", "--report", "report.html", "--json"
    )
    assert code == 0
    assert json.loads(out)["format"] == 1
    assert (folder / "kept" / "manifest.json").is_file()
    assert (folder / "report.html").is_file()


@pytest.mark.parametrize("factory", ["shouting", "net_shouts", "away", "net_away"])
def test_an_index_is_where_it_was_asked_for_whatever_a_factory_does(factory, folder, capfd) -> None:
    many = MODULE.replace("randn(12,", "randn(400,").replace("arange(12)", "arange(400)")
    (folder / f"{(folder / 'name').read_text()}.py").write_text(many)

    def indexed(command: str, *more: str) -> str:
        os.chdir(folder)
        code, out, _ = ran(capfd, folder, command, factory, "--index", "kept", *more)
        assert code == 0
        return out

    assert indexed("index build").endswith("400 rows in 1 shard, complete\n")
    assert (folder / "kept" / "index.json").is_file()
    json.loads(indexed("index check", "--cases", "2", "--json"))
    json.loads(indexed("explain", "--case", "0", "--json"))


@pytest.mark.parametrize(
    ("closed", "code"), [("<&-", 0), (">&-", 0), ("2>&-", 0), ("<&- >&- 2>&-", 0), (">&- --no", 2)]
)
def test_streams_that_are_closed_change_no_exit_code(closed, code) -> None:
    command = f"{sys.executable} -m precedents metrics {closed}"
    ended = subprocess.run(
        ["sh", "-c", command],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == code
    assert "Traceback" not in ended.stderr


def test_what_is_printed_goes_to_stderr(folder, capfd) -> None:
    _, out, err = ran(capfd, folder, "explain", "shouting", "--case", "0")
    assert out.startswith("case 0: predicted")
    for said in ("printed", "written", "to dunder", "to the descriptor", "by C", "by a child"):
        assert said in err
        assert said not in out


def test_a_process_of_its_own_prints_its_result_alone_to_the_end(folder) -> None:
    command = [sys.executable, "-m", "precedents", "explain", "--case", "0", "--json", "--target"]
    done = subprocess.run(
        [*command, f"{(folder / 'name').read_text()}:shouting"],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["metric"] == "cos_grad"
    assert "at the end" in done.stderr


def pipe(path: Path) -> None:
    os.mkfifo(path)


def bound(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)


PLACES = {
    "pipe": pipe,
    "socket": bound,
    "device": lambda path: path.symlink_to("/dev/null"),
    "folder": lambda path: path.mkdir(),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "command", [("audit", *SHORT, "--report"), ("explain", "--case", "0", "--html")], ids=lambda c: c[0]
)
def test_a_page_never_replaces_what_is_no_file(place, command, folder, capfd) -> None:
    path = folder / "place"
    PLACES[place](path)
    kind = path.lstat().st_mode
    code, out, err = ran(capfd, folder, command[0], "plain", *command[1:], "place", "--force")
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert path.lstat().st_mode == kind


def test_a_page_is_written_where_a_link_points(folder, capfd) -> None:
    (folder / "old.html").write_text("old")
    (folder / "page.html").symlink_to("old.html")
    assert ran(capfd, folder, "explain", "plain", "--case", "0", "--html", "page.html", "--force")[0] == 0
    assert (folder / "page.html").is_symlink()
    assert "<figure" in (folder / "old.html").read_text()


NUMBERS = [
    *(f"train --dataset wine --model mlp --epochs {value}" for value in ("0", "-1", "1.5", "nan", "x")),
    *(f"train --dataset wine --model mlp --seed {value}" for value in ("-1", "1.5", "99999999999999999999")),
    *(f"reproduction run --settings wine/mlp --epochs {value}" for value in ("0", "-3", "x")),
    *(f"reproduction run --settings wine/mlp --workers {value}" for value in ("0", "-1", "1.5")),
    *(
        f"reproduction run --settings wine/mlp --repeats {value}"
        for value in ("0", "-1", "5-3", "99999999999999999999")
    ),
    *(f"reproduction run --settings wine/mlp --memory {value}" for value in ("0", "much", "nan", "1e9")),
    *(f"audit none --cases {value}" for value in ("0", "-1", "x")),
    *(f"audit none --fail-under {value}" for value in ("nan", "inf", "-1", "2", "x")),
]


@pytest.mark.parametrize("command", NUMBERS)
def test_a_number_out_of_range_is_refused_before_any_work(command, tmp_path, monkeypatch, capfd) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(command.split()) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert not list(tmp_path.iterdir())

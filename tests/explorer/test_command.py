"""precedents explore: wrong use is one line before any address; TLS is spoken where it is asked for."""

import html
import json
import shlex
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.request import HTTPCookieProcessor, HTTPSHandler, build_opener

import pytest
from waiting import until

import precedents as pr
from explorer.conftest import Client, filled, picture_world
from precedents.cli._main import main
from precedents.cli.explore import options_of
from precedents.errors import InputError
from precedents.explorer.origin import Provenance
from precedents.explorer.running import started
from precedents.explorer.server import Listener
from precedents.explorer.world import World
from precedents.zoo.run import Prepared, Recipe, Run


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nowhere"], "is no folder"),
        ([], "Name one of the two"),
        (["nowhere", "--metrics", "nonsense"], "nowhere"),
        (["nowhere", "--host", "0.0.0.0"], "--allow-remote"),
        (["nowhere", "--host", "192.0.2.1", "--allow-remote"], "needs TLS"),
        (["nowhere", "--certificate", "none.pem"], "TLS needs both"),
        (["nowhere", "--port", "70000"], "The port is 70000"),
        (["nowhere", "--audit", "none.json"], "none.json is no file"),
        (["nowhere", "--keep", "pyproject.toml"], "pyproject.toml is a file"),
        (["nowhere", "--keep", "pyproject.toml/kept"], "pyproject.toml is a file"),
    ],
)
def test_wrong_use_is_one_line_and_no_address(words, told, capfd) -> None:
    assert main(["explore", *words, "--no-browser"]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert told in err
    assert len(err.strip().splitlines()) == 1


def test_training_again_takes_the_answers_along_and_leaves_the_tags(tmp_path) -> None:
    prepared = Prepared.of(Recipe("digits", "logistic_regression", epochs=1))
    run = Run(prepared, prepared.untrained())
    run.write(tmp_path / "run")
    folder = tmp_path / "run" / "explorer"
    folder.mkdir()
    (folder / "partial" / "0123").mkdir(parents=True)
    own = ("explorer.json", "0000.safetensors", ".lock", "partial/0123/sums.safetensors")
    for name in (*own, "tags-0123abcd.json"):
        (folder / name).write_text("")
    run.write(tmp_path / "run")
    assert [path.name for path in folder.iterdir()] == ["tags-0123abcd.json"]


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Iterator[tuple[Path, Client]]:
    """An explorer of a run by another metric than the default."""
    folder = tmp_path_factory.mktemp("runs") / "my run"
    made = Prepared.of(Recipe("digits", "logistic_regression", epochs=1)).run()
    made.write(folder)
    explainer = pr.Explainer(made.model, made.prepared.train, "cos_x")
    again = options_of({"--metrics": "cos_x,gd", "--keep": Path("kept"), "--port": 0, "--index": None})
    world = World.of(explainer, made.prepared.test, ["dot_grad"], Provenance(run=str(folder), again=again))
    explorer = filled(started(world, Listener()))
    yield folder, Client(explorer)
    explorer.stop()


def told(client: Client, target: str) -> dict:
    """What a page says in JSON, when nothing is computed any more."""
    client.ask(f"/api/v1/{target}")
    until(lambda: all(job.state == "done" for job in list(client.explorer.world.jobs.every.values())))
    return json.loads(client.ask(f"/api/v1/{target}")[2])


@pytest.mark.parametrize(
    ("target", "metric"),
    [
        ("cases?list=all", "cos_x"),
        ("cases/3", "cos_x"),
        ("cases/3?metric=dot_grad", "dot_grad"),
        ("train", "cos_x"),
        ("train/5", "cos_x"),
        ("train/5?metric=dot_grad", "dot_grad"),
        ("hubs?metric=dot_grad", "dot_grad"),
        ("suspects", "cos_x"),
    ],
)
def test_the_command_and_the_python_of_a_page_are_by_its_metric(run, target, metric) -> None:
    found = told(run[1], target)
    assert f" --metric {metric}" in found["command"]
    assert f"run.prepared.train, '{metric}'" in found["python"]


def test_a_page_has_no_command_where_none_says_the_same(run) -> None:
    for target in ("cases/3?as=1", "cases?list=tagged", "train?list=tagged"):
        assert told(run[1], target)["command"] == ""


def test_the_commands_of_pages_say_what_the_pages_say(run, capsys) -> None:
    def asked(target: str) -> dict:
        command = told(run[1], target)["command"]
        assert main([*shlex.split(command)[1:], "--json", "--quiet"]) == 0
        return json.loads(capsys.readouterr().out)

    page = told(run[1], "cases/3")["columns"][0]["precedents"]
    assert _indices(asked("cases/3")) == [each["index"] for each in page]
    page = told(run[1], "suspects")["suspects"]
    suspects = asked("suspects")["rows"]
    assert [each["index"] for each in suspects] == [each["place"] for each in page]
    assert [len(each["accused_by"]) for each in suspects] == [each["accusers"] for each in page]
    (place,) = {told(run[1], "train?size=1")["instances"][0]["place"]}
    assert f"--index {place} " in told(run[1], "train")["command"]


def _indices(explained: dict) -> list[int]:
    (case,) = explained["cases"]
    return [each["index"] for each in case["precedents"]]


def test_the_command_that_starts_it_again_has_its_options(run) -> None:
    folder, client = run
    wanted = f"precedents explore '{folder}' --metrics cos_x,gd --keep kept"
    assert client.explorer.world.origin.restart == wanted
    assert wanted in html.unescape(client.ask("/cases")[2])


def test_commands_name_the_folder_of_the_data_and_the_index_where_it_answers() -> None:
    origin = Provenance(run="runs/a", data="my data", index="codes", indexed="cos_x")
    assert origin.command("explain", "--case", "3", metric="cos_x") == (
        "precedents explain runs/a --case 3 --metric cos_x --index codes --data 'my data'"
    )
    assert "--index" not in origin.command("explain", metric="cos_grad") + origin.command(
        "suspects", metric="cos_x"
    )
    assert "Run.open(Path('runs/a'), Path('my data'))" in origin.python("cos_x", "")


def test_a_port_that_is_taken_is_told() -> None:
    one = Listener().bound()
    one.listen()
    with pytest.raises(InputError, match="Name another --port"):
        Listener(port=one.getsockname()[1]).bound()
    one.close()


def test_with_a_certificate_tls_is_spoken_and_the_cookie_is_secure(tmp_path) -> None:
    openssl = shutil.which("openssl")
    assert openssl, "openssl makes the certificate of this test"
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    made = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost"]
    made += [
        "-addext",
        "subjectAltName=DNS:localhost,IP:127.0.0.1",
        "-keyout",
        str(key),
        "-out",
        str(certificate),
    ]
    subprocess.run(made, check=True, capture_output=True)
    explainer, test = picture_world()
    explorer = started(World.of(explainer, test, [], Provenance()), Listener(certificate=certificate, key=key))
    try:
        assert explorer.address.startswith("https://127.0.0.1:")
        trusted = HTTPSHandler(context=ssl.create_default_context(cafile=str(certificate)))
        cookies = HTTPCookieProcessor()
        with build_opener(trusted, cookies).open(explorer.address) as answer:
            assert answer.status == 200
        (cookie,) = cookies.cookiejar
        assert cookie.secure
    finally:
        explorer.stop()

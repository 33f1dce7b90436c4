"""precedents explore: wrong use is one line before any address; TLS is spoken where it is asked for."""

import shutil
import ssl
import subprocess
from urllib.request import HTTPCookieProcessor, HTTPSHandler, build_opener

import pytest

from explorer.conftest import picture_world
from precedents.cli._main import main
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

"""Where the files of a data set come from: a folder, the cache, a download; and which are refused."""

import logging
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from precedents import DataFileError
from precedents.zoo.datasets import trec
from precedents.zoo.datasets._files import PublishedFile, bases, checksum, downloaded, files, found
from zoo import owners

CONTENT = b"1 2 van \r\n3 4 bus\n"
NAME = "x.dat"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args) -> None:
        pass


@pytest.fixture
def site(tmp_path) -> Iterator[tuple[Path, str]]:
    """A folder and the address at which it is served."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / NAME).write_bytes(CONTENT)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield folder, f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


def published(home: str, algorithm: str = "sha256", content: bytes = CONTENT) -> PublishedFile:
    return PublishedFile(NAME, checksum(content, algorithm), (f"{home}{NAME}",))


def test_files_are_found_in_the_folder_and_in_the_data_sets_own(tmp_path, monkeypatch) -> None:
    wanted = PublishedFile(NAME, checksum(CONTENT), inside="unpacked")
    for where in ("", "toy", "unpacked", "toy/unpacked"):
        folder = tmp_path / where.replace("/", "-")
        owners.written(folder / where, {NAME: CONTENT})
        assert found("toy", wanted, folder) == folder / where / NAME
        assert found("toy", wanted, str(folder)) == folder / where / NAME
        monkeypatch.setenv("PRECEDENTS_DATA", str(folder))
        assert files("toy", [wanted], None)[0].content == CONTENT


def test_the_folder_that_is_passed_goes_before_the_variable(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PRECEDENTS_DATA", str(tmp_path / "nowhere"))
    assert bases("toy", tmp_path) == [tmp_path / "toy", tmp_path]


def test_a_folder_that_is_none_is_an_error(tmp_path, monkeypatch) -> None:
    with pytest.raises(DataFileError, match="nowhere does not exist"):
        bases("toy", tmp_path / "nowhere")
    monkeypatch.setenv("PRECEDENTS_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(DataFileError, match="which PRECEDENTS_DATA names"):
        bases("toy", None)


@pytest.mark.parametrize("algorithm", ["sha256", "md5", "words"])
def test_a_file_is_downloaded_once(algorithm, site, cache, tmp_path) -> None:
    folder, home = site
    wanted = published(home, algorithm)
    (first,) = files("toy", [wanted], tmp_path)
    (folder / NAME).unlink()
    (second,) = files("toy", [wanted], None)
    assert first == second
    assert first.content == CONTENT
    assert first.where == str(cache / "precedents" / "toy" / NAME)


def test_the_first_address_that_answers_is_taken(site) -> None:
    _, home = site
    wanted = replace(published(home), urls=(f"{home}missing", "http://127.0.0.1:1/", f"{home}{NAME}"))
    assert downloaded("toy", wanted).read_bytes() == CONTENT


@pytest.mark.parametrize("algorithm", ["sha256", "words"])
def test_an_altered_download_is_refused_and_not_kept(algorithm, site, cache) -> None:
    folder, home = site
    (folder / NAME).write_bytes(CONTENT + b"5 6 opel\n")
    with pytest.raises(DataFileError, match=r"x\.dat of toy .* cannot be downloaded .*PRECEDENTS_DATA"):
        downloaded("toy", published(home, algorithm))
    assert not [path for path in cache.rglob("*") if path.is_file()]
    (folder / NAME).write_bytes(CONTENT)
    assert downloaded("toy", published(home, algorithm)).read_bytes() == CONTENT


def test_a_file_altered_in_the_cache_is_downloaded_again(site) -> None:
    _, home = site
    path = downloaded("toy", published(home))
    path.write_bytes(b"altered")
    assert downloaded("toy", published(home)).read_bytes() == CONTENT


def test_no_answer_says_what_to_do(tmp_path) -> None:
    with pytest.raises(DataFileError, match=r"Get it by other means, put it into a folder"):
        files("toy", [published("http://127.0.0.1:1/")], tmp_path)


def test_downloading_leaves_the_log_as_it_was(site) -> None:
    _, home = site
    level = logging.getLogger("pooch").level
    downloaded("toy", published(home))
    assert logging.getLogger("pooch").level == level


def test_words_are_the_same_whatever_separates_them() -> None:
    assert checksum(CONTENT, "words") == checksum(b"1 2 van\n3 4\tbus", "words")
    assert checksum(CONTENT, "words") != checksum(b"1 2 van 3 4 opel", "words")


def test_a_whole_data_set_is_downloaded(site, monkeypatch) -> None:
    folder, home = site
    made = owners.trec_files()
    owners.written(folder, made)
    owners.adopt(monkeypatch, trec, made)
    here = tuple(replace(file, urls=(f"{home}{file.name}",)) for file in trec.FILES)
    monkeypatch.setattr(trec, "FILES", here)
    assert len(trec.trec().train) == 24

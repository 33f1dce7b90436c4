import os

import pytest

from precedents.runtime.atomic import create, whole, write


def names(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("content", ["text é", b"\x00bytes"])
def test_a_file_is_written_over_what_was_there(tmp_path, content) -> None:
    write(tmp_path / "file", "before")
    write(tmp_path / "file", content)
    assert (tmp_path / "file").read_bytes() == (content.encode() if isinstance(content, str) else content)
    assert names(tmp_path) == ["file"]


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        write(tmp_path / "folder", "text")
    assert names(tmp_path) == ["folder"]


@pytest.mark.parametrize("links", [True, False])
def test_of_many_who_create_a_file_the_first_does(tmp_path, monkeypatch, links) -> None:
    def unknown(*_: object) -> None:
        raise PermissionError("no links on this disk")

    if not links:
        monkeypatch.setattr(os, "link", unknown)
    assert create(tmp_path / "file", "first")
    assert not create(tmp_path / "file", "second")
    assert (tmp_path / "file").read_text() == "first"
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("there", [True, False])
def test_a_filled_folder_takes_its_place(tmp_path, there) -> None:
    folder = tmp_path / "runs" / "one"
    if there:
        folder.mkdir(parents=True)
        (folder / "old").write_text("old")
    with whole(folder) as fresh:
        (fresh / "new").write_text("new")
        assert folder.exists() == there
    assert names(folder) == ["new"]
    assert names(folder.parent) == ["one"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_folder_that_was_not_filled_leaves_the_old_one(tmp_path, error) -> None:
    folder = tmp_path / "one"
    folder.mkdir()
    (folder / "old").write_text("old")

    def fail() -> None:
        with whole(folder) as fresh:
            (fresh / "new").write_text("half")
            raise error

    with pytest.raises(error):
        fail()
    assert names(tmp_path) == ["one"]
    assert names(folder) == ["old"]

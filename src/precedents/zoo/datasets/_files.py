"""Files as their owners publish them: found in a folder, else downloaded; checked either way.

The folder is the one that is passed, or the one that the environment variable PRECEDENTS_DATA names. A data
set's files are looked for in its subfolder of the data set's name and in the folder itself.
"""

import gzip
import logging
import os
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import new
from io import BytesIO
from pathlib import Path
from typing import TypeAlias

from precedents.errors import DataFileError

Folder: TypeAlias = str | Path | None

VARIABLE = "PRECEDENTS_DATA"


@dataclass(frozen=True)
class PublishedFile:
    """A file of a data set, and what is known of it."""

    name: str
    checksum: str  # algorithm:digest; the algorithm "words" is the sha256 of the words, whatever separates them
    urls: tuple[str, ...] = ()  # the same file, the first that answers is taken
    inside: str = ""  # the folder that its archive unpacks to


@dataclass(frozen=True)
class File:
    """A file that was read."""

    where: str
    content: bytes = field(repr=False)

    def refused(self, reason: str) -> DataFileError:
        """The error that names the file and says what is wrong with it."""
        return DataFileError(f"{self.where} {reason} Replace it by the file that its owners publish.")

    def lines(self, encoding: str) -> list[str]:
        """The lines of a text, without those that are blank."""
        try:
            text = self.content.decode(encoding)
        except UnicodeDecodeError as error:
            raise self.refused(f"is no {encoding} text: byte {error.start} cannot be read.") from None
        return [line for line in text.split("\n") if line.strip()]


def files(dataset: str, wanted: Sequence[PublishedFile], folder: Folder) -> list[File]:
    """The files, each found or downloaded, with the published checksum."""
    return [checked(found(dataset, one, folder) or downloaded(dataset, one), one) for one in wanted]


def found(dataset: str, wanted: PublishedFile, folder: Folder) -> Path | None:
    """Where the file is, if it is in the folder."""
    places = (base / inside / wanted.name for base in bases(dataset, folder) for inside in ("", wanted.inside))
    return next((path for path in places if path.is_file()), None)


def bases(dataset: str, folder: Folder) -> list[Path]:
    """The folders to look in; one that was named but is none is an error."""
    named = folder or os.environ.get(VARIABLE)
    if not named:
        return []
    root = Path(named).expanduser()
    if not root.is_dir():
        how = "" if folder else f", which {VARIABLE} names,"
        raise DataFileError(f"The folder {root}{how} does not exist. Name the one that holds the data sets.")
    return [root / dataset, root]


def checked(path: Path, wanted: PublishedFile) -> File:
    """The file's content; another checksum than the published one is an error."""
    file = File(str(path), path.read_bytes())
    _match(file, wanted)
    return file


def member(archive: File, wanted: PublishedFile, content: bytes) -> File:
    """A file inside an archive, checked."""
    file = File(f"{wanted.inside}/{wanted.name} in {archive.where}", content)
    _match(file, wanted)
    return file


def unpacked(file: File, most: int) -> File:
    """The content of a .gz file, which may have at most `most` bytes."""
    try:
        with gzip.GzipFile(fileobj=BytesIO(file.content)) as packed:
            content = packed.read(most + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise file.refused(f"cannot be unpacked, it is truncated or altered: {error}.") from None
    if len(content) > most:
        raise file.refused(f"unpacks to more than {most:,} bytes.")
    return File(file.where, content)


def _match(file: File, wanted: PublishedFile) -> None:
    algorithm, _, digest = wanted.checksum.partition(":")
    here = checksum(file.content, algorithm)
    if here != wanted.checksum:
        raise file.refused(
            f"is not the published file: it is truncated or altered ({len(file.content):,} bytes, {algorithm} "
            f"{here.partition(':')[2][:8]}..., published {digest[:8]}...)."
        )


def checksum(content: bytes, algorithm: str = "sha256") -> str:
    """In the form algorithm:digest."""
    if algorithm == "words":
        return "words:" + new("sha256", b" ".join(content.split())).hexdigest()
    return f"{algorithm}:{new(algorithm, content, usedforsecurity=False).hexdigest()}"


def downloaded(dataset: str, wanted: PublishedFile) -> Path:
    """The file in the cache of the user's system; downloaded if it is not there or differs."""
    failures = []
    for url in wanted.urls:
        got = _retrieved(dataset, wanted, url)
        if isinstance(got, Path):
            return got
        failures.append(f"{url}: {got}")
    raise DataFileError(
        f"{wanted.name} of {dataset} is not there and cannot be downloaded ({'; '.join(failures)}). Get it by "
        f"other means, put it into a folder and name that: folder=... or the environment variable {VARIABLE}."
    )


def _retrieved(dataset: str, wanted: PublishedFile, url: str) -> Path | str:
    """The file, or why it cannot be had from this address."""
    import pooch

    cache = Path(pooch.os_cache("precedents")) / dataset
    known = None if wanted.checksum.startswith("words:") else wanted.checksum
    try:
        with _bar(f"downloading {wanted.name}") as bar:
            loader = pooch.HTTPDownloader(progressbar=bar)
            path = Path(pooch.retrieve(url, known, wanted.name, cache, downloader=loader))
    except (OSError, ValueError) as error:
        return (str(error).splitlines() or [type(error).__name__])[0]
    if known is None and checksum(path.read_bytes(), "words") != wanted.checksum:
        path.unlink()
        return "what came is not the published file"
    return path


class DownloadBar:
    """A bar as pooch drives it: bytes that came, of a total; on terminals only."""

    def __init__(self, title: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
        shown = sys.stderr.isatty()
        self.progress = Progress(*columns, console=Console(stderr=True), transient=True, disable=not shown)
        self.task = self.progress.add_task(title, total=None)
        self.total = 0

    def update(self, count: int) -> None:
        """So many bytes more."""
        self.progress.update(self.task, advance=count, total=self.total or None)

    def reset(self) -> None:
        """From the start."""
        self.progress.reset(self.task)

    def close(self) -> None:
        """No more bytes."""


@contextmanager
def _bar(title: str) -> Iterator[DownloadBar]:
    """A bar while the context lasts, in place of pooch's own messages."""
    logger = logging.getLogger("pooch")
    level, bar = logger.level, DownloadBar(title)
    logger.setLevel(logging.ERROR)
    try:
        with bar.progress:
            yield bar
    finally:
        logger.setLevel(level)

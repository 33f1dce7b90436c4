"""CIFAR10 (Krizhevsky, 2009): 50,000 small images to train on, 10,000 to test on, 32 x 32 pixels, ten classes.

Both forms are read, unpacked or as the archive: the binary one, and the python one, which is a pickle. Of a
pickle only the list of its instructions is looked at; none is carried out.
"""

import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO
from pickletools import genops

import torch

from precedents.data.examples import Examples
from precedents.zoo.dataset import Dataset, Pixels
from precedents.zoo.datasets._files import File, Folder, PublishedFile, checked, files, found, member

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
HOME = "https://www.cs.toronto.edu/~kriz/"
SHAPE = (3, 32, 32)
PIXELS = 3 * 32 * 32
MOST = 10_000  # images in a file


def binary(file: File) -> Examples:
    """Rows of one byte for the label and the pixels, all red ones first."""
    if not file.content or len(file.content) % (1 + PIXELS):
        raise file.refused(f"has {len(file.content):,} bytes, which are no rows of {1 + PIXELS}.")
    rows = torch.frombuffer(bytearray(file.content), dtype=torch.uint8).reshape(-1, 1 + PIXELS)
    return _examples(file, rows[:, 1:], rows[:, 0])


def python(file: File) -> Examples:
    """A pickled dictionary of Python 2: a list "labels", and an array "data" of a row for each image."""
    key, labels, pixels = "", [], ""
    for name, value in _instructions(file):
        if name in ("GLOBAL", "STACK_GLOBAL", "INST") and value not in ARRAY:
            raise file.refused(f"wants to run {value or 'a program'}: that is no published file.")
        if name in ("SHORT_BINSTRING", "BINSTRING") and isinstance(value, str):
            key, pixels = (value, pixels) if len(value) < PIXELS else (key, pixels + value)
        elif name in ("BININT", "BININT1", "BININT2") and key == "labels" and isinstance(value, int):
            labels.append(value)
    if not labels or len(pixels) != len(labels) * PIXELS:
        raise file.refused(f"has {len(labels):,} labels and {len(pixels):,} pixels, not {PIXELS:,} for each.")
    rows = torch.frombuffer(bytearray(pixels, "latin-1"), dtype=torch.uint8).reshape(-1, PIXELS)
    return _examples(file, rows, torch.tensor(labels))


ARRAY = ("numpy.core.multiarray _reconstruct", "numpy ndarray", "numpy dtype")  # what a pickled array names


def _instructions(file: File) -> Iterator[tuple[str, object]]:
    try:
        for code, value, _ in genops(file.content):
            yield code.name, value
    except Exception as error:  # whatever the bytes are
        raise file.refused(f"is no whole pickle: {error}.") from None


def _examples(file: File, rows: torch.Tensor, labels: torch.Tensor) -> Examples:
    if len(rows) > MOST:
        raise file.refused(f"has {len(rows):,} images, not {MOST:,}.")
    wrong = labels[(labels < 0) | (labels >= len(CLASSES))]
    if len(wrong):
        raise file.refused(f"has the label {int(wrong[0])}; labels are 0 to 9.")
    return Examples(Pixels(rows.reshape(-1, *SHAPE)), labels.long())


@dataclass(frozen=True)
class ArchiveFormat:
    """One of the two ways in which the owners publish: five batches to train on, then the test batch."""

    archive: PublishedFile
    batches: tuple[PublishedFile, ...]
    read: Callable[[File], Examples]

    def batches_in(self, folder: Folder) -> list[File]:
        """The batches, or their archive's, if the folder has them."""
        paths = [found("cifar10", batch, folder) for batch in self.batches]
        if all(paths):
            return [checked(path, batch) for path, batch in zip(paths, self.batches, strict=True) if path]
        archive = found("cifar10", self.archive, folder)
        return self.unpacked(checked(archive, self.archive)) if archive else []

    def unpacked(self, archive: File) -> list[File]:
        """The batches of the archive; nothing is written to disk."""
        try:
            with tarfile.open(fileobj=BytesIO(archive.content)) as tar:
                return [member(archive, batch, _content(tar, batch)) for batch in self.batches]
        except (tarfile.TarError, OSError, EOFError, KeyError) as error:
            raise archive.refused(f"cannot be unpacked: {error}.") from None


def _content(tar: tarfile.TarFile, batch: PublishedFile) -> bytes:
    file = tar.extractfile(f"{batch.inside}/{batch.name}")
    if file is None:
        raise KeyError(f"{batch.name} is no file")
    return file.read()


BINARY = ArchiveFormat(
    PublishedFile(
        "cifar-10-binary.tar.gz",
        "md5:c32a1d4ab5d03f1284b67883e8d87530",
        (f"{HOME}cifar-10-binary.tar.gz",),
    ),
    tuple(
        PublishedFile(f"{name}.bin", f"sha256:{digest}", inside="cifar-10-batches-bin")
        for name, digest in {
            "data_batch_1": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
            "data_batch_2": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
            "data_batch_3": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
            "data_batch_4": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
            "data_batch_5": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
            "test_batch": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
        }.items()
    ),
    binary,
)
PYTHON = ArchiveFormat(
    PublishedFile("cifar-10-python.tar.gz", "md5:c58f30108f718f92721af3b95e74349a"),
    tuple(
        PublishedFile(name, f"md5:{digest}", inside="cifar-10-batches-py")
        for name, digest in {
            "data_batch_1": "c99cafc152244af753f735de768cd75f",
            "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
            "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
            "data_batch_4": "634d18415352ddfa80567beed471001a",
            "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
            "test_batch": "40351d587109b95175f43aff81a1287e",
        }.items()
    ),
    python,
)


def cifar10(folder: Folder = None) -> Dataset:
    """A tenth of the images to train on, as the paper, a tenth held out."""
    form, batches = next(
        ((form, batches) for form in (BINARY, PYTHON) if (batches := form.batches_in(folder))), (BINARY, [])
    )
    if not batches:
        batches = form.unpacked(*files("cifar10", [form.archive], folder))
    *train, test = (form.read(batch) for batch in batches)
    every = _joined(train)
    tenth = len(every) // 10
    return Dataset("cifar10", "image", CLASSES, every, keep=tenth, held=tenth, test=test)


def _joined(parts: list[Examples]) -> Examples:
    images = torch.cat([part.source.images for part in parts])  # type: ignore[attr-defined]
    return Examples(Pixels(images), torch.cat([part.labels for part in parts]))

"""MNIST (LeCun, Cortes and Burges): 60,000 digits to train on, 10,000 to test on, of 28 x 28 pixels."""

from collections.abc import Sequence
from math import prod
from struct import unpack

import torch

from precedents.data.examples import Examples
from precedents.zoo.dataset import Dataset, Pixels, subset
from precedents.zoo.datasets._files import File, Folder, PublishedFile, files, unpacked

HOMES = ("https://ossci-datasets.s3.amazonaws.com/mnist/", "http://yann.lecun.com/exdb/mnist/")
FILES = tuple(
    PublishedFile(f"{name}.gz", f"sha256:{digest}", tuple(f"{home}{name}.gz" for home in HOMES), "MNIST/raw")
    for name, digest in {
        "train-images-idx3-ubyte": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        "train-labels-idx1-ubyte": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        "t10k-images-idx3-ubyte": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        "t10k-labels-idx1-ubyte": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    }.items()
)
CLASSES = tuple("0123456789")
SIZE = 28
MOST = 60_000  # images in a file


def mnist(folder: Folder = None) -> Dataset:
    """As the paper: the last twelfth is the development set; a tenth of the others is trained on."""
    return from_idx("mnist", CLASSES, files("mnist", FILES, folder))


def from_idx(name: str, classes: tuple[str, ...], four: Sequence[File]) -> Dataset:
    """A data set of four files: images and labels to train on, images and labels to test on."""
    train_images, train_labels, test_images, test_labels = four
    every, test = read(train_images, train_labels), read(test_images, test_labels)
    places = torch.arange(len(every))
    dev = len(every) // 12
    train = subset(every, places[:-dev])
    return Dataset(
        name, "image", classes, train, keep=len(train) // 10, dev=subset(every, places[-dev:]), test=test
    )


def read(images: File, labels: File) -> Examples:
    """Images and their labels, both as idx files packed by gzip."""
    pixels, classes = idx(images, axes=3), idx(labels, axes=1)
    if tuple(pixels.shape[1:]) != (SIZE, SIZE):
        raise images.refused(f"has images of {tuple(pixels.shape[1:])} pixels, not {SIZE} x {SIZE}.")
    if len(pixels) != len(classes):
        raise labels.refused(f"has {len(classes)} labels for the {len(pixels)} images of {images.where}.")
    if int(classes.max()) >= len(CLASSES):
        raise labels.refused(f"has the label {int(classes.max())}; labels are 0 to 9.")
    return Examples(Pixels(pixels[:, None]), classes.long())


def idx(file: File, axes: int) -> torch.Tensor:
    """Bytes with this many axes: two zeros, the type 8, the number of axes, their lengths, then the bytes."""
    start = 4 + 4 * axes
    content = unpacked(file, most=start + MOST * SIZE**2).content
    if len(content) < start or content[:4] != bytes((0, 0, 8, axes)):
        raise file.refused(f"is no idx file of bytes with {axes} axes.")
    shape = unpack(f">{axes}I", content[4:start])
    if len(content) - start != prod(shape) or not prod(shape):
        raise file.refused(
            f"announces {' x '.join(map(str, shape))} bytes, but {len(content) - start:,} follow."
        )
    return torch.frombuffer(bytearray(content), dtype=torch.uint8, offset=start).reshape(shape)

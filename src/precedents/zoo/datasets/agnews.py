"""AG's news topics (Zhang, Zhao and LeCun, 2015): 120,000 titles to train on, 7,600 to test on; four classes.

The paper shows titles alone, so the descriptions are left out. Where only a part of the training rows is at
hand, in a file such as train_20k.csv or .csv.gz, that is read and noted. The vocabulary has the size that gives
the models the published numbers of parameters, so it does not grow with the rows.
"""

import csv
import re
from collections.abc import Iterator
from html import unescape
from io import StringIO
from pathlib import Path

import torch

from precedents.data.examples import Examples
from precedents.zoo.dataset import Dataset
from precedents.zoo.datasets._files import File, Folder, PublishedFile, bases, files, found, unpacked
from precedents.zoo.text import encoded, vocabulary

# the owners' archive is on a drive that programs cannot download from; this copy is byte for byte the same
HOME = "https://raw.githubusercontent.com/mhjabreel/CharCnn_Keras/master/data/ag_news_csv/"
TRAIN = PublishedFile("train.csv", "md5:b1a00f826fdfbd249f79597b59e1dc12", (f"{HOME}train.csv",), "ag_news_csv")
TEST = PublishedFile(
    "test.csv",
    "sha256:521465c2428ed7f02f8d6db6ffdd4b5447c1c701962353eb2c40d548c3c85699",
    (f"{HOME}test.csv",),
    "ag_news_csv",
)
CLASSES = ("World", "Sports", "Business", "Sci/Tech")
HEADING = ["class_index", "title", "description"]
ROWS = 120_000
WORDS = 2_146  # and the four marks: 27 thousand parameters of the Bi-LSTM, 9 of the bag of words
MOST = 100_000_000  # bytes that a part of the training rows may have

TOKEN = re.compile(r"\w+|[^\w\s]")
TAG = re.compile(r"<[^<>]*>")
BROKEN = re.compile(r" ?#(\d+);")  # an HTML character that lost its ampersand

Title = tuple[int, list[str]]  # its class and its lower-cased tokens


def agnews(folder: Folder = None) -> Dataset:
    """6,000 titles to train on, as the paper, a tenth as many held out."""
    part = None if found("agnews", TRAIN, folder) else _part(folder)
    (file,) = [part] if part else files("agnews", [TRAIN], folder)
    (held,) = files("agnews", [TEST], folder)
    train, test = read(file), read(held)
    words = vocabulary((tokens for _, tokens in train), most=WORDS)
    inputs = encoded([tokens for _, tokens in train + test], words)
    labels = torch.tensor([label for label, _ in train + test])
    n = len(train)
    return Dataset(
        name="agnews",
        kind="text",
        classes=CLASSES,
        train=Examples.of((inputs[:n], labels[:n])),
        keep=min(6_000, n - n // 10),
        held=min(600, n // 10),
        test=Examples.of((inputs[n:], labels[n:])),
        words=words,
        note=f"{n:,} of the {ROWS:,} training rows, from {Path(file.where).name}" if part else "",
    )


def read(file: File) -> list[Title]:
    """Rows of class, title and description; a heading may come first."""
    titles = []
    try:
        for i, row in enumerate(_rows(file), start=1):
            if i == 1 and row == HEADING:
                continue
            if len(row) != len(HEADING):
                raise file.refused(f"has {len(row)} fields in row {i}, not class, title and description.")
            if row[0] not in ("1", "2", "3", "4"):
                raise file.refused(f"has the class {row[0][:20]!r} in row {i}; classes are 1 to 4.")
            titles.append((int(row[0]) - 1, tokens(row[1])))
    except csv.Error as error:
        raise file.refused(f"is no whole table: {error} in row {len(titles) + 1}.") from None
    if not titles:
        raise file.refused("has no rows.")
    return titles


def tokens(title: str) -> list[str]:
    """Words and single signs, lower-cased; what is left of HTML is cleared."""
    plain = TAG.sub(" ", unescape(BROKEN.sub(r"&#\1;", title))).replace("\\", " ")
    return TOKEN.findall(plain.lower())


def _rows(file: File) -> Iterator[list[str]]:
    try:
        text = file.content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise file.refused(f"is no utf-8 text: byte {error.start} cannot be read.") from None
    return csv.reader(StringIO(text, newline=""), strict=True)


def _part(folder: Folder) -> File | None:
    """A file of some training rows, unpacked; the first by name if there are several."""
    for base in bases("agnews", folder):
        for path in sorted([*base.glob("train_*.csv"), *base.glob("train_*.csv.gz")]):
            file = File(str(path), path.read_bytes())
            return unpacked(file, MOST) if path.suffix == ".gz" else file
    return None

"""TREC questions (Li and Roth, 2002): 5,452 to train on, 500 to test on; six classes, fifty finer ones."""

import torch

from precedents.data.examples import Examples
from precedents.zoo.dataset import Dataset
from precedents.zoo.datasets._files import File, Folder, PublishedFile, files
from precedents.zoo.text import encoded, vocabulary

HOME = "https://cogcomp.seas.upenn.edu/Data/QA/QC/"
FILES = (
    PublishedFile(
        "train_5500.label",
        "sha256:9e4c8bdcaffb96ed61041bd64b564183d52793a8e91d84fc3a8646885f466ec3",
        (f"{HOME}train_5500.label",),
    ),
    PublishedFile(
        "TREC_10.label",
        "sha256:033f22c028c2bbba9ca682f68ffe204dc1aa6e1cf35dd6207f2d4ca67f0d0e8e",
        (f"{HOME}TREC_10.label",),
    ),
)
CLASSES = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")

LabelledQuestion = tuple[str, list[str]]  # its fine class, such as NUM:date, and its lower-cased tokens


def trec(folder: Folder = None) -> Dataset:
    """Half of the questions to train on, as the paper, a tenth held out; known words are seen five times."""
    train, test = (read(file) for file in files("trec", FILES, folder))
    fine = tuple(sorted({label for label, _ in train + test}))
    words = vocabulary(tokens for _, tokens in train)
    inputs = encoded([tokens for _, tokens in train + test], words)
    coarse = torch.tensor([CLASSES.index(label.partition(":")[0]) for label, _ in train + test])
    finer = torch.tensor([fine.index(label) for label, _ in train + test])
    n = len(train)
    return Dataset(
        name="trec",
        kind="text",
        classes=CLASSES,
        train=Examples.of((inputs[:n], coarse[:n])),
        keep=n // 2,
        held=n // 10,
        test=Examples.of((inputs[n:], coarse[n:])),
        words=words,
        subclasses=(finer[:n], finer[n:]),
    )


def read(file: File) -> list[LabelledQuestion]:
    """A question in each line: COARSE:fine and the words, which the owners have separated by blanks."""
    questions = []
    for i, line in enumerate(file.lines("latin-1"), start=1):
        label, *tokens = line.lower().split()
        coarse, colon, fine = label.partition(":")
        if coarse.upper() not in CLASSES or not (colon and fine and tokens):
            raise file.refused(f"has no question in line {i}: it must begin as {CLASSES[-1]}:date When ...")
        questions.append((f"{coarse.upper()}:{fine}", tokens))
    if not questions:
        raise file.refused("has no questions.")
    return questions

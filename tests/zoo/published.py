"""The real files of the owners, in the folder that the environment variable PRECEDENTS_DATA names.

They are not part of the project, and tests download nothing: `make published DATA=FOLDER` runs these.
"""

import os
from pathlib import Path

import pytest
import torch

from precedents.zoo.architectures.bag_of_words import bag_of_words
from precedents.zoo.architectures.bi_lstm import bi_lstm
from precedents.zoo.datasets import DATASETS

FOLDER = Path(os.environ["PRECEDENTS_DATA"])

# instances of each class, to train on and to test on
COUNTS = {
    "mnist": (
        [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949],
        [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009],
    ),
    "fashion_mnist": ([6000] * 10, [1000] * 10),
    "cifar10": ([5000] * 10, [1000] * 10),
    "trec": ([86, 1162, 1250, 1223, 835, 896], [9, 138, 94, 65, 81, 113]),
    "agnews": ([30000] * 4, [1900] * 4),
    "vehicle": ([218, 212, 217, 199], None),
    "segment": ([330] * 7, None),
}
DRAWN = {
    "mnist": 5500,
    "fashion_mnist": 5500,
    "cifar10": 5000,
    "trec": 2726,
    "agnews": 6000,
    "vehicle": 423,
    "segment": 924,
}
PARAMETERS = {"trec": (7_272, 19_614), "agnews": (8_604, 27_060)}  # published as 7K and 20K, 9K and 27K


def real(name: str):
    """The data set from its real files."""
    assert (FOLDER / name).is_dir(), f"{FOLDER} has no folder {name} with the owners' files"
    return DATASETS.get(name)(FOLDER)


@pytest.mark.parametrize("name", COUNTS)
def test_the_published_files_have_the_published_counts(name) -> None:
    data = real(name)
    train, test = COUNTS[name]
    labels = torch.cat([data.train.labels, *([] if data.dev is None else [data.dev.labels])])
    here = labels.bincount(minlength=len(data.classes)).tolist()
    if data.note.endswith(".csv.gz"):  # a part of AGNews
        assert sum(here) < sum(train)
    else:
        assert here == train
    assert (data.test is None) == (test is None)
    if test is not None:
        assert data.test.labels.bincount().tolist() == test


@pytest.mark.parametrize("name", DRAWN)
def test_a_repeat_trains_on_as_many_as_the_paper(name) -> None:
    split = real(name).split(seed=1)
    assert len(split.train) == DRAWN[name]
    assert len(split.test) >= min(500, 338)


@pytest.mark.parametrize("name", PARAMETERS)
def test_the_vocabulary_gives_the_published_numbers_of_parameters(name) -> None:
    data = real(name)
    for build, published in zip((bag_of_words, bi_lstm), PARAMETERS[name], strict=True):
        model = build(data.shape, len(data.classes))
        assert sum(p.numel() for p in model.parameters()) == published

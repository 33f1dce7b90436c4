"""Digits (UCI, with scikit-learn): 1,797 handwritten digits of 8 x 8 pixels; needs no download."""

import numpy as np
import torch

from precedents.data.examples import Examples
from precedents.zoo.dataset import Dataset
from precedents.zoo.datasets._files import Folder
from precedents.zoo.datasets._sklearn import bundled, shipped

CLASSES = tuple("0123456789")


def digits(folder: Folder = None) -> Dataset:  # noqa: ARG001  no files are needed
    """Pixels within 0..1, [n, 1, 8, 8]."""
    file = shipped("digits.csv.gz")
    if file is None:
        bunch = bundled("digits")
        images, labels = bunch.images, bunch.target
    else:
        rows = np.loadtxt(file, delimiter=",")
        images, labels = rows[:, :-1].reshape(-1, 8, 8), rows[:, -1].astype(int)
    inputs = torch.as_tensor(images, dtype=torch.float32)[:, None] / 16
    every = Examples.of((inputs, torch.as_tensor(labels)))
    return Dataset(name="digits", kind="image", classes=CLASSES, train=every, keep=600, held=200)

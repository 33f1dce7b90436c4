"""Breast cancer (Wisconsin, UCI, with scikit-learn): 569 tumours by 30 values; needs no download."""

from precedents.zoo.dataset import Dataset
from precedents.zoo.datasets._files import Folder
from precedents.zoo.datasets._sklearn import bundled_table


def breast_cancer(folder: Folder = None) -> Dataset:  # noqa: ARG001  no files are needed
    """Half of the tumours to train on, a tenth held out."""
    return bundled_table("breast_cancer", keep=284, held=57)

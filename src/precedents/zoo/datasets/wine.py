"""Wine (UCI, with scikit-learn): 178 wines of three cultivars by 13 chemical values; needs no download."""

from precedents.zoo.dataset import Dataset
from precedents.zoo.datasets._files import Folder
from precedents.zoo.datasets._sklearn import bundled_table


def wine(folder: Folder = None) -> Dataset:  # noqa: ARG001  no files are needed
    """Half of the wines to train on, a tenth held out."""
    return bundled_table("wine", keep=89, held=18)

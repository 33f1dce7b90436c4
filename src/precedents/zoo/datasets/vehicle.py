"""Vehicle silhouettes (Statlog, UCI): 846 outlines of four vehicles by 18 values, as they are: unscaled."""

from precedents.data.examples import Examples
from precedents.zoo.dataset import Dataset
from precedents.zoo.datasets._files import File, Folder, PublishedFile, files
from precedents.zoo.datasets._table import joined, table

HOME = "https://archive.ics.uci.edu/ml/machine-learning-databases/statlog/vehicle/"
FILES = tuple(
    PublishedFile(f"{name}.dat", f"words:{digest}", (f"{HOME}{name}.dat",))
    for name, digest in {
        "xaa": "f23c32c39373a9a915ed1c6f35588090461e538e33109edb5392cebc20393066",
        "xab": "8f9cdcf46a3134767389b79233415e129c629c7cbf850f5d396b9e63afe958ad",
        "xac": "a2e97e6c4aef0a3fa88d6c8ef7e9750bcbfd9fbde78e54d8f746f300ad4b8845",
        "xad": "2f98c62ff21d11be8f6269f33ef6ce5592625e27337e6c4a9d328f0dce7b2692",
        "xae": "bff94d19ccda124f1ff8b23146f24a64abc6fce14ac2206228a9c60fa47ebe3c",
        "xaf": "33ebd827a26405d786e633de067fc3ef4c4c57a874ef83272e3afb7ceb499157",
        "xag": "7a1f30953608a535f1a1545203d23fc72352aa73d41969615fba661835490df8",
        "xah": "0ef220d5a55b5c2238309297a64f6e16666fe56e7fc7e07ec09264957e6af88e",
        "xai": "da5dbde91ca78b9fdb9832189ca2cfe28e5d3e67fbb9fdf6180145a1e0b3d126",
    }.items()
)
CLASSES = ("bus", "opel", "saab", "van")
COLUMNS = (
    "compactness",
    "circularity",
    "distance circularity",
    "radius ratio",
    "axis aspect ratio",
    "max length aspect ratio",
    "scatter ratio",
    "elongatedness",
    "axis rectangularity",
    "max length rectangularity",
    "scaled variance major axis",
    "scaled variance minor axis",
    "scaled radius of gyration",
    "skewness major axis",
    "skewness minor axis",
    "kurtosis minor axis",
    "kurtosis major axis",
    "hollows ratio",
)


def vehicle(folder: Folder = None) -> Dataset:
    """Half of the outlines to train on, as the paper, a tenth held out, the rest to test on."""
    every = joined([read(file) for file in files("vehicle", FILES, folder)])
    return Dataset("vehicle", "table", CLASSES, every, keep=423, held=85, columns=COLUMNS)


def read(file: File) -> Examples:
    """One of the nine files: numbers and the vehicle's name, separated by blanks."""
    return table(file, [line.split() for line in file.lines("ascii")], len(COLUMNS), CLASSES)

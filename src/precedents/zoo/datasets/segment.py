"""Image segments (UCI): 2,310 patches of outdoor images, seven classes, 19 values, as they are: unscaled.

UCI gives it twice: as segment.dat (Statlog), and as segmentation.data and segmentation.test. Both are read.
"""

from precedents.data.examples import Examples
from precedents.zoo.dataset import Dataset
from precedents.zoo.datasets._files import File, Folder, PublishedFile, bases, files
from precedents.zoo.datasets._table import joined, table

HOME = "https://archive.ics.uci.edu/ml/machine-learning-databases/statlog/segment/"
FILES = (
    PublishedFile(
        "segment.dat",
        "words:fb6b1007a529fda7b0bd7e5a09cd6cd80f93fba2760e188f753af39c76a07fde",
        (f"{HOME}segment.dat",),
    ),
)
PAIR = {"segmentation.data": 30, "segmentation.test": 300}  # patches of each class; no checksum is published
CLASSES = ("brickface", "sky", "foliage", "cement", "window", "path", "grass")  # 1 to 7 in segment.dat
COLUMNS = (
    "region centroid col",
    "region centroid row",
    "region pixel count",
    "short line density 5",
    "short line density 2",
    "vedge mean",
    "vedge sd",
    "hedge mean",
    "hedge sd",
    "intensity mean",
    "rawred mean",
    "rawblue mean",
    "rawgreen mean",
    "exred mean",
    "exblue mean",
    "exgreen mean",
    "value mean",
    "saturation mean",
    "hue mean",
)


def segment(folder: Folder = None) -> Dataset:
    """924 patches to train on, as the paper, a tenth held out, the rest to test on."""
    pair = _pair(folder)
    if pair:
        every, note = joined([read_pair(file, each) for file, each in pair]), "read from " + " and ".join(PAIR)
    else:
        (file,), note = files("segment", FILES, folder), ""
        every = read(file)
    return Dataset("segment", "table", CLASSES, every, keep=924, held=231, columns=COLUMNS, note=note)


def read(file: File) -> Examples:
    """segment.dat: numbers and the class's number, separated by blanks."""
    rows = [line.split() for line in file.lines("ascii")]
    numbered = [str(i) for i in range(1, len(CLASSES) + 1)]
    return table(file, rows, len(COLUMNS), numbered)


def read_pair(file: File, each: int) -> Examples:
    """segmentation.data or .test: a heading, then the class's name and numbers, separated by commas."""
    lines = file.lines("ascii")
    named = ",".join(COLUMNS).upper().replace(" ", "-")
    starts = [i for i, line in enumerate(lines) if line.strip() == named]
    if not starts:
        raise file.refused("has no heading with the names of the columns.")
    if not file.content.endswith(b"\n"):
        raise file.refused("breaks off within its last line.")
    rows = [line.strip().split(",") for line in lines[starts[0] + 1 :]]
    examples = table(file, [[*values, label.lower()] for label, *values in rows], len(COLUMNS), CLASSES)
    counts = examples.labels.bincount(minlength=len(CLASSES)).tolist()
    if set(counts) != {each}:
        raise file.refused(f"has {', '.join(map(str, counts))} patches of the classes, not {each} of each.")
    return examples


def _pair(folder: Folder) -> list[tuple[File, int]]:
    """The two files, if the folder has them and not segment.dat."""
    for base in bases("segment", folder):
        paths = [base / name for name in PAIR]
        if (base / FILES[0].name).is_file():
            return []
        if all(path.is_file() for path in paths):
            return [(File(str(path), path.read_bytes()), PAIR[path.name]) for path in paths]
    return []

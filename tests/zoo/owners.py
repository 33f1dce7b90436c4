"""Small files in the formats in which the owners of the data sets publish theirs."""

import gzip
import random
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from struct import pack
from types import ModuleType
from typing import Any

from precedents.zoo.datasets import agnews, cifar10, fashion_mnist, mnist, segment, trec, vehicle
from precedents.zoo.datasets._files import PublishedFile, checksum

Files = dict[str, bytes]


def idx(shape: tuple[int, ...], content: bytes) -> bytes:
    return gzip.compress(bytes((0, 0, 8, len(shape))) + pack(f">{len(shape)}I", *shape) + content, mtime=0)


def digits_of(count: int) -> bytes:
    return bytes(i % 10 for i in range(count))


def mnist_files() -> Files:
    made = {}
    for part, n in (("train", 24), ("t10k", 6)):
        made[f"{part}-images-idx3-ubyte.gz"] = idx((n, 28, 28), random.Random(n).randbytes(n * 784))
        made[f"{part}-labels-idx1-ubyte.gz"] = idx((n,), digits_of(n))
    return made


def pixels(batch: int, n: int) -> bytes:
    return random.Random(batch).randbytes(n * 3072)


BATCHES = [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]


def cifar_binary(n: int = 4) -> Files:
    made = {}
    for i, name in enumerate(BATCHES):
        rows = pixels(i, n)
        made[f"{name}.bin"] = b"".join(bytes([j % 10]) + rows[j * 3072 : (j + 1) * 3072] for j in range(n))
    return made


def cifar_python(n: int = 4) -> Files:
    return {name: python2_pickle(list(digits_of(n)), pixels(i, n)) for i, name in enumerate(BATCHES)}


def python2_pickle(labels: list[int], data: bytes) -> bytes:
    """A batch of CIFAR10 as Python 2 pickled it, instruction for instruction."""

    def string(text: bytes) -> bytes:
        return b"U" + bytes([len(text)]) + text if len(text) < 256 else b"T" + pack("<i", len(text)) + text

    array = (
        b"cnumpy.core.multiarray\n_reconstruct\nq\x06cnumpy\nndarray\nq\x07K\x00\x85q\x08"
        + string(b"b")
        + b"\x87q\x09Rq\x0a(K\x01M"
        + pack("<H", len(labels))
        + b"M"
        + pack("<H", 3072)
        + b"\x86q\x0bcnumpy\ndtype\nq\x0c"
        + string(b"u1")
        + b"K\x00K\x01\x87q\x0dRq\x0e(K\x03"
        + string(b"|")
        + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89"
        + string(data)
        + b"tb"
    )
    names = b"".join(string(b"frog_s_%06d.png" % i) for i in range(len(labels)))
    parts = {
        b"batch_label": string(b"training batch 1 of 5"),
        b"labels": b"]q\x05(" + b"".join(b"K" + bytes([label]) for label in labels) + b"e",
        b"data": array,
        b"filenames": b"]q\x0f(" + names + b"e",
    }
    return b"\x80\x02}q\x01(" + b"".join(string(key) + value for key, value in parts.items()) + b"u."


def trec_files() -> Files:
    train = [
        "DESC:manner How did serfdom develop in and then leave Russia ?",
        "ENTY:cremat What films featured the character Popeye Doyle ?",
        "NUM:date When was the caf\xe9 first opened ?",
        "LOC:city What is the oldest city in Spain ?",
    ] * 6
    test = ["HUM:desc Who was Galileo ?", "NUM:dist How far is it from Denver to Aspen ?"]
    lines = {"train_5500.label": train, "TREC_10.label": test}
    return {name: ("\n".join(each) + "\n").encode("latin-1") for name, each in lines.items()}


def news(count: int) -> list[str]:
    titles = [
        "Stocks up",
        'Team ""wins"" cup',
        "Oil #39;s price falls",
        "Chip &lt;b&gt;maker&lt;/b&gt; grows",
    ]
    return [f'"{i % 4 + 1}","{titles[i % 4]}","Some text, with a comma and a ""quote""."' for i in range(count)]


def agnews_files() -> Files:
    return {name: ("\n".join(news(n)) + "\n").encode() for name, n in (("train.csv", 40), ("test.csv", 8))}


def agnews_part() -> Files:
    part = "\n".join(["class_index,title,description", *news(40)]) + "\n"
    return {"train_40.csv.gz": gzip.compress(part.encode(), mtime=0), "test.csv": agnews_files()["test.csv"]}


def vehicle_files() -> Files:
    """The owners pad the names of the vehicles to four letters."""
    rows = {}
    for k, name in enumerate("abcdefghi"):
        lines = [
            " ".join(str(k * 100 + i * 10 + j) for j in range(18)) + f" {vehicle.CLASSES[i]:<4}\n"
            for i in range(4)
        ]
        rows[f"xa{name}.dat"] = "".join(lines * 20).encode()
    return rows


def segment_row(i: int, j: int) -> list[str]:
    return [f"{i + 0.5}", f"{j}.0", "9", *(f"{i * j + k / 8:.7g}" for k in range(16))]


def segment_files() -> Files:
    rows = [" ".join([*segment_row(i, j), str(i + 1)]) for j in range(200) for i in range(7)]
    return {"segment.dat": ("\n".join(rows) + "\n").encode()}


def segment_pair() -> Files:
    heading = (
        ";;; -*- Mode:Common-Lisp; Base:10 -*-\n;;; *-* Last-edit: 11/21/90 15:28:30 by Brodley; *-* \n\n"
        + ",".join(segment.COLUMNS).upper().replace(" ", "-")
        + "\n\n\n"
    )
    made = {}
    for name, each in segment.PAIR.items():
        rows = [
            ",".join([kind.upper(), *segment_row(i, j)])
            for i, kind in enumerate(segment.CLASSES)
            for j in range(each)
        ]
        made[name] = (heading + "\n".join(rows) + "\n").encode()
    return made


def archived(files: Files, inside: str) -> bytes:
    """The files in a packed archive, the same bytes each time."""
    import gzip
    import tarfile
    from io import BytesIO

    out = BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(f"{inside}/{name}")
            entry.size = len(content)
            tar.addfile(entry, BytesIO(content))
    return gzip.compress(out.getvalue(), mtime=0)


# what a test calls it -> the module, and its files
WORLDS: dict[str, tuple[ModuleType, Callable[[], Files]]] = {
    "mnist": (mnist, mnist_files),
    "fashion_mnist": (fashion_mnist, mnist_files),
    "cifar10 binary": (cifar10, cifar_binary),
    "cifar10 python": (cifar10, cifar_python),
    "cifar10 archive": (
        cifar10,
        lambda: {"cifar-10-binary.tar.gz": archived(cifar_binary(), "cifar-10-batches-bin")},
    ),
    "trec": (trec, trec_files),
    "agnews": (agnews, agnews_files),
    "agnews part": (agnews, agnews_part),
    "vehicle": (vehicle, vehicle_files),
    "segment": (segment, segment_files),
    "segment pair": (segment, segment_pair),
}


def written(folder: Path, files: Files) -> Path:
    """The files in a folder of their own."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def vouched(value: Any, files: Files) -> Any:
    """What a module knows of its files, with the checksums of these."""
    if isinstance(value, PublishedFile):
        algorithm = value.checksum.partition(":")[0]
        here = files.get(value.name)
        return value if here is None else replace(value, checksum=checksum(here, algorithm))
    if isinstance(value, tuple):
        return tuple(vouched(each, files) for each in value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{f.name: vouched(getattr(value, f.name), files) for f in fields(value)})
    return value


def adopt(monkeypatch: Any, module: ModuleType, files: Files) -> None:
    """These files become the published ones."""
    if "cifar-10-binary.tar.gz" in files:
        files = {**cifar_binary(), **files}
    for name in ("FILES", "TRAIN", "TEST", "BINARY", "PYTHON"):
        if hasattr(module, name):
            monkeypatch.setattr(module, name, vouched(getattr(module, name), files))

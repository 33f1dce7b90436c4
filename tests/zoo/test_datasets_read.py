"""The loaders on small files in the owners' formats: whole, truncated, altered and hostile ones."""

import gzip
import pickle
import warnings
from contextlib import suppress
from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from precedents import DataFileError
from precedents.zoo.datasets import agnews, cifar10, mnist, segment, trec, vehicle
from precedents.zoo.datasets._files import File
from zoo import owners
from zoo.owners import WORLDS

worlds = pytest.mark.parametrize("world", WORLDS)


def load(world: str, tmp_path, monkeypatch):
    """The data set of the small files."""
    module, make = WORLDS[world]
    owners.adopt(monkeypatch, module, make())
    name = module.__name__.rpartition(".")[2]
    owners.written(tmp_path / name, make())
    return getattr(module, name)(tmp_path)


def whole(examples):
    return examples.take(range(len(examples))).inputs


def bytes_of(content: bytes) -> torch.Tensor:
    return torch.tensor(list(content), dtype=torch.uint8)


@pytest.mark.parametrize("name", ["mnist", "fashion_mnist"])
def test_mnist_and_what_comes_in_the_same_form(name, tmp_path, monkeypatch) -> None:
    data = load(name, tmp_path, monkeypatch)
    assert (data.name, len(data.classes)) == (name, 10)
    assert (len(data.train), len(data.dev), len(data.test), data.keep) == (22, 2, 6, 2)
    assert data.shape == (1, 28, 28)
    raw = gzip.decompress(owners.mnist_files()["train-images-idx3-ubyte.gz"])[16:]
    expected = bytes_of(raw).reshape(24, 1, 28, 28) / 255
    assert torch.equal(torch.cat([whole(data.train), whole(data.dev)]), expected)
    assert data.dev.labels.tolist() == [2, 3]


@pytest.mark.parametrize("form", ["binary", "python", "archive"])
def test_cifar10(form, tmp_path, monkeypatch) -> None:
    data = load(f"cifar10 {form}", tmp_path, monkeypatch)
    assert (len(data.train), len(data.test), data.keep, data.held) == (20, 4, 2, 2)
    expected = torch.cat([bytes_of(owners.pixels(i, 4)) for i in range(5)]).reshape(20, 3, 32, 32) / 255
    assert torch.equal(whole(data.train), expected)
    assert data.train.labels.tolist() == [0, 1, 2, 3] * 5


def test_the_python_form_is_read_as_python_reads_it() -> None:
    content = owners.python2_pickle([3, 1, 4], owners.pixels(0, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy has renamed what the old pickles name
        theirs = pickle.loads(content, encoding="bytes")
    ours = cifar10.python(File("batch", content))
    assert ours.labels.tolist() == theirs[b"labels"]
    assert torch.equal(whole(ours).flatten(1), torch.tensor(theirs[b"data"]) / 255)


def test_trec(tmp_path, monkeypatch) -> None:
    data = load("trec", tmp_path, monkeypatch)
    assert (len(data.train), len(data.test), data.keep, data.held) == (24, 2, 12, 2)
    assert [data.classes[i] for i in data.train.labels[:4]] == ["DESC", "ENTY", "NUM", "LOC"]
    fine = ["DESC:manner", "ENTY:cremat", "HUM:desc", "LOC:city", "NUM:date", "NUM:dist"]
    assert [fine[i] for i in data.subclasses[1]] == ["HUM:desc", "NUM:dist"]
    assert data.render(whole(data.train)[2]) == "when was the café first opened ?"
    assert data.render(whole(data.test)[0]) == "‹unknown› was ‹unknown› ?"


def test_agnews(tmp_path, monkeypatch) -> None:
    data = load("agnews", tmp_path, monkeypatch)
    assert (len(data.train), len(data.test), data.keep, data.held, data.note) == (40, 8, 36, 4, "")
    texts = [data.render(text) for text in whole(data.train)[:4]]
    assert texts == ["stocks up", 'team " wins " cup', "oil ' s price falls", "chip maker grows"]
    assert data.train.labels[:5].tolist() == [0, 1, 2, 3, 0]


def test_a_part_of_agnews_says_that_it_is_one(tmp_path, monkeypatch) -> None:
    data = load("agnews part", tmp_path, monkeypatch)
    assert data.note == "40 of the 120,000 training rows, from train_40.csv.gz"
    assert len(data.train) == 40


def test_all_of_agnews_goes_before_a_part(tmp_path, monkeypatch) -> None:
    owners.written(tmp_path / "agnews", owners.agnews_part())
    assert load("agnews", tmp_path, monkeypatch).note == ""


def test_vehicle(tmp_path, monkeypatch) -> None:
    data = load("vehicle", tmp_path, monkeypatch)
    assert (len(data.train), data.keep) == (720, 423)
    assert data.train.labels[:4].tolist() == [0, 1, 2, 3]
    assert whole(data.train)[1].tolist() == list(range(10, 28))
    assert list(data.render(whole(data.train)[0])) == list(vehicle.COLUMNS)


@pytest.mark.parametrize("world", ["segment", "segment pair"])
def test_segment(world, tmp_path, monkeypatch) -> None:
    data = load(world, tmp_path, monkeypatch)
    assert len(data.train) == (2310 if "pair" in world else 1400)
    assert bool(data.note) == ("pair" in world)
    row = whole(data.train)[data.train.labels == 6][5]
    assert row[:4].tolist() == [6.5, 5.0, 9.0, 30.0]


@worlds
def test_loading_leaves_the_global_random_state_alone(world, tmp_path, monkeypatch) -> None:
    before = torch.get_rng_state()
    load(world, tmp_path, monkeypatch).split(seed=3, keep=2)
    assert torch.equal(before, torch.get_rng_state())


@worlds
def test_every_truncated_file_is_named_and_refused(world, tmp_path, monkeypatch) -> None:
    load(world, tmp_path, monkeypatch)
    module, make = WORLDS[world]
    name = module.__name__.rpartition(".")[2]
    for file, content in make().items():
        for cut in (0, 1, len(content) // 2, len(content) - 7):
            (tmp_path / name / file).write_bytes(content[:cut])
            with pytest.raises(DataFileError, match=file):
                getattr(module, name)(tmp_path)
        (tmp_path / name / file).write_bytes(content)
    getattr(module, name)(tmp_path)


@worlds
def test_a_foreign_file_is_named_and_refused(world, tmp_path, monkeypatch) -> None:
    module, make = WORLDS[world]
    name = module.__name__.rpartition(".")[2]
    load(world, tmp_path, monkeypatch)
    for file, content in make().items():
        for foreign in (b"<html>404</html>\n", gzip.compress(b"not it"), b"\xff\xfe\x00" * 1000):
            (tmp_path / name / file).write_bytes(foreign)
            with pytest.raises(DataFileError, match=file):
                getattr(module, name)(tmp_path)
        (tmp_path / name / file).write_bytes(content)


@pytest.mark.parametrize("world", [world for world in WORLDS if world not in ("segment pair", "agnews part")])
def test_one_other_byte_is_refused(world, tmp_path, monkeypatch) -> None:
    module, make = WORLDS[world]
    name = module.__name__.rpartition(".")[2]
    load(world, tmp_path, monkeypatch)
    for file, content in make().items():
        altered = bytearray(content)
        altered[len(content) // 2] ^= 1
        (tmp_path / name / file).write_bytes(altered)
        with pytest.raises(DataFileError, match=rf"{file}.* is not the published file"):
            getattr(module, name)(tmp_path)
        (tmp_path / name / file).write_bytes(content)


def labelled(content: bytes, shape: tuple[int, ...]) -> File:
    return File("labels", owners.idx(shape, content))


MNIST = {
    "other pixels": ((2, 27, 29), bytes(2 * 783), b"\1\2", (2,)),
    "fewer labels": ((2, 28, 28), bytes(2 * 784), b"\1", (1,)),
    "a label of 10": ((2, 28, 28), bytes(2 * 784), b"\1\n", (2,)),
    "no images": ((0, 28, 28), b"", b"", (0,)),
    "more announced": ((3, 28, 28), bytes(2 * 784), b"\1\2\3", (3,)),
    "less announced": ((1, 28, 28), bytes(2 * 784), b"\1", (1,)),
    "a vast number": ((2**32 - 1,) * 3, bytes(784), b"\1", (1,)),
}


@pytest.mark.parametrize("case", MNIST)
def test_idx_files_that_make_no_sense_are_refused(case) -> None:
    shape, pixels, labels, count = MNIST[case]
    with pytest.raises(DataFileError, match=r"images|labels"):
        mnist.read(File("images", owners.idx(shape, pixels)), labelled(labels, count))


def test_a_file_that_unpacks_to_too_much_is_refused() -> None:
    bomb = File("images", gzip.compress(bytes(mnist.MOST * 28**2 + 100)))
    with pytest.raises(DataFileError, match="images unpacks to more than"):
        mnist.idx(bomb, axes=3)


class Writes:
    """What a pickle would carry out when loaded."""

    def __init__(self, path) -> None:
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_that_runs_something_is_refused_and_not_run(protocol, tmp_path) -> None:
    content = pickle.dumps({"labels": [1], "data": Writes(tmp_path / "ran")}, protocol)
    with pytest.raises(DataFileError, match="wants to run"):
        cifar10.python(File("data_batch_1", content))
    assert not (tmp_path / "ran").exists()


def test_a_pickle_that_runs_something_between_good_parts_is_refused() -> None:
    good = owners.python2_pickle([1, 2], owners.pixels(0, 2))
    hostile = good[:-2] + b"U\x01xcos\nsystem\nU\x04true\x85Ru."
    with pytest.raises(DataFileError, match="wants to run os system"):
        cifar10.python(File("data_batch_1", hostile))


def test_a_last_number_without_its_last_digits_is_refused() -> None:
    content = owners.segment_pair()["segmentation.data"]
    with pytest.raises(DataFileError, match="the_file breaks off within its last line"):
        segment.read_pair(File("the_file", content[:-2]), 30)


LINES = {
    "trec class": (trec.read, b"WHAT:ever Who ?"),
    "trec label": (trec.read, b"NUM When ?"),
    "trec words": (trec.read, b"NUM:date"),
    "trec empty": (trec.read, b"\n\n"),
    "vehicle class": (vehicle.read, b"1 " * 18 + b"tank"),
    "vehicle columns": (vehicle.read, b"1 " * 17 + b"van"),
    "vehicle word": (vehicle.read, b"x " * 18 + b"van"),
    "vehicle nan": (vehicle.read, b"nan " * 18 + b"van"),
    "vehicle empty": (vehicle.read, b""),
    "vehicle letters": (vehicle.read, "1 ".encode("utf-16")),
    "segment class": (segment.read, b"1 " * 19 + b"8"),
    "segment heading": (lambda file: segment.read_pair(file, 1), b"GRASS" + b",1" * 19),
    "agnews class": (agnews.read, b'"5","a","b"'),
    "agnews fields": (agnews.read, b'"1","a"'),
    "agnews quote": (agnews.read, b'"1","a","b'),
    "agnews empty": (agnews.read, b"class_index,title,description\n"),
    "agnews letters": (agnews.read, b'"1","\xff","b"'),
    "agnews length": (agnews.read, b'"1","' + b"a" * 200_000 + b'","b"'),
}


@pytest.mark.parametrize("case", LINES)
def test_lines_that_make_no_sense_are_refused(case) -> None:
    read, content = LINES[case]
    with pytest.raises(DataFileError, match="the_file"):
        read(File("the_file", content))


READ = {
    "images": (
        "train-images-idx3-ubyte.gz",
        owners.mnist_files,
        lambda f: mnist.read(f, labelled(owners.digits_of(24), (24,))),
    ),
    "labels": ("t10k-labels-idx1-ubyte.gz", owners.mnist_files, lambda f: mnist.idx(f, 1)),
    "binary": ("test_batch.bin", lambda: owners.cifar_binary(1), cifar10.binary),
    "python": ("test_batch", lambda: owners.cifar_python(1), cifar10.python),
    "trec": ("TREC_10.label", owners.trec_files, trec.read),
    "agnews": ("test.csv", owners.agnews_files, agnews.read),
    "vehicle": ("xaa.dat", owners.vehicle_files, vehicle.read),
    "segment": ("segment.dat", owners.segment_files, segment.read),
    "segment pair": ("segmentation.data", owners.segment_pair, lambda f: segment.read_pair(f, 30)),
}


@cache
def valid(kind: str) -> bytes:
    name, make, _ = READ[kind]
    return make()[name]


@pytest.mark.parametrize("kind", READ)
@settings(max_examples=60)
@given(data=st.data())
def test_whatever_the_bytes_are_they_are_read_or_refused(kind, data) -> None:
    _, _, read = READ[kind]
    content = valid(kind)
    packed = kind in ("images", "labels") and data.draw(st.booleans())
    content = gzip.decompress(content) if packed else content
    start = data.draw(st.integers(0, min(len(content), 400)) | st.integers(0, len(content)))
    stop = start + data.draw(st.integers(0, 40) | st.just(len(content)))
    content = content[:start] + data.draw(st.binary(max_size=60)) + content[stop:]
    content = gzip.compress(content, compresslevel=1) if packed else content
    with suppress(DataFileError):
        read(File("the_file", content))


@pytest.mark.parametrize("kind", READ)
@settings(max_examples=30)
@given(content=st.binary(max_size=200))
def test_any_bytes_are_refused(kind, content) -> None:
    _, _, read = READ[kind]
    with pytest.raises(DataFileError):
        read(File("the_file", content))

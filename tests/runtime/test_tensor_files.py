"""Tensors come back from their files as they were: values, shapes, and where they begin in memory."""

import pytest
import torch
from safetensors.torch import load_file

from precedents import FormatError
from precedents.runtime.tensor_files import ALIGNED, DTYPES, TensorFiles

ODD = {
    "a": torch.arange(7, dtype=torch.double),
    "b": torch.rand(3, 5, generator=torch.Generator().manual_seed(0)),
    "c": torch.tensor(3),
    "d": torch.zeros(0, 4),
    "e": torch.tensor([True, False, True]),
}


@pytest.fixture
def files(tmp_path) -> TensorFiles:
    return TensorFiles(tmp_path)


def test_tensors_come_back_as_they_were(files) -> None:
    found = files.read(files.write(ODD))
    assert list(found) == list(ODD)
    for name, value in ODD.items():
        assert found[name].dtype == value.dtype
        assert torch.equal(found[name], value)


def test_tensors_begin_where_tensors_in_memory_begin(files) -> None:
    """Else the last digits of their products differ on some processors."""
    for count in range(1, 12):
        parts = {str(i): torch.rand(count + i) for i in range(4)}
        found = files.read(files.write(parts))
        assert [value.data_ptr() % ALIGNED for value in found.values()] == [0] * 4


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_precision_is_read_back(files, dtype) -> None:
    value = torch.arange(5).to(dtype)
    assert torch.equal(files.read(files.write({"x": value}))["x"], value)


def test_a_file_is_one_of_safetensors(files, tmp_path) -> None:
    found = load_file(tmp_path / files.write(ODD))
    assert all(torch.equal(found[name], value) for name, value in ODD.items())


def test_a_flipped_byte_is_found(files, tmp_path) -> None:
    path = tmp_path / files.write(ODD)
    content = bytearray(path.read_bytes())
    content[-100] ^= 1
    path.write_bytes(content)
    with pytest.raises(FormatError, match="its checksum differs"):
        files.read(path.name)

"""Tensors in the files of a folder, each file with a checksum; they are mapped into memory when read.

The files are safetensors in which every tensor begins at a multiple of 64 bytes, as tensors in memory do: the
last digits of a product depend on that. What fills the room between them are tensors of bytes, called `~1`, ...
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any
from zlib import crc32

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from precedents.errors import FormatError, StoreError
from precedents.runtime.strict_json import inside

ALIGNED, FILLING = 64, "~"  # bytes; how the names of what fills the room between tensors begin
DTYPES = {  # as safetensors calls them
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}


@dataclass(frozen=True)
class TensorFiles:
    """The files, by name their size and checksum."""

    folder: Path
    known: dict[str, dict[str, Any]] = field(default_factory=dict)

    def write(self, tensors: Mapping[str, Tensor], name: str | None = None) -> str:
        """A new file, which is given a number if it is given no name."""
        name = name or f"{len(self.known):04}.safetensors"
        path = self.folder / name
        try:
            _save(tensors, path)
            self.known[name] = {"bytes": path.stat().st_size, "checksum": _checksum(path)}
        except (OSError, SafetensorError) as error:
            raise StoreError(f"{path} cannot be written: {error}. Name a folder on another disk.") from error
        return name

    def complete(self) -> None:
        """Refuses a folder in which a file is missing or has another size."""
        for name, known in self.known.items():
            path = inside(self.folder, name)
            if not path.is_file():
                raise FormatError(f"{path} is missing.")
            if path.stat().st_size != known["bytes"]:
                raise FormatError(f"{path} has {path.stat().st_size} bytes instead of {known['bytes']}.")

    def read(self, name: str) -> dict[str, Tensor]:
        """The tensors of a file; one that is not what was written is refused."""
        path = inside(self.folder, name)
        try:
            if _checksum(path) != self.known[name]["checksum"]:
                raise FormatError(f"{path} is damaged: its checksum differs.")
            with safe_open(path, framework="pt") as file:
                names = [name for name in file.keys() if not name.startswith(FILLING)]  # noqa: SIM118  no mapping
                return {name: file.get_tensor(name) for name in names}
        except (OSError, SafetensorError, ValueError, RuntimeError) as error:
            raise FormatError(f"{path} cannot be read: {error}.") from error


def _save(tensors: Mapping[str, Tensor], path: Path) -> None:
    """A file of safetensors: the length of a header, the header, and the tensors one after the other."""
    header: dict[str, Any] = {}
    parts: list[Tensor] = []
    place = 0
    for name, tensor in tensors.items():
        values = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
        filling = torch.zeros(-len(values) % ALIGNED, dtype=torch.uint8)
        for key, part, dtype, shape in (
            (name, values, DTYPES[tensor.dtype], list(tensor.shape)),
            (f"{FILLING}{len(parts)}", filling, "U8", [len(filling)]),
        ):
            if len(part) or key == name:
                offsets = [place, place + len(part)]
                header[key] = {"dtype": dtype, "shape": shape, "data_offsets": offsets}
                parts.append(part)
                place += len(part)
    text = json.dumps(header).encode()
    text += b" " * (-(8 + len(text)) % ALIGNED)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for part in parts:
            file.write(part.numpy().data)


def _checksum(path: Path) -> int:
    """A CRC-32, which no flipped bit leaves as it was, and which costs little beside the reading."""
    with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
        return crc32(content)

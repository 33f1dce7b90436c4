"""Tensors in the files of a folder, each file with a checksum; they are mapped into memory when read.

The files are safetensors in which every tensor begins at a multiple of 64 bytes, as tensors in memory do: the
last digits of a product depend on that. What fills the room between them are tensors of bytes, called `~1`, ...
"""

import json
import mmap
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zlib import crc32

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from precedents.errors import FormatError, StoreError
from precedents.runtime.strict_json import inside, loads

WORD = 8  # bytes of the length of a header
ALIGNED, FILLING = 64, "~"  # bytes; how the names of what fills the room between tensors begin
DTYPES = {  # as safetensors calls them
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}


@dataclass(frozen=True)
class TensorFiles:
    """The files, by name their size and checksum.

    Once they are mapped, nobody takes them away any more. One that is cut meanwhile is refused by `whole`:
    to read beyond its end would end the process.
    """

    folder: Path
    known: dict[str, dict[str, Any]] = field(default_factory=dict)
    mapped: dict[str, mmap.mmap] = field(default_factory=dict, repr=False)

    def write(self, tensors: Mapping[str, Tensor], name: str | None = None) -> str:
        """A new file, which is given a number if it is given no name."""
        name = name or f"{len(self.known):04}.safetensors"
        path = self.folder / name
        try:
            size, checksum = _save(tensors, path)
        except OSError as error:
            raise StoreError(f"{path} cannot be written: {error}. Name a folder on another disk.") from error
        self.known[name] = {"bytes": size, "checksum": checksum}
        return name

    def open(self) -> None:
        """Maps all files; refuses a folder in which one is missing, no plain file or of another size."""
        for name in self.known:
            self._bytes(name)

    def whole(self, name: str) -> None:
        """Refuses a file that was cut since it was mapped."""
        size, wanted = self.mapped[name].size(), self.known[name]["bytes"]
        if size < wanted:
            raise FormatError(f"{self.folder / name} was cut to {size} of {wanted} bytes while it was in use.")

    def _bytes(self, name: str) -> mmap.mmap:
        """The bytes of a file, mapped into memory at the first time."""
        if name not in self.mapped:
            path, wanted = inside(self.folder, name), self.known[name]["bytes"]
            if path.is_symlink():
                raise FormatError(f"{path} is no file of this folder.")
            if not path.is_file():
                raise FormatError(f"{path} is missing.")
            size = path.stat().st_size
            if size != wanted or size < WORD:
                raise FormatError(f"{path} has {size} bytes instead of {wanted}.")
            with path.open("rb") as file:
                self.mapped[name] = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY)
        self.whole(name)
        return self.mapped[name]

    def read(self, name: str) -> dict[str, Tensor]:
        """The tensors of a file; one that is not what was written is refused."""
        path = self.folder / name
        content = torch.frombuffer(self._bytes(name), dtype=torch.uint8)
        if crc32(content.numpy().data) != self.known[name]["checksum"]:
            raise FormatError(f"{path} is damaged: its checksum differs.")
        try:
            length = int.from_bytes(bytes(content[:WORD].tolist()), "little")
            header = loads(content[WORD : WORD + length].numpy().tobytes())
            body = content[WORD + length :]
            entries = header.items() if length else ()
            return {key: _tensor(body, entry) for key, entry in entries if not key.startswith(FILLING)}
        except (ValueError, KeyError, TypeError, RuntimeError, AttributeError, RecursionError) as error:
            raise FormatError(f"{path} cannot be read: {error!r}.") from error


def _tensor(body: Tensor, entry: Mapping[str, Any]) -> Tensor:
    """A tensor that lies in the bytes of a file; an entry that does not fit them is a ValueError."""
    start, stop = entry["data_offsets"]
    if not 0 <= start <= stop <= len(body):
        raise ValueError(f"no place in the file: {entry}")
    dtype = {name: each for each, name in DTYPES.items()}[entry["dtype"]]
    return body[start:stop].view(dtype).reshape(entry["shape"])


def sealed_tensors(tensors: Mapping[str, Tensor]) -> bytes:
    """One file of safetensors with a checksum of everything in it."""
    held = {name: value.detach().contiguous().clone() for name, value in tensors.items()}
    return save(held, {"checksum": f"{_checksum(held):08x}"})


def unsealed_tensors(path: Path, advice: str) -> dict[str, Tensor]:
    """The tensors of such a file; a damaged one is refused, with what to do. Older ones have no checksum."""
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  no mapping
            known = file.metadata()
    except (OSError, SafetensorError) as error:
        raise FormatError(f"{path} cannot be read: {error}. {advice}") from error
    if known is not None and known.get("checksum") != f"{_checksum(tensors):08x}":
        raise FormatError(f"{path} is damaged: its checksum differs. {advice}")
    return {name: value.clone() for name, value in tensors.items()}  # not of the file any more


def _checksum(tensors: Mapping[str, Tensor]) -> int:
    total = 0
    for name, value in sorted(tensors.items()):
        total = crc32(f"{name} {value.dtype} {list(value.shape)}".encode(), total)
        total = crc32(value.contiguous().reshape(-1).view(torch.uint8).numpy().data, total)
    return total


def _content(values: Tensor) -> memoryview:
    return values.numpy().data


def _save(tensors: Mapping[str, Tensor], path: Path) -> tuple[int, int]:
    """A file of safetensors: the length of a header, the header, and the tensors one after the other.

    Its size and checksum are those of what was to be written, not of what is read back.
    """
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
    text += b" " * (-(WORD + len(text)) % ALIGNED)
    checksum = size = 0
    with path.open("wb") as file:
        begun: list[bytes | memoryview] = [len(text).to_bytes(WORD, "little") + text]
        for content in (*begun, *map(_content, parts)):
            file.write(content)
            checksum, size = crc32(content, checksum), size + len(content)
    return size, checksum

"""Tensors in the files of a folder, each file with a checksum; they are mapped into memory when read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any
from zlib import crc32

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from precedents.errors import FormatError, StoreError


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
            save_file(dict(tensors), path)
            self.known[name] = {"bytes": path.stat().st_size, "checksum": _checksum(path)}
        except (OSError, SafetensorError) as error:
            raise StoreError(f"{path} cannot be written: {error}. Name a folder on another disk.") from error
        return name

    def complete(self) -> None:
        """Refuses a folder in which a file is missing or has another size."""
        for name, known in self.known.items():
            path = self.folder / name
            if not path.is_file():
                raise FormatError(f"{path} is missing.")
            if path.stat().st_size != known["bytes"]:
                raise FormatError(f"{path} has {path.stat().st_size} bytes instead of {known['bytes']}.")

    def read(self, name: str) -> dict[str, Tensor]:
        """The tensors of a file; one that is not what was written is refused."""
        path = self.folder / name
        try:
            if _checksum(path) != self.known[name]["checksum"]:
                raise FormatError(f"{path} is damaged: its checksum differs.")
            with safe_open(path, framework="pt") as file:
                return {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118  it is no mapping
        except (OSError, SafetensorError) as error:
            raise FormatError(f"{path} cannot be read: {error}.") from error


def _checksum(path: Path) -> int:
    """A CRC-32, which no flipped bit leaves as it was, and which costs little beside the reading."""
    with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
        return crc32(content)

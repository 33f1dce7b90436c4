"""The manifest of a saved explainer: what is in its folder, read and checked."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from precedents._version import __version__
from precedents.errors import FormatError, InputError, PrecedentsError, StoreError
from precedents.metrics.preconditioners.hessian import HessianKind
from precedents.runtime.sealed import is_sealed
from precedents.runtime.users_code import out_of_memory

FORMAT = 3
MANIFEST, TRAIN = "explainer.json", "train.safetensors"
OURS = re.compile(r"explainer\.json|train\.safetensors|\d{4,}\.safetensors")

Item = Mapping[str, Any]  # a value, and the name of the file with its tensors
DAMAGES = (LookupError, TypeError, ValueError, AttributeError, ImportError, RuntimeError)


@dataclass(frozen=True)
class Manifest:
    """What is in a folder."""

    metric: str
    classes: list[str] | None
    model: str  # the fingerprint of the classifier
    weights: Mapping[str, str]  # a mark of each weight and buffer
    inverse: Item | None  # none: it is fitted again
    sample: Item | None  # the vector of one instance
    holdings: Mapping[str, Sequence[Item]]  # what questions read of the training set, by the name of its slot
    files: dict[str, dict[str, Any]]
    curvature: HessianKind | None  # the kind that was chosen, which the memory may have decided
    ids: list[str | int] | None = None  # what the training instances are called
    version: str = __version__
    torch: str = str(torch.__version__)
    format: int = FORMAT


def manifest_of(folder: Path) -> Manifest:
    """What is in the folder; what is no manifest, of another format or damaged is refused."""
    path = folder / MANIFEST
    if not path.is_file():
        state = "has no saved explainer in it" if folder.is_dir() else "is no folder"
        raise InputError(f"{folder} {state}. Save one there: explainer.save({str(folder)!r})")
    try:
        text = path.read_bytes()
        content = json.loads(text)
        found = content["format"], content["version"]
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error}.") from error
    except (ValueError, KeyError, TypeError, RecursionError):
        raise FormatError(f"{path} is no manifest of an explainer. {again(folder)}") from None
    if found != (FORMAT, __version__):
        raise FormatError(
            f"{folder} has the format {found[0]} of version {found[1]}; this is version {__version__}, "
            f"which reads its own format {FORMAT}. {again(folder)}"
        )
    with damage(folder):
        if not is_sealed(text):
            raise FormatError(f"{path} is damaged: its checksum differs.")
        return Manifest(**{name: value for name, value in content.items() if name != "checksum"})


def identity(folder: Path) -> tuple[int, int] | None:
    """What tells a folder from one that takes its place: the number of a file, and when it was written."""
    try:
        found = (folder / MANIFEST).stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def own_files(folder: Path) -> Callable[[Path], bool]:
    """Whether a file is of the explainer that was saved there: one of its manifest, or called like one."""
    try:
        listed = set(json.loads((folder / MANIFEST).read_bytes())["files"]) | {MANIFEST}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return lambda path: OURS.fullmatch(str(path)) is not None
    return lambda path: str(path) in listed


@contextmanager
def damage(folder: Path) -> Iterator[None]:
    """What the manifest lacks, or has and should not have, is a damage."""
    try:
        yield
    except FormatError as error:
        if again(folder) in str(error):
            raise
        raise FormatError(f"{error} {again(folder)}") from error
    except PrecedentsError:
        raise
    except DAMAGES as error:
        if out_of_memory(error):
            raise
        raise FormatError(f"{folder / MANIFEST} is damaged: {error!r}. {again(folder)}") from error


def again(folder: Path) -> str:
    """What to do with a folder that cannot be used."""
    return f"Save it again: Explainer(model, train).save({str(folder)!r})"

"""The manifest of a saved explainer: what is in its folder, read and checked."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from precedents._version import __version__
from precedents.errors import FormatError, InputError, PrecedentsError, StoreError
from precedents.index.contents import FORMAT, INDEX
from precedents.index.origin import Origin
from precedents.index.plan import build_of
from precedents.metrics.preconditioners.hessian import HessianKind
from precedents.runtime.advice import typed
from precedents.runtime.sealed import is_sealed
from precedents.runtime.users_code import out_of_memory

MANIFEST, TRAIN = INDEX, "train.safetensors"
BEFORE = ("explainer.json",)  # what the manifest was called in earlier versions
OURS = re.compile(
    r"(index|explainer|plan(-\d{4})?)\.json|(train|basis|\d{4,})\.safetensors|shards/\d{6}\.safetensors"
)
VECTORS = "vectors"

Item = Mapping[str, Any]  # a value, and the name of the file with its tensors
DAMAGES = (LookupError, TypeError, ValueError, AttributeError, ImportError, RuntimeError)


@dataclass(frozen=True)
class Manifest:
    """What is in a folder."""

    metric: str
    classes: list[str] | None
    origin: Origin
    inverse: Item | None  # none: it is fitted again
    vectors: Mapping[str, Any]  # what tells the features of some instances
    holdings: Mapping[str, Sequence[Item]]  # what questions read of the training set, by the name of its slot
    files: dict[str, dict[str, Any]]
    curvature: HessianKind | None  # the kind that was chosen, which the memory may have decided
    ids: list[str | int] | None = None  # what the training instances are called
    kind: str = VECTORS
    version: str = __version__
    format: int = FORMAT


def manifest_of(folder: Path) -> Manifest:
    """What is in the folder; what is no manifest, of another format or damaged is refused."""
    path = folder / MANIFEST
    if not path.is_file():
        if any((folder / name).is_file() for name in BEFORE):
            raise FormatError(f"{folder} was saved by an earlier version, in another format. {again(folder)}")
        what = typed("saved explainer", "index")
        state = f"has no {what} in it" if folder.is_dir() else "is no folder"
        told = typed(f"Save one there: explainer.save({str(folder)!r})", f"Build one: {build_of(folder)}")
        raise InputError(f"{folder} {state}. {told}")
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
        values = {name: value for name, value in content.items() if name != "checksum"}
        return Manifest(**{**values, "origin": Origin(**values["origin"])})


def kind_of(folder: Path) -> str | None:
    """Which kind of thing the manifest says that the folder holds, as far as it can be read."""
    try:
        return str(json.loads((folder / MANIFEST).read_bytes())["kind"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


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
        listed = set(json.loads((folder / MANIFEST).read_bytes())["files"]) | {MANIFEST}  # of whole vectors
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
    return typed(
        f"Save it again: Explainer(model, train).save({str(folder)!r})",
        f"Make it again, elsewhere or when it is removed: {build_of(folder)}",
    )

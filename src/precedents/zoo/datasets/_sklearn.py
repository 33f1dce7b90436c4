"""Data sets that come with scikit-learn: no files, no download."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from precedents.data.examples import Examples
from precedents.errors import MissingExtraError
from precedents.zoo.dataset import Dataset


def bundled(name: str) -> Any:
    """What scikit-learn's `load_<name>` gives: data, target and their names."""
    try:
        from sklearn import datasets
    except ImportError:
        raise MissingExtraError("scikit-learn", "sklearn") from None
    return getattr(datasets, f"load_{name}")()


def shipped(name: str) -> Path | None:
    """A file that scikit-learn ships, without importing it, which takes seconds; None where it has none."""
    spec = find_spec("sklearn")
    places = [] if spec is None else spec.submodule_search_locations or []
    return next((file for place in places if (file := Path(place, "datasets", "data", name)).is_file()), None)


def bundled_table(name: str, *, keep: int, held: int) -> Dataset:
    """A table, as it is: values are not scaled."""
    import torch

    bunch = bundled(name)
    return Dataset(
        name=name,
        kind="table",
        classes=tuple(map(str, bunch.target_names)),
        train=Examples.of((torch.as_tensor(bunch.data, dtype=torch.float32), torch.as_tensor(bunch.target))),
        keep=keep,
        held=held,
        columns=tuple(map(str, bunch.feature_names)),
    )

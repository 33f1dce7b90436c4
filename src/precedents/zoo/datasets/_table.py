"""Tables: rows of numbers, each with the name of its class."""

from collections.abc import Sequence
from math import isfinite

import torch

from precedents.data.examples import Examples
from precedents.zoo.datasets._files import File


def table(file: File, rows: Sequence[Sequence[str]], columns: int, classes: Sequence[str]) -> Examples:
    """Examples of rows that are numbers and then a class; a row that is not is named."""
    numbers, labels = [], []
    for i, (*values, label) in enumerate(rows, start=1):
        if len(values) != columns:
            raise file.refused(f"has {len(values) + 1} values in row {i}, not {columns} numbers and a class.")
        if label not in classes:
            raise file.refused(f"has the class {label!r} in row {i}; the classes are {', '.join(classes)}.")
        try:
            numbers.append([float(value) for value in values])
        except ValueError as error:
            raise file.refused(f"has something else than numbers in row {i}: {error}.") from None
        if not all(map(isfinite, numbers[-1])):
            raise file.refused(f"has a value in row {i} that is not finite.")
        labels.append(classes.index(label))
    if not rows:
        raise file.refused("has no rows.")
    return Examples.of((torch.tensor(numbers), torch.tensor(labels)))


def joined(parts: Sequence[Examples]) -> Examples:
    """The rows of several tables, one after the other."""
    rows = torch.cat([part.take(range(len(part))).inputs for part in parts])  # type: ignore[misc]
    return Examples.of((rows, torch.cat([part.labels for part in parts])))

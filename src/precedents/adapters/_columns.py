"""Columns: where texts, images, labels and ids stand in a user's rows, as the user says it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from precedents.data.examples import Examples
from precedents.data.ids import checked_ids
from precedents.errors import InputError
from precedents.runtime.wording import a_type

ID_COLUMNS = ("id", "idx", "guid", "uid", "uuid")  # what ids are called in rows, if nothing is said
LABELS = ("label", "labels", "label_ids")  # what a label is called in rows, if nothing is said


@dataclass(frozen=True)
class Columns:
    """Names of columns; what is not said is found by the usual names."""

    text: tuple[str, ...] = ()  # one, or two for pairs of texts
    image: str | None = None
    labels: Any = None  # the name of a column, or the labels themselves
    ids: Any = None  # the name of a column, or the ids of the training instances themselves

    @classmethod
    def of(cls, text: Any = None, image: Any = None, labels: Any = None, ids: Any = None) -> "Columns | None":
        """From what a user passed as `text`, `image`, `labels` and `ids`; none if nothing was."""
        if text is image is labels is ids is None:
            return None
        texts = (text,) if isinstance(text, str) else () if text is None else text
        if not isinstance(texts, (tuple, list)) or not all(isinstance(each, str) for each in texts):
            raise InputError(
                f"text is {a_type(text)}. Pass the name of a column, or of two: ('premise', 'hypothesis')."
            )
        if len(texts) > 2 or (text is not None and not texts):
            raise InputError(f"text names {len(texts)} columns. A model is given one text, or a pair of texts.")
        if image is not None and not isinstance(image, str):
            raise InputError(f"image is {a_type(image)}. Pass the name of the column that has the images.")
        return cls(tuple(texts), image, labels, ids)

    @property
    def said(self) -> list[str]:
        """The arguments that were given, and that name columns or may do so."""
        given = {
            "text": bool(self.text),
            "image": self.image is not None,
            "labels": self.labels is not None,
            "ids": isinstance(self.ids, str),
        }
        return [name for name, is_given in given.items() if is_given]

    @property
    def id_column(self) -> str | None:
        """The name of the column that has the ids, if it was said."""
        return self.ids if isinstance(self.ids, str) else None

    def named(self, train: Examples) -> Examples:
        """The training set with the ids that were given; those of a column it has by itself."""
        if self.ids is None or (train.ids is not None and self.id_column is not None):
            return train
        if self.id_column is not None:
            raise InputError(
                f"ids names the column {self.ids!r}, but the training set is Examples that were made without "
                "it. Say it there: pr.Examples.of(data, ids=...), or pass the ids themselves."
            )
        return replace(train, ids=checked_ids(self.ids, len(train), "training set"))

    @property
    def label_names(self) -> Sequence[str]:
        """The columns that could have the label, the first that is there is taken."""
        return (self.labels,) if isinstance(self.labels, str) else LABELS

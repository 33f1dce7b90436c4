"""Columns: where texts, images and labels stand in a user's rows, as the user says it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from precedents.errors import InputError
from precedents.runtime.wording import a_type

LABELS = ("label", "labels", "label_ids")  # what a label is called in rows, if nothing is said


@dataclass(frozen=True)
class Columns:
    """Names of columns; what is not said is found by the usual names."""

    text: tuple[str, ...] = ()  # one, or two for pairs of texts
    image: str | None = None
    labels: Any = None  # the name of a column, or the labels themselves

    @classmethod
    def of(cls, text: Any = None, image: Any = None, labels: Any = None) -> "Columns | None":
        """From what a user passed as `text`, `image` and `labels`; none if nothing was."""
        if text is None and image is None and labels is None:
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
        return cls(tuple(texts), image, labels)

    @property
    def said(self) -> list[str]:
        """The arguments that were given."""
        given = {"text": bool(self.text), "image": self.image is not None, "labels": self.labels is not None}
        return [name for name, is_given in given.items() if is_given]

    @property
    def label_names(self) -> Sequence[str]:
        """The columns that could have the label, the first that is there is taken."""
        return (self.labels,) if isinstance(self.labels, str) else LABELS

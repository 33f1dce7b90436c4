"""What a person sees of an instance of a set with a collate_fn: its text, if it has one, or its tokens."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from precedents.data.collation import Collation
from precedents.data.examples import Examples
from precedents.data.inputs import Collated, leaves
from precedents.runtime.code import is_foreign

Seen = Callable[[Any], Any]


def collation_of(train: Examples) -> Collation | None:
    """How batches of a set are made, if a collate_fn makes them."""
    source = train.source
    inputs = getattr(source, "inputs", None)
    found = inputs.together if isinstance(inputs, Collated) else getattr(source, "collation", None)
    return found if isinstance(found, Collation) else None


@dataclass(frozen=True, eq=False)
class ItemView:
    """Shows an instance: by a function of its owner's, which gets the item without its label, or as it is."""

    render: Seen | None = None

    def __call__(self, instance: Collated) -> Any:
        """A text, or what the function gives."""
        own = instance.together
        raw = isinstance(own, Collation)  # else it came in a batch, and nobody knows its item
        item = own.unlabelled(instance.members.item().item) if isinstance(own, Collation) else None
        if self.render is not None and (raw or not is_foreign(self.render)):
            return self.render(item if is_foreign(self.render) else instance.alone)
        text = _text(item)
        return _tokens(instance) if text is None else text


def _text(item: Any) -> str | None:
    """The one text in an item; none if there is none, or several."""
    parts = (
        list(item.values()) if isinstance(item, Mapping) else list(item) if isinstance(item, tuple) else [item]
    )
    texts = [part for part in parts if isinstance(part, str)]
    return texts[0] if len(texts) == 1 else None


def _tokens(instance: Collated) -> Any:
    """What the model is fed first: whole numbers as a text, others as they are."""
    first = next(iter(leaves(instance)), None)
    if first is None:
        return " ".join(map(str, _plain_values(instance.alone)))
    if isinstance(first, Tensor) and not first.is_floating_point() and first.ndim <= 1:
        return " ".join(map(str, first.reshape(-1).tolist()))
    return first


def _plain_values(nest: Any) -> list[Any]:
    if isinstance(nest, (dict, tuple, list)):
        return [
            each for part in (nest.values() if isinstance(nest, dict) else nest) for each in _plain_values(part)
        ]
    return [] if nest is None else [nest]

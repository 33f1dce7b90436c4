"""Collator: a user's own data collator, of a Trainer or a DataLoader, which makes a batch of instances."""

from collections.abc import Callable, Mapping, Set
from typing import Any

from precedents.adapters._columns import LABELS
from precedents.errors import InputError
from precedents.runtime.guards import Guard
from precedents.runtime.users_code import users
from precedents.runtime.wording import a_type

KNOWN = ("DataCollatorWithPadding", "DefaultDataCollator", "default_data_collator", "default_collate")


class Collator:
    """Makes a row of one instance, which is collated alone: nothing is padded, and no other one is near."""

    def __init__(self, collate: Callable[[list[Any]], Any], kept: Set[str] | None = None) -> None:
        self._collate, self._guard = collate, Guard()
        self._kept = kept  # the columns that it is given; none: all
        self.template: Any = None  # a training instance, which says what a case must have

    def __call__(self, item: Any) -> dict[str, Any]:
        """The fields of the instance, its label among them."""
        with self._guard.lock, users("the data collator"):
            batch = self._collate([self._given(item)])
        if isinstance(batch, tuple) and len(batch) == 2 and isinstance(batch[0], Mapping):
            batch = {**batch[0], LABELS[0]: batch[1]}
        if not isinstance(batch, Mapping):
            raise InputError(
                f"The data collator gives {a_type(batch)}. A dict of tensors [b, ...] is expected."
            )
        return {
            name: value[0] for name, value in batch.items() if hasattr(value, "__len__") and len(value) == 1
        }

    def _given(self, item: Any) -> Any:
        if not isinstance(item, Mapping):
            return item
        return {name: value for name, value in item.items() if self._kept is None or name in self._kept}


def collator_of(collate: Any, kept: Set[str] | None = None) -> Collator | None:
    """The user's own collator; none for those that only pad and stack."""
    named = collate if hasattr(collate, "__name__") else type(collate)
    library = named.__module__.partition(".")[0] in ("transformers", "torch")
    return None if collate is None or (library and named.__name__ in KNOWN) else Collator(collate, kept)

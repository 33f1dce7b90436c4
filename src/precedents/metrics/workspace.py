"""Workspace: what was computed for a subject, each thing once, as far as the memory budget has room.

Eighteen metrics share four feature maps and a few matrices; whoever holds the workspace computes each once.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from precedents.adapters._subject import Subject
from precedents.classifier.classifier import Classifier
from precedents.data.examples import Examples
from precedents.runtime.allocator import given_back
from precedents.runtime.budget import SharedBudget
from precedents.runtime.cache import Cache, Slot

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Workspace:
    """What the explanations of one subject rest on, by slots that are declared beside what they hold."""

    subject: Subject
    # with subjects that are tried beside it
    shared: SharedBudget = field(default_factory=SharedBudget, repr=False)
    cache: Cache = field(default_factory=Cache, init=False, repr=False)

    @cached_property
    def kernels(self) -> Cache:
        """Those of cases: they are light beside the matrices that they are made by, and outlast them."""
        return Cache()

    @property
    def classifier(self) -> Classifier:
        """The user's model as we see it."""
        return self.subject.classifier

    @property
    def train(self) -> Examples:
        """The training set."""
        return self.subject.train

    @property
    def room(self) -> int:
        """How many bytes of what is computed from the training set are kept for the next question."""
        return self.subject.classifier.budget.kept(self.subject.train.streamed)

    def once(self, slot: Slot[T], make: Callable[[], T]) -> T:
        """The value of `make`, computed at the first call with this slot."""
        return self.cache.once(slot, make)

    def reserve(self, needed: int) -> None:
        """Makes room for the `needed` bytes: others of the same budget put away what they hold, then this."""
        if needed:
            self.shared.take(self.cache, needed, self.subject.classifier.budget, again=True)
            given_back(needed)

    def holding(self, slot: Slot[T], needed: int) -> None:
        """Says that the `needed` bytes will be kept in this `slot`, which other workspaces may have to give."""
        if slot not in self.cache:
            self.shared.take(self.cache, needed, self.subject.classifier.budget)

    def kernel(self, slot: Slot[T], needed: int, make: Callable[[], T]) -> T:
        """What `make` gives, of the `needed` bytes: among the `kernels` from then on, in its `slot`."""
        if slot not in self.kernels:
            self.shared.take(self.cache, needed, self.subject.classifier.budget, light=self.kernels)
        return self.kernels.once(slot, make)

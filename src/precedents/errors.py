"""Every exception the package raises on purpose, in one tree.

PrecedentsError
├── InputError                 the caller passed something unusable (also a ValueError)
│   ├── UnknownNameError       a name that is in no registry; says which names exist
│   │   └── KeywordError       a keyword that a function does not take (also a TypeError)
│   ├── UserCodeError          the caller's own model, dataset or function failed; names its line
│   ├── BudgetError            the work needs more memory, disk or time than there is
│   └── DataFileError          a file of a data set is missing, truncated, altered or foreign
├── NotApplicable              the metric or criterion has no meaning here: "–" in the tables
├── MissingExtraError          an optional package is not installed (also an ImportError)
├── NumericalError             the mathematics broke down (also an ArithmeticError)
│   └── IndefiniteKernelError  M^-1 has negative eigenvalues
└── StoreError                 what is on disk cannot be used
    ├── StaleError             it was made from another model, other data or other settings
    └── FormatError            it is no file of ours, of another version, or damaged
"""

from collections.abc import Iterable
from typing import Any

from precedents.seen import clipped, nearest, told


class PrecedentsError(Exception):
    """The root of the tree: catch this to catch them all. What it says is one line that can be read."""

    def __init__(self, *said: object) -> None:
        super().__init__(*(told(each) if isinstance(each, str) else each for each in said))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled by what it says, whatever its constructor takes: errors come back from other processes."""
        return PrecedentsError._again, (type(self), self.args)

    @staticmethod
    def _again(kind: "type[PrecedentsError]", said: tuple[object, ...]) -> "PrecedentsError":
        made = kind.__new__(kind)
        made.args = said
        return made


class InputError(PrecedentsError, ValueError):
    """The caller passed something unusable; the message says what to pass instead."""


class UnknownNameError(InputError):
    """A name that is in no registry; the nearest known one is suggested."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        super().__init__(f"No {kind} is named {clipped(name)!r}.{self._hint(name, list(known))}")

    @staticmethod
    def _hint(name: str, known: list[str]) -> str:
        """The nearest of the known names, and all of them."""
        return f"{nearest(name, known)} Known: {', '.join(map(clipped, known))}."


class KeywordError(UnknownNameError, TypeError):
    """A keyword that a function does not take; the nearest that it takes is suggested."""

    def __init__(self, function: str, name: str, known: Iterable[str]) -> None:
        said = f"{function}() got an unexpected keyword argument {clipped(name)!r}."
        InputError.__init__(self, said + self._hint(name, list(known)))


class UserCodeError(InputError):
    """The caller's own model, dataset or function failed; the message has its error and its own line."""


class BudgetError(InputError):
    """The work needs more memory, disk or time than there is; the message says what would fit."""


class DataFileError(InputError):
    """A file of a data set is missing, truncated, altered or foreign; the message names it."""


class NotApplicable(PrecedentsError):  # noqa: N818  a verdict about a metric, not a mistake
    """The metric or criterion has no meaning for this model and data."""


class MissingExtraError(PrecedentsError, ImportError):
    """An optional package is not installed; the message is the line to type."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"This needs {package}. Type: pip install 'precedents[{extra}]'")


class NumericalError(PrecedentsError, ArithmeticError):
    """The mathematics broke down: a loss that is no number, a matrix that cannot be inverted."""


class IndefiniteKernelError(NumericalError):
    """M^-1 has negative eigenvalues, so lengths and angles under it do not exist."""

    def __init__(self) -> None:
        super().__init__(
            "The preconditioner is indefinite, so cosine and l2 are undefined under it. "
            "Use it with negative='drop', as in InverseHessian(negative='drop'), or use the dot similarity."
        )


class StoreError(PrecedentsError):
    """What is on disk cannot be used."""


class StaleError(StoreError):
    """It was made from another model, other data or other settings; the message says what differs."""


class FormatError(StoreError):
    """It is no file of ours, of another version, or damaged."""

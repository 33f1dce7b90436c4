"""Explain a classifier's prediction by its precedents, and put the relevance metric itself on trial."""

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from precedents.public import *  # noqa: F403
    from precedents.public import __all__ as __all__

__version__ = "0.1.0"

BOTH = ("audit", "metric")  # public functions whose files have the same name


class Package(ModuleType):
    """The package itself: public names are imported at first use, so that commands start without torch."""

    def __getattr__(self, name: str) -> Any:
        dunder = name.startswith("__") and name != "__all__"
        if dunder or (name not in BOTH and find_spec(f"{__name__}.{name}")):
            raise AttributeError(name)
        public = import_module(f"{__name__}.public")
        for known in public.__all__:
            setattr(self, known, getattr(public, known))
        return getattr(public, name)

    def __setattr__(self, name: str, value: object) -> None:
        """Importing a file does not put it in the place of the function of the same name."""
        if name not in BOTH or not isinstance(value, ModuleType):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.__all__})


sys.modules[__name__].__class__ = Package

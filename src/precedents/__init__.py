"""Explain a classifier's prediction by its precedents, and put the relevance metric itself on trial."""

import sys as _sys
from importlib import import_module as _import_module
from importlib.util import find_spec as _find_spec
from types import ModuleType as _ModuleType
from typing import TYPE_CHECKING as _TYPE_CHECKING

from precedents._version import __version__ as __version__

if _TYPE_CHECKING:
    from precedents.public import *  # noqa: F403
    from precedents.public import __all__ as __all__

_BOTH = ("audit",)  # public functions whose folders have the same name


class _Package(_ModuleType):
    """The package itself: public names are imported at first use, so that commands start without torch."""

    def __getattr__(self, name: str) -> object:
        dunder = name.startswith("__") and name != "__all__"
        if dunder or (name not in _BOTH and _find_spec(f"{__name__}.{name}")):
            raise AttributeError(name)
        public = _import_module(f"{__name__}.public")
        for known in public.__all__:
            setattr(self, known, getattr(public, known))
        return getattr(public, name)

    def __setattr__(self, name: str, value: object) -> None:
        """Importing a folder does not put it in the place of the function of the same name."""
        if name not in _BOTH or not isinstance(value, _ModuleType):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        """The public names and the dunders, and nothing that was only needed to find them."""
        public: list[str] = self.__getattr__("__all__")  # type: ignore[assignment]
        return sorted({*public, *(name for name in super().__dir__() if name.startswith("__"))})


_sys.modules[__name__].__class__ = _Package

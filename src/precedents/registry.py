"""A folder is a registry: the file `name.py` defines the object called `name`.

Values that carry settings are written as `name(setting=value)`, with the settings that differ from
the ones in the file; `read` and `written` are each other's inverse. `Call` is the one parser of such texts.
"""

import ast
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from importlib import import_module
from importlib.abc import InspectLoader
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pkgutil import iter_modules
from sys import modules
from types import ModuleType
from typing import Any, Generic, TypeVar, cast

from precedents.errors import InputError, UnknownNameError

T = TypeVar("T")

PACKAGE = f"{__package__}."
TRUTHS: Mapping[str, bool] = {"True": True, "False": False}
CALL = re.compile(r"(?P<name>\w+)\s*(?:\((?P<settings>[^()]*)\))?")


@dataclass(frozen=True)
class Call:
    """The text `name(setting=value, ...)` as a name and its settings, whose values stay texts.

    >>> Call.read("identical_class(k=10, demand=0.9)")
    Call(name='identical_class', settings={'k': '10', 'demand': '0.9'})
    >>> str(Call("identical_class", {"k": 10}))
    'identical_class(k=10)'
    """

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, text: str) -> "Call | None":
        """The call that `text` writes; none where it writes no call, as `two words` or `a(b` do."""
        found = CALL.fullmatch(text.strip())
        if found is None:
            return None
        settings = found["settings"].split(",") if found["settings"] else []
        pairs = [(key.strip(), value.strip()) for key, _, value in (s.partition("=") for s in settings)]
        names = [key for key, _ in pairs]
        twice = next((key for key in names if names.count(key) > 1), None)
        if twice is not None:
            raise InputError(f"{text!r} says {twice} twice. Say it once, as {found['name']}({twice}=...).")
        return cls(found["name"], dict(pairs))

    def __str__(self) -> str:
        settings = ", ".join(f"{key}={value}" for key, value in self.settings.items())
        return f"{self.name}({settings})" if settings else self.name


def listed(text: str) -> list[str]:
    """The texts of a list with commas between; commas within brackets do not separate.

    >>> listed("gc, identical_class(k=10, demand=0.9)")
    ['gc', 'identical_class(k=10, demand=0.9)']
    """
    parts = (part.strip() for part in re.split(r",(?![^()]*\))", text))
    return [part for part in parts if part]


@dataclass(frozen=True)
class Registry(Generic[T]):
    """The objects that the files of a folder define; the folder is read once.

    `kind` is what one of them is called in messages, `folder` the package whose files they are.
    """

    kind: str
    folder: ModuleType
    _found: dict[str, T] = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def _names(self) -> list[str]:
        found = (module.name for module in iter_modules(self.folder.__path__))
        return sorted(name for name in found if not name.startswith("_"))

    def names(self) -> list[str]:
        """The names of all files in the folder that do not begin with an underscore."""
        return list(self._names)

    def known(self, name: str) -> str:
        """The name, if it is one; an unknown name lists the known ones."""
        if name not in self._names:
            raise UnknownNameError(self.kind, name, self.names())
        return name

    def get(self, name: str) -> T:
        """The object called `name`, imported the first time that it is asked for."""
        if name not in self._found:
            module = import_module(f"{self.folder.__name__}.{self.known(name)}")
            self._found[name] = getattr(module, name)
        return self._found[name]

    def source(self, name: str) -> str:
        """The text of the file that defines `name`, read without importing it."""
        spec = cast("ModuleSpec", find_spec(f"{self.folder.__name__}.{self.known(name)}"))
        return cast("InspectLoader", spec.loader).get_source(spec.name) or ""

    def meaning(self, name: str) -> str:
        """The first line of the file's docstring, read without importing the file."""
        return (ast.get_docstring(ast.parse(self.source(name))) or "").partition("\n")[0]

    def read(self, text: str) -> T:
        """The object that `text` writes: `name` or `name(setting=value, ...)`."""
        call = Call.read(text)
        if call is None:
            raise InputError(f"{text!r} is no {self.kind}. Write name or name(setting=value).")
        value = self.get(call.name)
        return self._set(value, call.settings) if call.settings else value

    def _set(self, value: T, settings: Mapping[str, str]) -> T:
        known = _settings(value)
        given = {}
        for key, text in settings.items():
            if key not in known:
                raise UnknownNameError(f"setting of {self.kind} {written(value)}", key, known)
            given[key] = _parsed(text, like=known[key], setting=key)
        return cast("T", replace(cast("Any", value), **given))


def written(value: object) -> str:
    """The text that `Registry.read` reads back: the file's name and the settings that differ.

    A `value` of no file of the package is written by the name of its class, and is not read back.
    """
    if isinstance(value, type) or not is_dataclass(value):
        unnamed = type(value).__name__ if type(value).__repr__ is object.__repr__ else value
        return str(getattr(value, "__name__", unnamed))
    name, known, settings = *_origin(type(value)), _settings(value)
    return str(Call(name, {key: own for key, own in settings.items() if own != known[key]}))


def _origin(kind: Any) -> tuple[str, Mapping[str, Any]]:
    """What values of a dataclass are called, and the settings that go without saying.

    Both are of the object in the file, if the class is of a registry's file, and else of the class; what has
    no default is always said.
    """
    name = kind.__module__.rpartition(".")[2]
    own = getattr(modules.get(kind.__module__), name, None)
    if type(own) is kind and kind.__module__.startswith(PACKAGE):
        return name, _settings(own)
    made = {each.name: each.default_factory() for each in fields(kind) if each.default_factory is not MISSING}
    return kind.__name__, {each.name: each.default for each in fields(kind)} | made


def by_name(values: Iterable[T], kind: str, name: Callable[[T], str] = written) -> dict[str, T]:
    """The `values` by the `name` of each; two that differ and have one name are refused as of this `kind`."""
    found: dict[str, T] = {}
    for value in values:
        known = found.setdefault(name(value), value)
        if known is not value and known != value:
            raise InputError(
                f"Two {kind} that differ are both called {name(value)}. Give the functions or classes that "
                "they are made of names of their own."
            )
    return found


def _settings(value: object) -> Mapping[str, Any]:
    if not is_dataclass(value):
        return {}
    return {field.name: getattr(value, field.name) for field in fields(value) if field.init}


def _parsed(text: str, like: object, setting: str) -> object:
    """The value that a text writes, of the kind that the setting has now; anything plain, if that is None."""
    if isinstance(like, str):
        return text
    if like is None:
        return _plain(text)
    kind = type(like)
    if kind not in (bool, int, float):
        raise InputError(
            f"The setting {setting} is of type {kind.__name__}, which no text can set. Make the value in "
            f"Python, with {setting}=... among its arguments, and pass it."
        )
    try:
        return TRUTHS[text] if kind is bool else kind(text)
    except (ValueError, OverflowError, KeyError):
        raise InputError(
            f"{setting}={text!r} is no {kind.__name__}. Write for example {setting}={like}."
        ) from None


def _plain(text: str) -> object:
    """A number, True, False or None if `text` writes one, and else the text."""
    if text == "None" or text in TRUTHS:
        return TRUTHS.get(text)
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text

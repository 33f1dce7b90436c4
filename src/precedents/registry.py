"""A folder is a registry: the file `name.py` defines the object called `name`.

Values that carry settings are written as `name(setting=value)`, with the settings that differ from
the ones in the file; `read` and `written` are each other's inverse.
"""

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from importlib import import_module
from importlib.abc import InspectLoader
from importlib.util import find_spec
from pkgutil import iter_modules
from types import ModuleType
from typing import Any, Generic, TypeVar, cast

from precedents.errors import InputError, UnknownNameError

T = TypeVar("T")

CALL = re.compile(r"(?P<name>\w+)\s*(?:\((?P<settings>[^()]*)\))?")


@dataclass(frozen=True)
class Registry(Generic[T]):
    """The objects that the files of a folder define."""

    kind: str
    folder: ModuleType

    def names(self) -> list[str]:
        """The names of all files in the folder that do not begin with an underscore."""
        found = (module.name for module in iter_modules(self.folder.__path__))
        return sorted(name for name in found if not name.startswith("_"))

    def known(self, name: str) -> str:
        """The name, if it is one; an unknown name lists the known ones."""
        if name not in self.names():
            raise UnknownNameError(self.kind, name, self.names())
        return name

    def get(self, name: str) -> T:
        """The object called `name`."""
        self.known(name)
        return cast("T", getattr(import_module(f"{self.folder.__name__}.{name}"), name))

    def meaning(self, name: str) -> str:
        """The first line of the file's docstring, read without importing the file."""
        spec = find_spec(f"{self.folder.__name__}.{self.known(name)}")
        assert spec is not None
        source = cast("InspectLoader", spec.loader).get_source(spec.name) or ""
        return (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]

    def read(self, text: str) -> T:
        """The object that `text` writes: `name` or `name(setting=value, ...)`."""
        call = CALL.fullmatch(text.strip())
        if call is None:
            raise InputError(f"{text!r} is no {self.kind}. Write name or name(setting=value).")
        value = self.get(call["name"])
        return self._set(value, call["settings"]) if call["settings"] else value

    def _set(self, value: T, settings: str) -> T:
        known = _settings(value)
        given = {}
        for setting in settings.split(","):
            key, _, text = (part.strip() for part in setting.partition("="))
            if key not in known:
                raise UnknownNameError(f"setting of {self.kind} {written(value)}", key, known)
            given[key] = _parsed(text, like=known[key], setting=key)
        return cast("T", replace(cast("Any", value), **given))


def written(value: object) -> str:
    """The text that `Registry.read` reads back: the file's name and the settings that differ."""
    if not is_dataclass(value):
        return str(getattr(value, "__name__", value))
    kind: Any = type(value)
    name = kind.__module__.rpartition(".")[2]
    defaults = _settings(kind())
    changed = [f"{k}={v}" for k, v in _settings(value).items() if v != defaults[k]]
    return f"{name}({', '.join(changed)})" if changed else name


def _settings(value: object) -> Mapping[str, Any]:
    if not is_dataclass(value):
        return {}
    return {field.name: getattr(value, field.name) for field in fields(value)}


def _parsed(text: str, like: object, setting: str) -> object:
    if isinstance(like, str):
        return text
    try:
        return type(like)(text)  # type: ignore[call-arg]
    except ValueError:
        kind = type(like).__name__
        raise InputError(f"{setting}={text!r} is no {kind}. Write for example {setting}={like}.") from None

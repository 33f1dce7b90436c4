import re
import sys
from dataclasses import dataclass, field, fields, is_dataclass, replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, get_args, get_type_hints

import pytest

import precedents
from precedents import CRITERIA, FEATURES, PRECONDITIONERS, SIMILARITIES, InputError, UnknownNameError
from precedents.criteria.identical_class import IdenticalClass
from precedents.criteria.model_randomization import ModelRandomization
from precedents.metrics.preconditioners.hessian import InverseHessian, hessian
from precedents.registry import Call, Registry, by_name, listed, written
from precedents.runtime.engines import ENGINES


@pytest.mark.parametrize(
    ("registry", "some"),
    [
        (FEATURES, {"inputs", "last_hidden", "all_hidden", "gradient", "residual"}),
        (PRECONDITIONERS, {"identity", "hessian", "fisher"}),
        (SIMILARITIES, {"dot", "cosine", "l2"}),
        (CRITERIA, {"identical_class", "identical_subclass", "identical_instance", "model_randomization"}),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)
def test_names_are_the_files_of_the_folder(registry, some) -> None:
    assert some <= set(registry.names())
    assert registry.names() == sorted(registry.names())
    assert not any(name.startswith("_") for name in registry.names())


def test_a_name_gives_the_object_of_that_name() -> None:
    assert PRECONDITIONERS.get("hessian") is hessian


def test_an_unknown_name_suggests_the_nearest_and_lists_all() -> None:
    with pytest.raises(UnknownNameError) as caught:
        SIMILARITIES.get("Cosin")
    assert "No similarity is named 'Cosin'. Did you mean 'cosine'? Known: " in str(caught.value)
    assert all(name in str(caught.value) for name in SIMILARITIES.names())


def test_a_name_like_no_other_gets_no_suggestion() -> None:
    with pytest.raises(UnknownNameError) as caught:
        SIMILARITIES.get("xyz")
    assert "Did you mean" not in str(caught.value)


def test_a_private_file_is_no_name() -> None:
    with pytest.raises(UnknownNameError):
        PRECONDITIONERS.get("_inverse")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("hessian", InverseHessian()),
        (" hessian () ", InverseHessian()),
        ("hessian(damping=0.5)", InverseHessian(damping=0.5)),
        ("hessian( kind = exact ,negative=keep )", InverseHessian(kind="exact", negative="keep")),
    ],
)
def test_settings_are_read(text, value) -> None:
    assert PRECONDITIONERS.read(text) == value


@pytest.mark.parametrize(
    "value",
    [IdenticalClass(), IdenticalClass(k=10), ModelRandomization(draws=1, label="shared", fail=0.5)],
    ids=str,
)
def test_what_is_written_is_read_back(value) -> None:
    assert CRITERIA.read(written(value)) == value


def test_only_settings_that_differ_are_written() -> None:
    assert written(IdenticalClass(k=10)) == "identical_class(k=10)"
    assert written(IdenticalClass(k=1)) == "identical_class"


def test_a_function_is_written_by_its_name() -> None:
    assert written(SIMILARITIES.get("dot")) == "dot"


@pytest.mark.parametrize("text", ["", "two words", "hessian(", "hessian)", "hessian(damping=(1))", "a.b"])
def test_what_is_no_call_is_refused(text) -> None:
    with pytest.raises(InputError, match=r"is no preconditioner. Write name or name"):
        PRECONDITIONERS.read(text)


def test_an_unknown_setting_suggests_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"No setting of criterion identical_class is named 'kk'"):
        CRITERIA.read("identical_class(kk=3)")


def test_a_setting_of_the_wrong_type_is_refused_with_an_example() -> None:
    with pytest.raises(InputError, match=r"k='ten' is no int. Write for example k=1"):
        CRITERIA.read("identical_class(k=ten)")


def test_a_function_has_no_settings() -> None:
    with pytest.raises(UnknownNameError, match=r"No setting of similarity dot is named 'p'"):
        SIMILARITIES.read("dot(p=2)")


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("gc", Call("gc")),
        (" hessian () ", Call("hessian")),
        ("identical_class( k = 10 ,demand=0.9 )", Call("identical_class", {"k": "10", "demand": "0.9"})),
        ("identical_class(10)", Call("identical_class", {"10": ""})),
        ("two words", None),
        ("hessian(", None),
    ],
)
def test_a_call_is_a_name_and_its_settings(text, call) -> None:
    assert Call.read(text) == call
    assert call is None or Call.read(str(call)) == call


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", []),
        ("gc", ["gc"]),
        (" gc , ,cos_x,", ["gc", "cos_x"]),
        ("a(k=1, n=2),b", ["a(k=1, n=2)", "b"]),
    ],
)
def test_a_list_is_split_at_commas_outside_of_brackets(text, parts) -> None:
    assert listed(text) == parts


@pytest.fixture
def folder(tmp_path, monkeypatch) -> ModuleType:
    """A package with one file."""
    package = tmp_path / "a_folder_of_parts"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "first.py").write_text('"""First: of all.\n\nMore."""\n\nfirst = object()\n')
    monkeypatch.syspath_prepend(tmp_path)
    yield import_module("a_folder_of_parts")
    for name in [name for name in sys.modules if name.startswith("a_folder_of_parts")]:
        del sys.modules[name]


def test_a_folder_is_read_once(folder) -> None:
    registry = Registry("part", folder)
    assert registry.names() == ["first"]
    found = registry.get("first")
    (Path(folder.__path__[0]) / "second.py").write_text("second = 2\n")
    registry.names().append("third")
    assert registry.names() == ["first"]
    del sys.modules["a_folder_of_parts.first"]
    assert registry.get("first") is found
    assert Registry("part", folder).names() == ["first", "second"]


def test_every_registry_of_the_package_is_made_once() -> None:
    made = [
        kind
        for file in Path(precedents.__file__).parent.rglob("*.py")
        for kind in re.findall(r'\bRegistry\(\s*"([\w ]+)"', file.read_text(encoding="utf-8"))
    ]
    assert {"criterion", "similarity", "engine", "data set", "adapter", "command"} <= set(made)
    assert len(made) == len(set(made))


def test_a_source_is_read_without_importing_it(folder) -> None:
    registry = Registry("part", folder)
    assert registry.source("first").endswith("first = object()\n")
    assert registry.meaning("first") == "First: of all."
    assert "a_folder_of_parts.first" not in sys.modules


@dataclass(frozen=True)
class Local:
    """A value of no registry."""

    x: int = 1


def test_a_value_of_no_registry_is_written_by_its_class() -> None:
    assert written(Local(2)) == "Local(x=2)"
    assert written(Local()) == "Local"


@dataclass(frozen=True)
class Demanding:
    """A value one of whose settings has no default, and one a default that is made."""

    must: int
    made: tuple[int, ...] = field(default_factory=tuple)


def test_a_setting_without_default_is_always_written() -> None:
    assert written(Demanding(2)) == "Demanding(must=2)"


def test_a_class_is_written_by_its_name() -> None:
    assert written(Local) == "Local"


def test_an_object_without_a_name_is_written_by_its_class() -> None:
    assert written(Registry.__new__(type("Thing", (), {}))) == "Thing"


def test_two_values_of_one_name_are_refused_unless_they_are_equal() -> None:
    assert list(by_name([Local(1), Local(2), Local(1)], "values")) == ["Local", "Local(x=2)"]
    with pytest.raises(InputError, match="Two values that differ are both called <lambda>"):
        by_name([lambda: 1, lambda: 2], "values")


SETTINGS = """
from dataclasses import dataclass

@dataclass(frozen=True)
class Settings:
    strict: bool = False
    rank: int | None = None
    share: float = 0.5
    word: str = "one"
    sizes: tuple[int, ...] = (1, 2)

second = Settings()
"""


@pytest.fixture
def settings(folder) -> Registry[Any]:
    (Path(folder.__path__[0]) / "second.py").write_text(SETTINGS)
    return Registry("part", folder)


@pytest.mark.parametrize(
    ("text", "setting", "value"),
    [
        ("strict=False", "strict", False),
        ("strict=True", "strict", True),
        ("rank=None", "rank", None),
        ("rank=3", "rank", 3),
        ("rank=0.5", "rank", 0.5),
        ("rank=all", "rank", "all"),
        ("rank=False", "rank", False),
        ("share=1", "share", 1.0),
        ("word=False", "word", "False"),
    ],
)
def test_settings_are_read_as_what_they_are(text, setting, value, settings) -> None:
    found = getattr(settings.read(f"second({text})"), setting)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("text", ["false", "1", "", "None"])
def test_a_word_that_is_neither_true_nor_false_is_refused(text, settings) -> None:
    with pytest.raises(InputError, match=f"strict='{text}' is no bool. Write for example strict=False"):
        settings.read(f"second(strict={text})")


def test_a_setting_that_no_text_can_set_is_refused_by_its_type(settings) -> None:
    with pytest.raises(InputError, match="The setting sizes is of type tuple, which no text can set"):
        settings.read("second(sizes=12)")


def others(value: Any) -> list[Any]:
    """The value with each of its settings changed to another of its type."""
    hints = get_type_hints(type(value))
    every = {each.name: other(getattr(value, each.name), get_args(hints[each.name])) for each in fields(value)}
    return [replace(value, **{name: changed}) for name, changed in every.items()]


def other(setting: Any, choices: tuple[Any, ...]) -> Any:
    if isinstance(setting, str):
        return next((each for each in choices if each != setting), f"{setting}x")
    if isinstance(setting, bool):
        return not setting
    return setting / 2 if isinstance(setting, float) else setting + 1


@pytest.mark.parametrize(
    ("registry", "name"),
    [
        (registry, name)
        for registry in (PRECONDITIONERS, CRITERIA, ENGINES)
        for name in registry.names()
        if is_dataclass(registry.get(name))
    ],
    ids=lambda value: getattr(value, "kind", value),
)
def test_every_setting_of_every_part_is_written_and_read_back(registry, name) -> None:
    for value in others(registry.get(name)):
        assert written(value).startswith(f"{name}(")
        assert registry.read(written(value)) == value != registry.get(name)


@pytest.mark.parametrize(
    "registry", [FEATURES, PRECONDITIONERS, SIMILARITIES, CRITERIA], ids=lambda value: value.kind
)
def test_the_meaning_of_a_name_is_the_first_line_of_its_file(registry) -> None:
    for name in registry.names():
        first = import_module(f"{registry.folder.__name__}.{name}").__doc__.splitlines()[0]
        assert registry.meaning(name) == first


def test_an_unknown_name_has_no_meaning() -> None:
    with pytest.raises(UnknownNameError, match="No similarity is named 'cosin'"):
        SIMILARITIES.meaning("cosin")

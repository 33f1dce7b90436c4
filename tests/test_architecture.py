import ast
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from statistics import fmean

import pytest

import precedents

PACKAGE = Path(precedents.__file__).parent
TESTS = Path(__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
LINES = 350  # that a file may have,
LONGEST, MOST, MEAN = 40, 6, 10  # lines of a function, its parameters, and lines of a function on average
DOORS = {  # whose keywords a person types
    "explain/explainer.py": "__init__",
    "audit/front_door.py": "audit",
    "explorer/front_door.py": "explore",
}
NUMERICS = ("_structures", "ekfac", "fisher", "hessian", "lanczos")  # of the preconditioners
EQUATION = 900  # lines of code of metrics/ without them

each = pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))


def run(*command: str, path: Path = PACKAGE.parent, cwd: Path = TESTS.parent) -> str:
    """What a command prints, with the package at `path`; a command that fails is an error."""
    environment = os.environ | {"PYTHONPATH": str(path), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=cwd, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@each
def test_every_file_begins_with_what_it_is_for(file) -> None:
    assert ast.get_docstring(ast.parse(file.read_text()))


@each
def test_no_file_is_too_long(file) -> None:
    assert len(file.read_text().splitlines()) <= LINES


Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(file: Path) -> list[Function]:
    """All functions of a file but the front doors and the commands."""
    name, tree = file.relative_to(PACKAGE).as_posix(), ast.parse(file.read_text())
    door = file.stem if name.startswith("cli/") else DOORS.get(name)
    every = [node for node in ast.walk(tree) if isinstance(node, Function)]
    return [node for node in every if node.name != door]


def parameters(function: Function) -> int:
    """How many it has; `self` and `cls` are none."""
    given = function.args
    named = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len([name for name in named if name not in ("self", "cls")]) + bool(given.vararg) + bool(given.kwarg)


def length(function: Function) -> int:
    return (function.end_lineno or 0) - function.lineno + 1


@each
def test_no_function_is_too_long(file) -> None:
    assert [node.name for node in functions(file) if length(node) > LONGEST] == []


@each
def test_no_function_has_too_many_parameters(file) -> None:
    assert [node.name for node in functions(file) if parameters(node) > MOST] == []


def test_functions_are_short_on_average() -> None:
    assert fmean(length(node) for file in FILES for node in functions(file)) < MEAN


def type_names(file: Path) -> list[str]:
    """The classes of a file, and its aliases of types."""
    tree = ast.parse(file.read_text())
    found = [node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.Name) and re.fullmatch(r"_?[A-Z][a-zA-Z]*[a-z][a-zA-Z]*", target.id):
            found.append(target.id)
    return found


def test_every_type_name_is_defined_once() -> None:
    places = Counter(name for file in FILES for name in type_names(file))
    assert [name for name, count in places.items() if count > 1] == []


def code(file: Path) -> int:
    """Lines that are neither blank nor comments nor docstrings."""
    text = file.read_text()
    lines = {
        i for i, line in enumerate(text.splitlines(), 1) if line.strip() and not line.strip().startswith("#")
    }
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, (ast.Module, ast.ClassDef, *Function.__args__))
            and ast.get_docstring(node) is not None
        ):
            said = node.body[0]
            lines -= set(range(said.lineno, (said.end_lineno or 0) + 1))
    return len(lines)


def test_the_equation_is_read_in_an_hour() -> None:
    files = [file for file in (PACKAGE / "metrics").rglob("*.py") if file.stem not in NUMERICS]
    assert sum(map(code, files)) <= EQUATION


def test_imports_go_down_the_layers() -> None:
    assert "0 broken" in run(str(Path(sys.executable).parent / "lint-imports"))


def test_public_names_are_sorted() -> None:
    def order(name: str) -> tuple[bool, bool, str]:
        return not name.isupper(), not name[0].isupper(), name

    assert precedents.__all__ == sorted(precedents.__all__, key=order)


@pytest.mark.parametrize("name", precedents.__all__)
def test_public_names_are_there_and_documented(name) -> None:
    value = getattr(precedents, name)
    if isinstance(value, type) or hasattr(value, "__code__"):
        assert value.__doc__


def test_public_names_are_all_that_is_imported_by_name() -> None:
    tree = ast.parse((PACKAGE / "public.py").read_text())
    imported = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert imported == set(precedents.__all__)


IMPORT = """
import random, sys
import numpy, torch
state = torch.get_rng_state(), repr(numpy.random.get_state()), random.getstate()
settings = torch.get_num_threads(), torch.get_default_dtype(), torch.is_grad_enabled()
before = set(sys.modules)
import precedents
precedents.Explainer
assert torch.equal(state[0], torch.get_rng_state())
assert state[1:] == (repr(numpy.random.get_state()), random.getstate())
assert settings == (torch.get_num_threads(), torch.get_default_dtype(), torch.is_grad_enabled())
heavy = "jinja2", "matplotlib", "pandas", "sklearn", "scipy", "rich.progress", "transformers", "typer"
print(*(name for name in heavy if name in sys.modules and name not in before))
"""


def test_importing_the_package_is_light_and_changes_nothing() -> None:
    assert run(sys.executable, "-W", "error", "-c", IMPORT).strip() == ""


def test_the_package_alone_does_not_import_torch() -> None:
    assert run(sys.executable, "-c", "import sys, precedents; print('torch' in sys.modules)").strip() == "False"


BOTH = """
import importlib, sys
import precedents
file = importlib.import_module("precedents." + sys.argv[1])
print(callable(getattr(precedents, sys.argv[1])), type(file).__name__)
"""


@pytest.mark.parametrize("name", sorted({file.stem for file in PACKAGE.iterdir()} & set(precedents.__all__)))
def test_a_public_function_stays_when_the_file_of_its_name_is_imported(name) -> None:
    assert run(sys.executable, "-c", BOTH, name).split() == ["True", "module"]


def test_the_package_shows_its_public_names_and_nothing_else() -> None:
    shown = [name for name in dir(precedents) if not name.startswith("__")]
    assert shown == sorted(precedents.__all__)


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        precedents.nonsense  # noqa: B018


PLOT = """
import sys, torch
from precedents import Explainer
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(9, 2))
explainer = Explainer(model, (torch.rand(4, 3, 3), torch.arange(4) % 2))
explanation = explainer.explain(torch.rand(3, 3), k=2)
explanation.plot(), explanation._repr_html_()
print("matplotlib.pyplot" in sys.modules)
"""


def test_drawing_does_not_touch_the_global_state_of_matplotlib() -> None:
    assert run(sys.executable, "-c", PLOT).strip() == "False"

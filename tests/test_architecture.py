import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import precedents

PACKAGE = Path(precedents.__file__).parent
TESTS = Path(__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
LINES = 400  # that a file may have

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


USE = """
import torch
from precedents import SIMILARITIES, Explainer
torch.manual_seed(0)
x, y = torch.rand(6, 3), torch.arange(6) % 2
explainer = Explainer(torch.nn.Linear(3, 2), (x, y), "tanimoto:gradient")
assert torch.allclose(explainer.scores(x, labels=y).diagonal(), torch.ones(6, dtype=torch.double))
print("tanimoto" in SIMILARITIES.names(), repr(explainer))
"""


@pytest.fixture(scope="module")
def extended(tmp_path_factory) -> Path:
    """A copy of the package with one more file, which CONTRIBUTING.md has whole."""
    folder = tmp_path_factory.mktemp("extended")
    shutil.copytree(PACKAGE, folder / "precedents", ignore=shutil.ignore_patterns("__pycache__"))
    recipe = (Path(__file__).parent.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    whole = recipe.partition("```python\n")[2].partition("```")[0]
    (folder / "precedents" / "similarities" / "tanimoto.py").write_text(whole)
    return folder


def test_a_similarity_is_added_by_one_file(extended) -> None:
    said = run(sys.executable, "-c", USE, path=extended)
    assert said.strip() == "True Explainer(tanimoto:gradient, 6 training instances)"


def test_an_added_similarity_is_held_to_the_contracts(extended) -> None:
    contract = str(TESTS / "contracts" / "test_similarities.py")
    said = run(
        sys.executable, "-m", "pytest", contract, "-k", "tanimoto", "-p", "no:cacheprovider", path=extended
    )
    passed = int(said.split(" passed")[0].split()[-1])
    assert passed > 15

"""The recipes of CONTRIBUTING.md: each file, in a copy of the package, is found, held to contracts and used."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import precedents

PACKAGE = Path(precedents.__file__).parent
ROOT = Path(__file__).parent.parent
BLOCK = re.compile(
    r"(?:`src/precedents/(?P<path>[\w/]+\.py)`, whole:\n\n)?```python\n(?P<code>.*?)```", re.DOTALL
)
SECTIONS = {
    part.partition("\n")[0]: part
    for part in re.split(r"^### ", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[
        1:
    ]
}
KINDS = [  # of parts, in the order of the page
    "A similarity",
    "A feature map",
    "A preconditioner",
    "A criterion",
    "A layer rule",
    "An adapter",
    "An engine",
    "A data set or an architecture",
    "A command",
]


def files(section: str) -> dict[str, str]:
    """The files that a recipe has whole, by their path in the package."""
    return {found["path"]: found["code"] for found in BLOCK.finditer(section) if found["path"]}


def run(*command: str, path: Path, given: str | None = None) -> str:
    """What a command prints, with the package at `path`; one that fails is an error."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(path), str(ROOT / "tests")])}
    done = subprocess.run(
        command, input=given, capture_output=True, text=True, env=environment, cwd=ROOT, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def extended(tmp_path_factory) -> Path:
    """A copy of the package with the files of all recipes."""
    folder = tmp_path_factory.mktemp("extended")
    shutil.copytree(PACKAGE, folder / "precedents", ignore=shutil.ignore_patterns("*.pyc.*"))
    for section in SECTIONS.values():
        for path, code in files(section).items():
            assert not (PACKAGE / path).exists()
            (folder / "precedents" / path).write_text(code, encoding="utf-8")
    return folder


def test_there_is_a_recipe_for_every_kind_of_part() -> None:
    assert list(SECTIONS)[: len(KINDS)] == KINDS
    assert all(files(SECTIONS[kind]) for kind in KINDS)


LAYER = """
import warnings
warnings.simplefilter("error")
import torch
from torch import nn
from precedents import Classifier, Examples, Explainer
from precedents.gradients.gradients import planned
from precedents.gradients.layers.scale import Scale
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 3), Scale(3), nn.Tanh(), nn.Linear(3, 2))
train = Examples.of((torch.randn(8, 4), torch.arange(8) % 2))
Explainer(model, train).explain(torch.randn(4))
recording = planned(Classifier.of(model, train)).recording
print(recording.uncovered, recording.copies)
"""
HELP = """
from precedents.cli._main import main
main(["--help"])
"""
DOCSTRINGS = "import doctest, importlib\n" + "\n".join(
    f"found = doctest.testmod(importlib.import_module({module!r}))\nassert found.attempted and not found.failed"
    for kind in KINDS[:4]
    for module in [f"precedents.{path[:-3].replace('/', '.')}" for path in files(SECTIONS[kind])]
)


def uses(kind: str) -> list[str]:
    """What stands after the files of a recipe, to be run."""
    return [found["code"] for found in BLOCK.finditer(SECTIONS[kind]) if not found["path"]]


@pytest.fixture(scope="module")
def used(extended) -> dict[str, dict[str, int | str]]:
    """What became of every use of the added parts, each in a process of its own."""
    scripts = {kind: uses(kind)[0] for kind in KINDS}
    scripts |= {"layer": LAYER, "help": HELP, "docstrings": DOCSTRINGS}
    return json.loads(run(sys.executable, "-m", "forked", path=extended, given=json.dumps(scripts)))


@pytest.mark.parametrize("kind", KINDS)
def test_a_part_is_added_by_its_file_and_used_by_name(kind, used) -> None:
    said = re.findall(r"```text\n(.*?)```", SECTIONS[kind], re.DOTALL)
    assert len(uses(kind)) == len(said) == 1
    assert used[kind]["code"] == 0, used[kind]["err"]
    assert used[kind]["out"] == said[0]


def test_a_layer_with_parameters_of_other_names_is_recorded_by_its_rule(used) -> None:
    assert used["layer"]["code"] == 0, used["layer"]["err"]
    assert used["layer"]["out"].split() == ["()", "{}"]


CONTRACTS = {
    "similarities": "tanimoto",
    "features": "probabilities",
    "preconditioners": "covariance",
    "criteria": "label_agreement",
    "layers": "scale",
    "adapters": "voters",
    "engines": "shuffled",
    "zoo": "iris or wide",
}


@pytest.fixture(scope="module")
def passed(extended) -> Counter[str]:
    """How many tests of the added parts pass, by their file; one process runs them all."""
    tests = [ROOT / "tests" / "contracts" / f"test_{contract}.py" for contract in CONTRACTS]
    names = " or ".join([*CONTRACTS.values(), "adapters"])
    report = extended / "report.xml"
    options = ("-k", names, "-p", "no:cacheprovider", f"--junitxml={report}")
    files = [*map(str, tests), str(ROOT / "tests" / "cli" / "test_help.py")]
    run(sys.executable, "-m", "pytest", *files, *options, path=extended)
    found = re.findall(r'<testcase classname="tests\.[\w.]*test_(\w+)" name="([^"]*)"', report.read_text())
    own = {**CONTRACTS, "help": "adapters"}
    return Counter(file for file, name in found if any(part in name for part in own[file].split(" or ")))


@pytest.mark.parametrize("contract", CONTRACTS)
def test_an_added_part_is_held_to_its_contracts(contract, passed) -> None:
    assert passed[contract] >= 4


def test_an_added_rule_is_held_to_all_of_its_contracts(passed) -> None:
    assert passed["layers"] == 8


def test_an_added_criterion_is_held_to_all_of_its_contracts(passed) -> None:
    assert passed["criteria"] > 25


def test_an_added_command_is_helped_and_its_examples_are_run(used, passed) -> None:
    assert "adapters" in used["help"]["out"]
    assert passed["help"] >= 4


def test_the_examples_in_the_docstrings_of_recipes_are_run(used) -> None:
    assert used["docstrings"]["code"] == 0, used["docstrings"]["out"] + used["docstrings"]["err"]

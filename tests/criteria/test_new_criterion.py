"""A criterion is added by one file: audit, page, recommendation, command line and documentation take it up."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import precedents

PACKAGE = Path(precedents.__file__).parent
ROOT = Path(__file__).parent.parent.parent
RECIPE = re.compile(r"`src/precedents/criteria/label_agreement.py`, whole:\n\n```python\n(.*?)```", re.DOTALL)
(FILE,) = RECIPE.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
MODEL = """
import torch


def factory():
    random = torch.Generator().manual_seed(0)
    x, y = torch.randn(40, 3, generator=random), torch.arange(40) % 2
    model = torch.nn.Linear(3, 2)
    with torch.no_grad():
        model.weight.copy_(torch.randn(2, 3, generator=random))
        model.bias.zero_()
    return model, (x[:30], y[:30]), (x[30:], y[30:])
"""
AUDIT = """
import json
import precedents as pr
from mine import factory
model, train, test = factory()
metrics = ["cos_x", "cos_grad"]
found = pr.audit(model, train, test, metrics=metrics, k=4)
alone = pr.audit(model, train, test, metrics=metrics, criteria=["label_agreement"], k=4)
print(json.dumps({
    "names": pr.CRITERIA.names(),
    "criteria": found.criteria,
    "table": str(found),
    "page": found.to_html(),
    "audit": found.to_dict(),
    "mean": found["cos_grad", "label_agreement"].mean,
    "alone": [alone["cos_grad", "label_agreement"].mean, alone["cos_grad", "label_agreement"].verdict],
    "recommended": alone.recommendation.sentences,
}))
"""
COMMANDS = """
import json, sys
from precedents.cli._main import main
for command in json.loads(sys.argv[1]):
    assert main(command) == 0
    print(flush=True)
"""
PAGES = """
from mkdocs.config import load_config
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

config = load_config("mkdocs.yml")
config.plugins.on_startup(command="build", dirty=False)
config = config.plugins.on_config(config)
files = config.plugins.on_files(Files([]), config=config)
print(config.nav)
for name in ("index", "label_agreement"):
    page = Page(None, files.get_file_from_path(f"criteria/{name}.md"), config)
    page.read_source(config)
    print(config.plugins.on_page_markdown(page.markdown, page=page, config=config, files=files))
"""


@pytest.fixture(scope="module")
def extended(tmp_path_factory) -> Path:
    """A folder with a copy of the package that has one more file, and a model beside it."""
    folder = tmp_path_factory.mktemp("extended")
    shutil.copytree(PACKAGE, folder / "precedents", ignore=shutil.ignore_patterns("*.pyc.*"))
    (folder / "precedents" / "criteria" / "label_agreement.py").write_text(FILE)
    (folder / "mine.py").write_text(MODEL)
    return folder


@pytest.fixture(scope="module")
def run(extended):
    """What Python prints with the extended package; a command that fails is an error."""

    def ran(*arguments: str, cwd: Path = extended) -> str:
        environment = os.environ | {
            "PYTHONPATH": str(extended),
            "NO_MKDOCS_2_WARNING": "1",
        }
        command = [sys.executable, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=cwd, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return ran


@pytest.fixture(scope="module")
def said(run) -> dict:
    return json.loads(run("-c", AUDIT))


def test_an_audit_runs_it_without_its_being_named(said) -> None:
    assert "label_agreement" in said["names"]
    assert said["criteria"] == [
        "model_randomization",
        "model_randomization(label=shared)",
        "identical_class",
        "identical_class(k=4)",
        "identical_instance",
        "label_agreement",
        "label_agreement(k=4)",
    ]


def test_its_column_is_in_the_table_the_page_and_the_json(said) -> None:
    head = said["table"].partition("cos_x")[0].split()  # names in lines, one below the other
    assert (head.count("label"), head.count("agreement"), head.count("k=4")) == (2, 2, 2)
    assert f"{said['mean']:.3f}" in said["table"]
    assert re.search(r"<th[^>]*>\s*Label agreement", said["page"])
    outcomes = [each for each in said["audit"]["outcomes"] if each["criterion"] == "label_agreement(k=4)"]
    assert [each["metric"] for each in outcomes] == ["cos_x", "cos_grad"]
    assert all(len(each["values"]) == 10 for each in outcomes)


def test_the_recommendation_counts_it(said) -> None:
    value, verdict = said["alone"]
    told = " ".join(said["recommended"])
    assert "mean success rate" in told or "mean of its success rates" in told
    assert f"{value:.3f}" in told
    assert (verdict == "passed") == ("passes every criterion" in told)


def test_its_verdict_is_earned_without_its_doing(said) -> None:
    verdict, told = said["alone"][1], " ".join(said["recommended"])
    assert verdict == "undecided"  # over ten cases
    assert re.search(
        r"It is undecided in label_agreement \(\d\.\d+\): too few cases \(about \d+ would do\)", told
    )


def test_the_command_line_lists_and_takes_it(run) -> None:
    target = "--target mine:factory --metrics gc --criteria label_agreement,label_agreement(k=2) --json"
    commands = [["criteria"], ["audit", *target.split(), "--quiet"], ["audit", *target.split(), "--dry-run"]]
    listed, audited, estimated = run("-c", COMMANDS, json.dumps(commands)).strip().split("\n\n")
    assert re.search(r"label_agreement +most of the k most relevant training instances", listed)
    found = json.loads(audited)["outcomes"]
    assert [each["criterion"] for each in found] == ["label_agreement", "label_agreement(k=2)"]
    assert json.loads(estimated)["seconds"] > 0


def test_the_documentation_has_a_page_of_it(run) -> None:
    said = run("-c", PAGES, cwd=ROOT)
    assert "'criteria/label_agreement.md'" in said
    assert "| [`label_agreement`](label_agreement.md) | most of the k most relevant training instances" in said
    page = said.partition("# label_agreement")[2]
    assert "*Label agreement: most of the k most relevant training instances have the predicted class.*" in page
    assert "Higher is better." in page
    assert "| `k` | `5` | precedents |" in page

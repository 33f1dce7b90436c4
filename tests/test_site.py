"""The documentation site is built strictly, is whole, and asks for nothing from elsewhere."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import precedents
from benchmarks.side_by_side.notes import HERE, NOTES, mark
from precedents.criteria import CRITERIA
from precedents.metrics.features import FEATURES
from precedents.metrics.names import ALIASES, FORMS
from precedents.metrics.preconditioners import PRECONDITIONERS
from precedents.metrics.similarities import SIMILARITIES

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
FETCHED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"(?:https?:)?//[^\"]*\"|<link\b[^>]*\bhref=\"(?:https?:)?//"
)
STRICT = ["mkdocs", "build", "--strict"]  # and no "--quiet", with which no warning is counted
STYLED = re.compile(r"url\([\"']?(?:https?:)?//|@import [\"'](?:https?:)?//")


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The built site; a warning is an error, and so is any word to the network."""
    folder = tmp_path_factory.mktemp("site")
    paths = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": paths, "NO_MKDOCS_2_WARNING": "1"}
    for proxy in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        environment[proxy] = "http://127.0.0.1:9"  # where nobody answers
    command = [sys.executable, "-m", *STRICT, "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def text(site: Path, name: str) -> str:
    """What a reader sees of a page, without tags."""
    page = (site / name).read_text(encoding="utf-8")
    return re.sub(r"<[^>]+>", "", page.partition('<article class="md-content__inner')[2])


def test_make_builds_it_as_strictly() -> None:
    assert (ROOT / "Makefile").read_text(encoding="utf-8").count(f"/{' '.join(STRICT)}\n") == 1


def test_pages_ask_for_nothing_from_elsewhere(site) -> None:
    pages, styles = sorted(site.rglob("*.html")), sorted(site.rglob("*.css"))
    assert pages
    assert styles
    for page in pages:
        assert not FETCHED.findall(page.read_text(encoding="utf-8")), page
    for style in styles:
        assert not STYLED.findall(style.read_text(encoding="utf-8")), style


@pytest.mark.parametrize("name", FORMS)
def test_every_metric_has_a_page_with_its_formula_cost_and_failures(site, name) -> None:
    page = text(site, f"metrics/{name}.html")
    assert "R(z, z′) =" in page
    assert FORMS[name] in page
    for part in ("Cost.", "Meaning", "When it fails"):
        assert part in page
    for alias, known in ALIASES.items():
        assert (alias.upper() in page) or known != name
    assert name in text(site, "metrics/index.html")


def test_no_page_is_of_a_metric_or_criterion_that_is_not_there() -> None:
    written = {page.stem for page in (DOCS / "metrics").glob("[!_]*.md")}
    assert written == set(FORMS)
    assert {page.stem for page in (DOCS / "criteria").glob("[!_]*.md")} == set(CRITERIA.names())


@pytest.mark.parametrize("name", CRITERIA.names())
def test_every_criterion_has_a_page_with_its_settings(site, name) -> None:
    page = text(site, f"criteria/{name}.html")
    assert CRITERIA.meaning(name).partition(": ")[2] in page
    for setting in CRITERIA.get(name).__dataclass_fields__:
        assert setting in page


@pytest.mark.parametrize("axis", ["features", "preconditioners", "similarities"])
def test_every_part_has_a_place_on_its_page(site, axis) -> None:
    registry = {"features": FEATURES, "preconditioners": PRECONDITIONERS, "similarities": SIMILARITIES}[axis]
    page = (site / "parts" / f"{axis}.html").read_text(encoding="utf-8")
    for name in registry.names():
        assert f'id="{name}"' in page


def test_every_entry_of_the_navigation_has_a_title(site) -> None:
    for page in ("metrics/cos_grad.html", "criteria/identical_class.html", "parts/features.html"):
        entries = re.findall(
            r'<span class="md-ellipsis">\s*(.*?)\s*<', (site / page).read_text(encoding="utf-8")
        )
        assert {"Metrics", "Criteria", "Parts"} < set(entries)
        assert not {"", "None"} & set(entries)


def test_every_public_name_is_in_the_reference(site) -> None:
    page = text(site, "api.html")
    for name in precedents.__all__:
        assert name in page


def test_examples_and_decisions_are_pages(site) -> None:
    for folder, pattern in (("examples", "*.py"), ("docs/decisions", "*.md")):
        for file in (ROOT / folder).glob(pattern):
            assert (site / folder.removeprefix("docs/") / f"{file.stem}.html").exists()


def test_what_is_shown_of_other_libraries_was_run_as_it_stands(site) -> None:
    notes = json.loads(NOTES.read_text())
    files = {file.stem: mark(file) for file in HERE.glob("[!_]*.py") if file.stem != "notes"}
    assert {name: note["mark"] for name, note in notes.items()} == files, "python -m benchmarks.side_by_side"
    assert all("failed" not in note for note in notes.values())
    page = text(site, "peers.html")
    for name, note in notes.items():
        assert note["version"] in page
        assert (HERE / f"{name}.py").read_text().splitlines()[0] in page

"""The words by which the library is found, and the pages by which things are found in it, are true."""

import ast
import inspect
import io
import re
import sys
import tokenize
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import precedents

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # which pytest needs there

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "precedents"
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
MADE = ("docs/reproduction", "docs/benchmarks.md")  # pages that are made from records
PAGES = {
    name: path.read_text(encoding="utf-8")
    for path in [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))]
    if not (name := path.relative_to(ROOT).as_posix()).startswith(MADE)
}
TERMS = ["influence functions", "per-example gradients", "per-sample gradients", "training data attribution"]
LINES_A_MINUTE = 25
NOT_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def plain(text: str) -> str:
    """A page without its marks and line ends, in small letters."""
    return re.sub(r"\s+", " ", text.replace("*", "").replace("per-example (per-sample)", "per-sample")).lower()


def section(title: str) -> str:
    """A section of ARCHITECTURE.md."""
    return ARCHITECTURE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def table(text: str) -> list[list[str]]:
    """The cells of a page's table rows, without the heads."""
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows if not set(row[0]) <= set(" -:")]


def files(place: str) -> list[Path]:
    """A file of the package, or the files of a folder."""
    path = SOURCE / place
    return sorted(path.glob("[!_]*.py")) if place.endswith("/") else [path]


def defined(path: Path) -> set[str]:
    """What a file defines, members by their class too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            targets = [each.target for each in node.body if isinstance(each, ast.AnnAssign)]
            members = [each.name for each in node.body if isinstance(each, ast.FunctionDef)]
            members += [target.id for target in targets if isinstance(target, ast.Name)]
            found |= {f"{node.name}.{member}" for member in members}
    return found


def lines_of_code(path: Path) -> int:
    """Lines without blank ones, comments and docstrings."""
    source = path.read_text(encoding="utf-8")
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NOT_CODE:
            lines |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            and ast.get_docstring(node) is not None
        ):
            words = node.body[0]
            assert words.end_lineno is not None
            lines -= set(range(words.lineno, words.end_lineno + 1))
    return len(lines)


@pytest.mark.parametrize("term", TERMS)
def test_who_searches_by_the_usual_term_finds_the_library(term) -> None:
    stem = "per-sample" if term == "per-sample gradients" else term
    assert stem in plain(PAGES["README.md"]) or stem in plain(PAGES["docs/index.md"])
    assert any(stem in plain(page) for name, page in PAGES.items() if name.startswith("docs/"))
    assert term in PROJECT["keywords"]
    assert term in CITATION["keywords"]


@pytest.mark.parametrize(
    "term", ["attribution", "proponent", "influence functions", "training data attribution"]
)
def test_the_first_screens_of_the_readme_have_the_fields_words(term) -> None:
    assert term in plain(PAGES["README.md"].partition("\n## ")[0])


def test_the_metadata_are_true() -> None:
    assert "Typing :: Typed" in PROJECT["classifiers"]
    assert (SOURCE / "py.typed").exists()
    assert not [each for each in PROJECT["classifiers"] if each.startswith("License")]  # the licence says it
    for address in PROJECT["urls"].values():
        assert address in PAGES["README.md"]


def test_the_citation_is_whole_and_of_this_version() -> None:
    assert CITATION["cff-version"] == "1.2.0"
    assert {"message", "title", "authors", "type", "license", "date-released"} <= set(CITATION)
    assert CITATION["version"] == precedents.__version__
    assert CITATION["license"] == PROJECT["license"]
    (paper,) = CITATION["references"]
    assert paper["title"] == "Evaluation of Similarity-based Explanations"
    assert [author["family-names"] for author in paper["authors"]] == ["Hanawa", "Yokoi", "Hara", "Inui"]
    assert paper["url"] == PROJECT["urls"]["Paper"]


def test_the_changelog_begins_with_this_version_and_its_date() -> None:
    headings = re.findall(r"^## (.*)$", PAGES["CHANGELOG.md"], flags=re.MULTILINE)
    released = [each for each in headings if each != "Unreleased"]
    assert headings[:2] in (["Unreleased", released[0]], released[:2])
    assert released[0] == f"{precedents.__version__} ({CITATION['date-released']})"


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("precedent", ["proponent", "influential (training) example", "helpful example"]),
        ("relevance", ["attribution score", "influence", "data attribution"]),
        ("case", ["test example", "query"]),
        ("metric", ["attribution method"]),
        ("features", ["representation", "embedding"]),
        ("preconditioner", ["inverse hessian", "curvature"]),
        ("grad-dot", ["tracin at one checkpoint", "gradient similarity"]),
        ("grad-cos", ["gradient similarity"]),
        ("dot_if", ["influence functions (if)"]),
        ("cos_if", ["relative influence (rif)"]),
        ("dot_fisher", ["fisher kernel"]),
        ("per-example gradients", ["per-sample gradients"]),
        ("factored gradients", ["ghost products"]),
        ("gauss-newton", ["ggn"]),
        ("ek-fac", ["kronecker-factored"]),
        ("criterion", ["sanity check", "evaluation test"]),
        ("hub", ["neighbours"]),
        ("caution", ["warning"]),
        ("subject", []),
        ("workspace", ["cache"]),
        ("self-relevance", ["self-influence", "memorization"]),
        ("shares", ["token-wise"]),
        ("contrast", ["contrastive explanation"]),
        ("group", ["slice"]),
        ("near duplicate", ["leak"]),
        ("codes", ["sketch"]),
        ("index", ["gradient store"]),
        ("engine", ["backend", "executor"]),
        ("run", ["checkpoint"]),
        ("ledger", ["checkpoint"]),
    ],
)
def test_the_glossary_has_our_word_beside_the_fields(ours, theirs) -> None:
    rows = [row for row in table(PAGES["docs/glossary.md"].lower()) if re.search(rf"\b{ours}\b", row[0])]
    assert rows
    assert any(all(word in row[1] for word in theirs) and len(row[2]) > 20 for row in rows)


def test_the_glossary_has_each_of_our_words_once() -> None:
    words = [row[0] for row in table(PAGES["docs/glossary.md"]) if row[0] != "our word"]
    assert len(words) == len(set(words)) > 40
    theirs = [word for row in table(PAGES["docs/glossary.md"]) for word in row[1].split(", ")]
    assert theirs.count("self-influence") == 1  # two rows had it


def test_the_glossary_says_what_the_field_calls_it_all() -> None:
    for term in ("training data attribution", "training data influence"):
        assert term in plain(PAGES["docs/glossary.md"])


def test_the_audit_of_the_first_page_is_printed_once() -> None:
    assert sum(page.count("cos_x      1.000!   1.000!") for page in PAGES.values()) == 1


@pytest.mark.parametrize("name", sorted(set(PAGES) - {"CONTRIBUTING.md"}))  # which tells what to add
def test_every_file_that_a_page_names_is_there(name) -> None:
    for path in re.findall(r"`(\w+(?:/\w+)*/\w+\.(?:py|md))`", PAGES[name]):
        there = any((root / path).exists() for root in (ROOT, ROOT / "src", SOURCE))
        assert there or path == "adapters/voters.py", path  # which the extender's guide invents


def test_the_page_of_benchmarks_has_the_steps_of_make_bench_and_every_file() -> None:
    page = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    bench = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\nbench:")[2].partition("\n\n")[0]
    steps = re.findall(r"-m (benchmarks\.\w+)", page.partition("```sh\npython")[2].partition("```")[0])
    assert re.findall(r"-m (benchmarks\.\w+)", bench) == steps
    assert len(steps) > 5
    folder = ROOT / "benchmarks"
    own = {f"`{path.name}/`" for path in folder.iterdir() if (path / "__init__.py").exists()}
    own |= {f"`{path.name}`" for path in folder.glob("[!_]*.py")}
    assert [name for name in sorted(own) if name not in page] == []


def test_the_rooms_are_those_of_the_package_in_the_order_of_imports() -> None:
    rooms = [row[0].strip("`/") for row in table(section("The rooms"))[1:]]
    (contract,) = PYPROJECT["tool"]["importlinter"]["contracts"]
    layers = [layer.split(" | ") for layer in contract["layers"]]
    folders = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert folders <= set(rooms)
    depth = {room: i for i, layer in enumerate(layers) for room in layer}
    assert [depth[room] for room in rooms] == sorted(depth[room] for room in rooms)


def test_the_rooms_have_the_files_that_are_named() -> None:
    for room, _, named in table(section("The rooms"))[1:]:
        for name in re.findall(r"`([\w/]+)`", named):
            place = SOURCE / room.strip("`/") / name
            assert place.is_dir() or place.with_suffix(".py").exists(), place


def test_every_file_of_a_room_is_named() -> None:
    left = {"cli": "*", "criteria": "[!_]*"}  # where a part is a file, that is found by its name
    for room, _, named in table(section("The rooms"))[1:]:
        folder = SOURCE / room.strip("`/")
        there, parts = folder.glob("*.py"), folder.glob(left.get(folder.name, "__init__") + ".py")
        missing = {path.stem for path in there} - {path.stem for path in parts} - {"__init__"}
        assert sorted(missing - set(re.findall(r"`(\w+)`", named))) == [], room


def test_reading_takes_as_long_as_the_page_says_to_a_minute() -> None:
    rows = table(section("Reading the heart"))[1:]
    assert len(rows) > 8
    assert f"{sum(int(minutes) for _, minutes, _ in rows)} minutes in all" in section("Reading the heart")
    for place, minutes, _ in rows:
        lines = sum(map(lines_of_code, files(place.strip("`"))))
        assert abs(int(minutes) - -(-lines // LINES_A_MINUTE)) <= 1, (place, lines)


def test_the_picture_of_a_call_names_what_is_there() -> None:
    steps = section("One `explain` call").partition("```\n")[2].partition("```")[0].splitlines()
    assert len(steps) > 15
    for step in steps:
        first, *others = step.split("  ")[-1].strip().split(", ")
        places = [first, *(f"{Path(first).parent.as_posix()}/{other}" for other in others)]
        found = {name for place in places for path in files(place) for name in defined(path)}
        assert found
        symbol = re.match(r"[│├└─ ]*([A-Z]\w+(?:\.\w+)?)", step)
        if symbol is not None and not first.endswith("/"):
            assert symbol[1] in found, step


def test_what_is_looked_for_is_where_the_page_says() -> None:
    rows = table(section("Where is ...?"))[1:]
    assert len(rows) > 12
    for _, answer in rows:
        answers = re.findall(r"`([\w/]+\.py)`((?:(?::|,| and) `[\w.]+`)*)", answer)
        assert answers
        for place, symbols in answers:
            assert set(re.findall(r"`([\w.]+)`", symbols)) <= defined(SOURCE / place), place


def own_functions(name: str) -> list[tuple[str, Callable[..., Any]]]:
    """A public function, or the public methods that a public class has of its own, by what they are called."""
    value = getattr(precedents, name)
    if not inspect.isclass(value):
        return [(name, value)] if inspect.isfunction(value) else []
    own = [
        (key, getattr(each, "__func__", each)) for key, each in vars(value).items() if not key.startswith("_")
    ]
    return [
        (f"{name}.{key}", each) for key, each in own if inspect.isfunction(each) and each.__name__ != "<lambda>"
    ]


FUNCTIONS = [each for name in precedents.__all__ for each in own_functions(name)]
GATHERED = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def test_there_are_public_functions() -> None:
    assert {"audit", "Explainer.explain", "Metric.fit", "Inverse.solve"} <= {name for name, _ in FUNCTIONS}


@pytest.mark.parametrize(("name", "function"), FUNCTIONS, ids=[name for name, _ in FUNCTIONS])
def test_a_public_function_says_what_each_of_its_arguments_is(name, function) -> None:
    said = inspect.getdoc(function) or ""
    own = [each for each in inspect.signature(function).parameters.values() if each.kind not in GATHERED]
    asked = [each.name.lstrip("_") for each in own if each.name not in ("self", "cls")]
    assert [argument for argument in asked if not re.search(rf"\b{argument}\b", said)] == []

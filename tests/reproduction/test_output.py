"""The pages of the reproduction from records, hostile labels among them; the index in a real Chromium."""

import json
import re
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from precedents.metrics.paper import METRICS
from precedents.reproduction.comparison import compare
from precedents.reproduction.examples import gallery
from precedents.reproduction.figures import DAMPED, DAMPING
from precedents.reproduction.output import comparison_files, figure_files
from precedents.reproduction.results import costs, read_results
from precedents.views.pages import html
from reproduction import recorded

SECTIONS = [
    "Overview",
    "Model randomization",
    "Success rates",
    "Norms of the chosen instances",
    "Most often chosen instances",
    "Residuals",
    "Merged classes",
    "Stability",
    "Damping",
    "Cost",
    "Examples",
    "Tables and comparison",
    "How it was run",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Records of a setting and all files made of them."""
    out = tmp_path_factory.mktemp("pages")
    found = read_results(recorded.write(out / "records", ("mnist/cnn",)))
    for name, text in figure_files(found, costs(out / "records")):
        (out / name).write_text(text, encoding="utf-8")
    return out


def test_the_index_shows_every_figure_and_links_every_file(folder) -> None:
    index = (folder / "index.html").read_text(encoding="utf-8")
    assert re.findall(r"<h2[^>]*>(.*?)</h2>", index) == SECTIONS
    files = {file.name for file in folder.iterdir() if file.is_file()}
    shown, linked = (set(re.findall(rf'{a}="([^"#]+)"', index)) for a in ("src", "href"))
    assert shown == {name for name in files if name.endswith(".svg")}
    assert linked == files - {"index.html"}


def test_every_figure_is_a_picture_with_text(folder) -> None:
    for file in folder.glob("*.svg"):
        root = ElementTree.fromstring(file.read_text(encoding="utf-8"))
        assert list(root.iter("{http://www.w3.org/2000/svg}text")), file


def test_labels_and_texts_of_the_records_are_escaped(folder) -> None:
    for file in [*folder.glob("*.html"), *folder.glob("*.svg"), *folder.glob("*.md")]:
        assert "<script" not in file.read_text(encoding="utf-8"), file
    assert "&lt;script&gt;" in (folder / "examples.html").read_text(encoding="utf-8")


def test_what_is_no_image_is_not_shown_as_one(tmp_path) -> None:
    lines = recorded.lines("mnist/cnn")
    lines[-1]["value"]["cases"][0]["shown"] = {"png": 'x" onerror="alert(1)'}
    recorded.written(tmp_path, "mnist/cnn", lines)
    page = html(gallery(read_results(tmp_path)))
    assert "data:image/png" in page
    assert "onerror" not in page


def test_a_header_alone_has_nothing_to_draw_and_all_cells_missing(tmp_path) -> None:
    recorded.written(tmp_path, "mnist/cnn", [recorded.header("mnist/cnn")])
    files = dict(figure_files(read_results(tmp_path), []))
    assert not [name for name in files if name.endswith(".svg")]
    assert "90 more have no number of ours" in files["index.html"]


def test_what_has_no_meaning_for_a_model_is_left_out(tmp_path) -> None:
    empty = [["umap"], ["hubs", "dot_if"], ["stability", "cos_last"]]
    lines = [recorded.record(0, piece, {}) for piece in empty]
    lines.append(recorded.record(0, ["norms", "gradient/hessian"], {"all": [], "chosen": {}}))
    recorded.written(tmp_path, "mnist/cnn", [recorded.header("mnist/cnn"), *lines])
    assert "index.html" in dict(figure_files(read_results(tmp_path), []))


def test_the_comparison_has_every_cell(folder, tmp_path) -> None:
    found = read_results(folder / "records")
    files = comparison_files(compare(found), found)
    assert len(files["comparison.csv"].splitlines()) == 91
    assert files["comparison.csv"] == (folder / "comparison.csv").read_text(encoding="utf-8")
    assert "dot:gradient/hessian(damping=1e-06)" in files["comparison.csv"]


def test_the_damping_of_the_tables_is_the_metrics_own() -> None:
    assert {METRICS[name].preconditioner.damping for name in ("dot_if", "cos_if", "dot_fisher")} == {DAMPING}


@pytest.mark.parametrize(
    ("form", "metric"),
    [
        ("dot:gradient/hessian(negative=keep, damping=1e-07)", "dot:gradient/hessian"),
        ("dot:gradient/fisher(damping=0.1)", "dot:gradient/fisher"),
        ("dot:gradient/fisher(kind=mean_gradient, damping=1e-10)", None),
        ("dot:gradient/hessian", None),
    ],
)
def test_variants_that_differ_in_damping_alone_are_points_of_a_curve(form, metric) -> None:
    found = DAMPED.fullmatch(form)
    assert (found and found["metric"]) == metric


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", ["index.html", "examples.html", "comparison.html", "tables.html"])
def test_the_pages_show_in_a_browser_without_a_word(folder, browser, name, width) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme="dark")
    page, said = context.new_page(), []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    page.goto((folder / name).as_uri())
    page.evaluate("for (const image of document.images) image.loading = 'eager'")
    page.wait_for_function("[...document.images].every(i => i.complete)")
    assert page.evaluate("[...document.images].every(i => i.naturalWidth > 0)")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert said == []
    context.close()


LIGHT = """
import json, sys
from precedents.cli._main import main
codes = [main(["reproduction", *command]) for command in json.loads(sys.argv[1])]
print(codes, "torch" in sys.modules)
"""


def test_no_command_needs_torch_before_it_correlates_ranks(tmp_path) -> None:
    lines = [recorded.outcome(0, "cos_grad", criterion, 0.5) for criterion in recorded.CRITERIA]
    recorded.written(tmp_path / "records", "mnist/cnn", [recorded.header("mnist/cnn"), *lines])
    records = ["--records", str(tmp_path / "records"), "--quiet"]
    commands = [
        ["table", "--test", "identical_class", *records],
        ["compare", "--json", *records],
        ["figures", *records, "--out", str(tmp_path / "out")],
    ]
    command = [sys.executable, "-c", LIGHT, json.dumps(commands)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout.splitlines()[-1] == "[0, 0, 0] False"

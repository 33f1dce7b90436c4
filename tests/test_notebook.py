"""The notebook in examples/ runs and shows what it has kept, readable in a browser: light, dark, large, small.

`python tests/test_notebook.py` runs it and keeps what it shows.
"""

import re
import subprocess
import sys
from base64 import b64decode
from io import BytesIO
from pathlib import Path

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe

FILE = Path(__file__).parent.parent / "examples" / "digits.ipynb"
THEMES = {"light": ("#ffffff", "#1f1f1f"), "dark": ("#111111", "#e8e8e8")}
MEASURED = re.compile(r"(seconds=[\d.e-]+|[\d.,]+ ?(ms|s|min|h|kB|MB|GB|KiB|MiB|GiB)\b ?)+")
NUMBER = re.compile(r"\s*[-+−]?\d+\.\d+(?:e[-+]?\d+)?")  # also with the spaces by which columns are lined up
SLOW = """
from time import sleep
from precedents.runtime.progress import tracked
for _ in tracked(range(4), "digging", patience=0.1):
    sleep(0.3)
"""


RUN = """
import sys
import nbformat
from jupyter_client import KernelManager
from jupyter_client.kernelspec import KernelSpec
from nbclient import NotebookClient

class Kernel(KernelManager):  # of this very Python, wherever others are installed
    @property
    def kernel_spec(self):
        command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        return KernelSpec(argv=command, display_name="tests", language="python")

source, target, *more = sys.argv[1:]
notebook = nbformat.read(source, as_version=4)
notebook.cells += [nbformat.v4.new_code_cell(each) for each in more]
NotebookClient(notebook, timeout=120, km=Kernel()).execute()
nbformat.validate(notebook)
nbformat.write(notebook, target)
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory) -> Path:
    """The notebook after a run, with one more cell of slow work; errors of a cell are raised."""
    target = tmp_path_factory.mktemp("notebook") / "run.ipynb"
    run(target, SLOW)
    return target


@pytest.fixture(scope="module")
def outputs(ran) -> list[dict]:
    """What each of its cells shows."""
    return shown_by(ran)


def run(target: Path, *more: str) -> None:
    """Writes the notebook as it is after a run, with more cells at its end."""
    command = (sys.executable, "-c", RUN, str(FILE), str(target), *more)
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr[-3000:]


def shown_by(file: Path) -> list[dict]:
    """What each of its cells of code shows, without bars of progress that are gone."""
    cells = (cell for cell in nbformat.read(file, as_version=4).cells if cell.cell_type == "code")
    return [[each for each in cell.outputs if each.get("data", {}).get("text/html") != ""] for cell in cells]


def shown(outputs, kind: str) -> list[str]:
    return [each.data[kind] for cell in outputs for each in cell if kind in each.get("data", {})]


def test_every_value_shows_itself(outputs) -> None:
    assert len(shown(outputs, "image/png")) == 2  # both plots, without magic
    pages = shown(outputs, "text/html")
    for part in ("in truth", "of which", "of memory", "identical<br>class", "cos_grad", "95% interval"):
        assert any(part in page for page in pages), part
    said = [each for cell in outputs for each in cell if each.output_type == "stream"]
    assert said == []


def test_slow_work_has_a_bar_below_its_cell_which_is_gone_afterwards(ran) -> None:
    *_, last = nbformat.read(ran, as_version=4).cells
    assert [each.data["text/html"] for each in last.outputs] == [""]


def page(outputs, theme: str) -> str:
    """What the cells show on the ground of a notebook."""
    ground, ink = THEMES[theme]
    parts = [
        f"<img alt='plot' src='data:image/png;base64,{each.data['image/png']}' style='max-width:100%'>"
        if "image/png" in each.data
        else each.data["text/html"]
        for cell in outputs
        for each in cell
        if each.output_type in ("execute_result", "display_data")
        and {"image/png", "text/html"} & set(each.data)
    ]
    style = f"body{{margin:8px;background:{ground};color:{ink};font:14px sans-serif}}"
    head = "<meta charset='utf-8'><meta name='viewport' content='width=device-width'><title>notebook</title>"
    body = "".join(f"<div>{part}</div>" for part in parts)
    head += f"<style>{style}</style>"
    return f"<!doctype html><html lang='en'><head>{head}</head><main><h1>n</h1>{body}</main></html>"


@pytest.mark.parametrize("width", [1200, 390])
@pytest.mark.parametrize("theme", THEMES)
def test_what_it_shows_is_readable(browser, outputs, tmp_path, theme, width) -> None:
    file = tmp_path / "notebook.html"
    file.write_text(page(outputs, theme), encoding="utf-8")
    context = browser.new_context(viewport={"width": width, "height": 900})
    try:
        visit, said = context.new_page(), []
        visit.on("console", lambda message: said.append(message.text))
        visit.goto(file.as_uri())
        assert said == []
        assert visit.evaluate("document.documentElement.scrollWidth <= innerWidth")
        found = Axe().run(visit)
        assert found.violations_count == 0, found.generate_report()
    finally:
        context.close()


def test_what_is_kept_in_the_file_is_what_a_run_shows(outputs) -> None:
    kept = shown_by(FILE)
    assert len(kept) == len(outputs) - 1
    for here, there in zip(kept, outputs, strict=False):
        assert [each.output_type for each in here] == [each.output_type for each in there]
        for own, other in zip(here, there, strict=True):
            assert list(own.data) == list(other.data)
            assert all(same(kind, own.data[kind], other.data[kind]) for kind in own.data)


def same(kind: str, one: str, other: str) -> bool:
    """Whether texts are the same but for rounding and what was measured, and pictures but for fine lines."""
    if kind != "image/png":
        one, other = MEASURED.sub("", one), MEASURED.sub("", other)
        numbers = [[float(each.replace("−", "-")) for each in NUMBER.findall(text)] for text in (one, other)]
        return NUMBER.split(one) == NUMBER.split(other) and numbers[0] == pytest.approx(numbers[1], abs=2e-3)
    left, right = (plt.imread(BytesIO(b64decode(each))) for each in (one, other))
    return left.shape == right.shape and float(np.abs(left - right).mean()) < 0.02


def test_the_file_is_small_and_has_no_paths() -> None:
    text = FILE.read_text(encoding="utf-8")
    assert len(text) < 300_000
    assert not re.search(r"/(home|root|work|tmp)/", text)


def keep() -> None:
    """Runs the notebook and keeps what it shows, and nothing of when and where that was."""
    before = nbformat.read(FILE, as_version=4)
    run(FILE)
    notebook = nbformat.read(FILE, as_version=4)
    notebook.metadata = before.metadata
    for cell, old in zip(notebook.cells, before.cells, strict=True):
        cell.id, cell.metadata = old.id, old.metadata
    nbformat.write(notebook, FILE)


if __name__ == "__main__":
    keep()

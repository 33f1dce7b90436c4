"""The code blocks of the README and of the site's pages run, and print what the pages say that they print."""

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest
import torch

ROOT = Path(__file__).parent.parent
START = ROOT / "docs" / "start.md"
BLOCK = re.compile(r"```python\n(.*?)```(?:\s*```text\n(.*?)```)?", re.DOTALL)
PAGES = [
    page for page in sorted((ROOT / "docs").rglob("*.md")) if "```python\n" in page.read_text(encoding="utf-8")
]


def check(page: Path, names: dict[str, Any]) -> dict[str, Any]:
    """Runs the page's blocks one after the other; each prints what the page says of it."""
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    assert blocks
    for code, said in blocks:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code, str(page), "exec"), names)
        assert out.getvalue().strip() == said.strip()
    return names


@pytest.fixture(scope="module")
def start() -> dict[str, Any]:
    """What the first page leaves to those that go on from it."""
    with torch.random.fork_rng(devices=[]):
        return check(START, {})


def test_blocks_of_the_readme_print_what_it_says() -> None:
    check(ROOT / "README.md", {})


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page != START], ids=lambda page: str(page.relative_to(ROOT))
)
def test_blocks_print_what_the_page_says(page, start) -> None:
    assert "start.md" in page.read_text(encoding="utf-8")
    check(page, dict(start))

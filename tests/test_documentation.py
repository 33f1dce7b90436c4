"""The README's and CONTRIBUTING's code blocks run, and print what the pages say that they print."""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"```python\n(.*?)```(?:\s*```text\n(.*?)```)?", re.DOTALL)


def printed(page: Path) -> list[tuple[str, str]]:
    """What the page's blocks print when run one after the other, beside what it says of it."""
    names: dict[str, object] = {}
    pairs = []
    for code, said in BLOCK.findall(page.read_text(encoding="utf-8")):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code, str(page), "exec"), names)
        pairs.append((out.getvalue(), said))
    return pairs


@pytest.mark.parametrize("name", ["README.md"])
def test_blocks_print_what_the_page_says(name: str) -> None:
    pairs = printed(ROOT / name)
    assert pairs
    for out, said in pairs:
        assert out.strip() == said.strip()

"""The README's code blocks run, and print what the page says that they print."""

import contextlib
import io
import re
from pathlib import Path

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


def test_blocks_print_what_the_page_says() -> None:
    pairs = printed(ROOT / "README.md")
    assert pairs
    for out, said in pairs:
        assert out.strip() == said.strip()

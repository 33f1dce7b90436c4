"""Pictures for the documentation: `python docs/pictures.py` (minutes; a Chromium is needed).

`docs/images/report.png` is the top of what `precedents audit runs/digits-cnn --report report.html` writes, and
`docs/images/shortcut.png` what `examples/shortcut.py` finds.
"""

import argparse
import sys
from pathlib import Path
from runpy import run_path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

from precedents.cli._main import main as command
from precedents.views.gallery import figure

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))
import chromium  # noqa: E402  the browser of the tests

SIZE = {"width": 1200, "height": 900}


def report(folder: Path) -> Path:
    """The report on the CNN of the digits, trained and audited here."""
    run, page = folder / "runs" / "digits-cnn", folder / "report.html"
    for arguments in (
        ["train", "--dataset", "digits", "--model", "cnn", "--out", str(run)],
        ["audit", str(run), "--report", str(page)],
    ):
        if command(arguments) != 0:
            raise SystemExit(" ".join(arguments))
    return page


def photographed(page: Path, out: Path) -> None:
    """The top of a page on disk."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium.found(), args=list(chromium.FLAGS))
        opened = browser.new_page(viewport=SIZE)
        opened.goto(page.absolute().as_uri())
        opened.screenshot(path=out)
        browser.close()


def shortcut(out: Path) -> None:
    """The two largest groups of cases that the patch of the example turns."""
    made = run_path(str(HERE.parent / "examples" / "shortcut.py"))
    title = f"Digits that a patch turns into a {made['STAMPED']}, and what their precedents share"
    figure(made["groups"].strips()[:2], title).savefig(out, dpi=130)


def main() -> None:
    """Makes the pictures; `--page` takes one that is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", type=Path, help="a report that was written before")
    given = parser.parse_args()
    shortcut(HERE / "images" / "shortcut.png")
    with TemporaryDirectory() as folder:
        photographed(given.page or report(Path(folder)), HERE / "images" / "report.png")


if __name__ == "__main__":
    main()

"""Pictures of pages, for the documentation: `python docs/pictures.py` (minutes; a Chromium is needed).

`docs/images/report.png` is the top of what `precedents audit runs/digits-cnn --report report.html` writes.
"""

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

from precedents.cli._main import main as command

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


def main() -> None:
    """Makes the pictures; `--page` takes one that is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", type=Path, help="a report that was written before")
    given = parser.parse_args()
    with TemporaryDirectory() as folder:
        photographed(given.page or report(Path(folder)), HERE / "images" / "report.png")


if __name__ == "__main__":
    main()

"""Pictures for the documentation: `python docs/pictures.py` (minutes; a Chromium is needed).

`docs/images/report.png` is the top of what `precedents audit runs/digits-cnn --report report.html` writes;
`docs/images/explorer*.png` are pages of `precedents explore` of the same run;
`docs/images/shortcut.png` is what `examples/shortcut.py` finds.
"""

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from runpy import run_path
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser, sync_playwright

from precedents.cli._main import main as command
from precedents.views.gallery import figure

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))
import chromium  # noqa: E402  the browser of the tests

SIZE = {"width": 1200, "height": 900}
REPORT = {"width": 1200, "height": 1350}  # down to the first rows of the table
PAGES = {"explorer": "cases", "explorer-case": "cases?list=sure", "explorer-map": "map"}  # by picture


def trained(folder: Path) -> Path:
    """The CNN of the digits, trained and audited here."""
    run = folder / "runs" / "digits-cnn"
    for arguments in (
        ["train", "--dataset", "digits", "--model", "cnn", "--out", str(run)],
        ["audit", str(run), "--report", str(folder / "report.html")],
    ):
        if command(arguments) != 0:
            raise SystemExit(" ".join(arguments))
    return run


@contextmanager
def explored(run: Path) -> Iterator[str]:
    """The address of the explorer of a run, in a process of its own."""
    words = [sys.executable, "-m", "precedents", "explore", str(run), "--no-browser", "--quiet"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=os.environ) as process:  # noqa: S603
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.send_signal(signal.SIGINT)


def photographed(browser: Browser, page: Path, out: Path) -> None:
    """The top of a page on disk."""
    opened = browser.new_page(viewport=REPORT)
    opened.goto(page.absolute().as_uri())
    opened.screenshot(path=out)


def walked(browser: Browser, address: str) -> None:
    """Pages of an explorer, when everything on them is computed."""
    opened = browser.new_page(viewport=SIZE)
    opened.set_default_timeout(300_000)
    opened.goto(address)
    base = opened.url.removesuffix("cases")
    opened.goto(f"{base}audit")
    opened.locator(".verdicts").wait_for()
    for name, path in PAGES.items():
        opened.goto(f"{base}{path}")
        if name == "explorer-case":
            opened.locator(".caselist .one a").first.click()
        opened.locator("[data-waiting], [data-awaits]").first.wait_for(state="detached")
        if name == "explorer-map":
            opened.locator("#map[data-drawn]").wait_for()
        opened.screenshot(path=HERE / "images" / f"{name}.png")


def shortcut(out: Path) -> None:
    """The two largest groups of cases that the patch of the example turns."""
    made = run_path(str(HERE.parent / "examples" / "shortcut.py"))
    title = f"Digits that a patch turns into a {made['STAMPED']}, and what their precedents share"
    figure(made["groups"].strips()[:2], title).savefig(out, dpi=130)


def main() -> None:
    """Makes the pictures; `--run` takes a run that was audited before, and leaves the report as it is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, help="a run that was audited before")
    given = parser.parse_args()
    shortcut(HERE / "images" / "shortcut.png")
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        run = given.run or trained(Path(folder))
        browser = playwright.chromium.launch(executable_path=chromium.found(), args=list(chromium.FLAGS))
        if given.run is None:
            photographed(browser, Path(folder) / "report.html", HERE / "images" / "report.png")
        with explored(run) as address:
            walked(browser, address)
        browser.close()


if __name__ == "__main__":
    main()

"""The browser of the tests: one that is there, or Debian's package where it can be installed.

`python tests/chromium.py` is what `make setup` runs.
"""

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
ADVICE = "No Chromium was found: install it (Debian: apt-get install chromium), or set CHROMIUM to its path."


def found() -> str | None:
    """The path of a Chromium, the one in the variable CHROMIUM first."""
    names = (os.environ["CHROMIUM"],) if os.environ.get("CHROMIUM") else NAMES
    return next(filter(None, map(shutil.which, names)), None)


def install() -> None:
    """Debian's package, with a font; a failure is said by what is still missing afterwards."""
    quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    packages = ("chromium", "fonts-dejavu-core")
    for command in (("update",), ("install", "--yes", "--no-install-recommends", *packages)):
        subprocess.run(("apt-get", "--quiet", "--quiet", *command), env=quiet, check=False)


def main() -> int:
    """Whether there is a browser now."""
    given = os.environ.get("CHROMIUM")
    if found() is None and not given and shutil.which("apt-get") and os.geteuid() == 0:
        install()
    sys.stderr.write("" if found() else f"{ADVICE}\n")
    return 0 if found() else 1


if __name__ == "__main__":
    sys.exit(main())

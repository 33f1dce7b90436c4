"""The environments that the peers run in, one for each package, apart from that of the project."""

import subprocess
import sys
from pathlib import Path

from rich.console import Console

from benchmarks.machine import plain
from benchmarks.peers import PEERS, Peer

HERE = Path(__file__).parent
CONSTRAINTS = HERE.parent / "constraints.txt"
OURS = ("torch", "numpy", "psutil", "rich", "matplotlib", "pandas")  # what precedents itself needs


class NotInstalledError(Exception):
    """A peer's environment cannot be made; says why."""


def interpreter(peer: Peer) -> Path:
    """The Python of the peer's environment, which is made if it is not there."""
    folder = HERE / ".peers" / peer.package
    python, ready = folder / "bin" / "python", folder / "ready"
    recipe = "\n".join((*OURS, *peer.needs, *peer.alone))
    if ready.exists() and ready.read_text() == recipe:
        return python
    ready.unlink(missing_ok=True)
    run(sys.executable, "-m", "venv", "--clear", str(folder))
    run(str(python), "-m", "pip", "install", "-c", str(CONSTRAINTS), *OURS, *peer.needs)
    if peer.alone:
        run(str(python), "-m", "pip", "install", "-c", str(CONSTRAINTS), "--no-deps", *peer.alone)
    ready.write_text(recipe)
    return python


def run(*command: str) -> None:
    """A command that has to succeed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or [done.stderr]
        raise NotInstalledError(plain(said[-1]))


def main() -> None:
    """Makes all of them."""
    console = Console(highlight=False)
    for peer in {peer.package: peer for peer in PEERS.values()}.values():
        console.print(f"{peer.package}: {state(peer)}", markup=False)


def state(peer: Peer) -> str:
    """`ready`, or why it cannot be."""
    try:
        interpreter(peer)
    except NotInstalledError as error:
        return f"not installed: {error}"
    return "ready"


if __name__ == "__main__":
    main()

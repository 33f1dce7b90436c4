"""What a number was measured on: processor, threads, memory, versions; and the process's own peak memory."""

import os
import platform
import re
import resource
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil
import torch

import precedents


def here() -> tuple[dict[str, Any], dict[str, str]]:
    """The machine and the versions."""
    machine = {
        "processor": processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "memory_gigabytes": round(psutil.virtual_memory().total / 2**30),
        "system": platform.system(),
    }
    versions = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": version("numpy"),
        "precedents": precedents.__version__,
    }
    return machine, versions


def processor() -> str:
    """Its name, as the system tells it."""
    listing = Path("/proc/cpuinfo")
    if listing.exists():
        found = re.search(r"^model name\s*:\s*(.+)$", listing.read_text(), flags=re.MULTILINE)
        if found:
            return found[1]
    return platform.processor() or platform.machine()


def _told(field: str) -> float | None:
    """What Linux says of this process's memory, in megabytes; nothing elsewhere."""
    status = Path("/proc/self/status")
    found = re.search(rf"^{field}:\s*(\d+) kB$", status.read_text(), re.MULTILINE) if status.exists() else None
    return None if found is None else int(found[1]) / 2**10


def held_megabytes() -> float:
    """The memory that this process holds."""
    return _told("VmRSS") or 0.0


def peak_megabytes() -> float:
    """The most memory this process has held.

    Linux counts it in `VmHWM`. Its `ru_maxrss` would also count what the parent held when it started this
    process, which is why that is asked only where there is nothing else.
    """
    found = _told("VmHWM")
    if found is not None:
        return found
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def plain(message: str, most: int = 160) -> str:
    """The first line of an error's message, without the places of files."""
    line = next((line.strip() for line in message.splitlines() if line.strip()), "")
    return re.sub(r"(?:\w+://|(?<![\w.]))/?[\w.~-]*(?:/[\w.~-]+){2,}/?", "...", line)[:most]

"""A Ray cluster of two nodes, one of which is killed in the middle of a run: the same bytes must come out.

`python -m benchmarks.cluster`, or `make cluster`. Half a minute; what is written is in a temporary folder.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from precedents.runtime.atomic import write
from precedents.runtime.engines._find import engine_of

TASKS, SECONDS = 24, 0.5  # how many, and how long each takes at least
EARLY = 6  # tasks that are done when the node is killed
HEALTH = {  # how soon the head notices that a node is gone
    "health_check_initial_delay_ms": 500,
    "health_check_period_ms": 500,
    "health_check_timeout_ms": 500,
    "health_check_failure_threshold": 2,
}


def shard(folder: Path, number: int) -> str:
    """A file of numbers that follow from its own; its checksum."""
    import torch

    time.sleep(SECONDS)
    rows = torch.randn(200, 50, generator=torch.Generator().manual_seed(number))
    content = (rows @ rows.T).numpy().tobytes()
    write(folder / f"{number}.bin", content)
    return blake2b(content).hexdigest()


@contextmanager
def two_nodes() -> Iterator[tuple[Any, Any]]:
    """A cluster whose head computes nothing, and one of its two nodes."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 0, "include_dashboard": False, "_system_config": HEALTH}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        victim = cluster.add_node(num_cpus=1)
        cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        yield cluster, victim
    finally:
        cluster.shutdown()


def survived(folder: Path) -> tuple[dict[int, str], float]:
    """The checksums of all tasks by a cluster that loses a node, and the seconds after that."""
    with two_nodes() as (cluster, victim):
        found: dict[int, str] = {}
        began = time.monotonic()
        for number, mark in engine_of("ray", address=cluster.address).run(partial(shard, folder), range(TASKS)):
            found[number] = mark
            if len(found) == EARLY:
                cluster.remove_node(victim, allow_graceful=False)
                began = time.monotonic()
        return found, time.monotonic() - began


def files(folder: Path) -> dict[str, bytes]:
    """The bytes of all files by their names."""
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def main() -> None:
    """Compares the run with one in this process."""
    with TemporaryDirectory() as one, TemporaryDirectory() as other:
        began = time.monotonic()
        found, after = survived(Path(one))
        took = time.monotonic() - began
        expected = dict(engine_of("serial").run(partial(shard, Path(other)), range(TASKS)))
        assert found == expected, "other results"
        assert files(Path(one)) == files(Path(other)), "other files"
    told = f"{TASKS} tasks, a node killed after {EARLY}: the same bytes"
    print(f"{told}; {after:.0f} s later, {took:.0f} s in all")  # noqa: T201


if __name__ == "__main__":
    main()

"""A Ray cluster of two nodes, one of which is killed while it builds an index: the same bytes must come out.

`python -m benchmarks.cluster --out benchmarks/results`, or `make cluster`. Half a minute, in temporary folders.
"""

import argparse
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

import torch
from torch import nn

from benchmarks.index.works import Bytes, augmented, resnet
from benchmarks.machine import here
from benchmarks.process import ROOT
from benchmarks.records import Record, Records, now
from precedents import Index
from precedents.index.shards import FOLDER
from precedents.runtime.engines._engine import Engine
from precedents.runtime.engines._find import engine_of

ROWS, SHARDS = 4096, 32
EARLY = 6  # shards that are there when the node is killed
HEALTH = {  # how soon the head notices that a node is gone
    "health_check_initial_delay_ms": 500,
    "health_check_period_ms": 500,
    "health_check_timeout_ms": 500,
    "health_check_failure_threshold": 2,
}


def build(folder: Path, engine: str | Engine) -> None:
    """An index of drawn images under a ResNet of drawn weights."""
    torch.manual_seed(0)
    model, train = nn.Sequential(Bytes(), resnet()).eval(), augmented(ROWS, 28)
    Index.build(model, train, folder, engine=engine, memory="1 GB", rows=ROWS // SHARDS)


@contextmanager
def two_nodes() -> Iterator[tuple[Any, Any]]:
    """A cluster whose head computes nothing, and one of its two nodes."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
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


def survived(folder: Path) -> Record:
    """What is there when a node is killed, and the seconds after that until the index is complete."""
    found: Record = {}
    with two_nodes() as (cluster, victim):

        def kill() -> None:
            while (there := len(list((folder / FOLDER).glob("0*")))) < EARLY:
                time.sleep(0.02)
            cluster.remove_node(victim, allow_graceful=False)
            found.update(there=there, killed=time.monotonic())

        killer = Thread(target=kill, daemon=True)
        killer.start()
        build(folder, engine_of("ray", address=cluster.address))
        ended = time.monotonic()
        killer.join()
    return {"there": found["there"], "after": ended - found["killed"]}


def files(folder: Path) -> dict[str, bytes]:
    """The bytes of all files by their paths."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def main() -> None:
    """Compares the index with one of this process, and records it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="the folder of the records, if one is to be written")
    given = parser.parse_args()
    with TemporaryDirectory() as folder:
        one, other = Path(folder) / "one", Path(folder) / "other"
        found = survived(one)
        build(other, "serial")
        same = files(one) == files(other)
    found = {"key": "cluster", "n": ROWS, "shards": SHARDS, **found, "same bytes": same}
    if given.out is not None:
        machine, versions = here()
        Records(given.out / "cluster.jsonl").append(
            {**found, "date": now(), "machine": machine, "versions": versions}
        )
    sys.stdout.write(f"{found}\n")
    if not same or found["after"] <= 0:
        raise SystemExit("other bytes" if not same else "the node was killed too late")


if __name__ == "__main__":
    main()

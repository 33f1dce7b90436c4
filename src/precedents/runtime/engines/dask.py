"""On a Dask cluster: one of this machine's own, or one that is there."""

import asyncio
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from os import cpu_count
from typing import Any, ClassVar
from uuid import uuid4

from precedents.errors import InputError
from precedents.runtime.engines._engine import RETRIES, Engine, Job, died
from precedents.runtime.engines._travel import carried_out, opened
from precedents.runtime.progress import Tell
from precedents.runtime.users_code import why

SETTINGS = {
    "distributed.scheduler.allowed-failures": RETRIES,
    "distributed.worker.daemon": False,  # loaders of training sets have workers of their own
    "distributed.admin.large-graph-warning-threshold": "1 TiB",  # a model goes with its work, on purpose
}

PATIENCE = 10.0  # seconds without an end of a task, after which it is asked whether anybody is there


@dataclass(frozen=True)
class Dask(Engine):
    """A task is a future of Dask; if this process has a Dask client already, that is used."""

    package: ClassVar[str | None] = "distributed"
    address: str = ""  # of a scheduler that is there, as tcp://host:8786
    workers: int = 0  # of a cluster of one's own: how many; 0 for one on each core

    def results(self, job: Job, tell: Tell | None) -> Iterator[tuple[int, Any]]:
        """As they end; the scheduler itself gives to another worker what a dead one was at."""
        import dask
        from distributed import KilledWorker

        topic = f"precedents-{uuid4()}"
        with dask.config.set(SETTINGS), _client(self.address, self.workers) as client:
            if tell is not None:
                client.subscribe_topic(topic, lambda event: tell(event[1]))
            work = client.submit(
                bytes, job.packed, pure=False
            )  # a task, so that it is there again if it is lost
            given = topic if tell is not None else None
            begun = {
                client.submit(_done, work, task, given, pure=False): place
                for place, task in enumerate(job.packed_tasks)
            }
            try:
                for ended in _ended(client, begun):
                    try:
                        outcome = ended.result()
                    except KilledWorker as error:
                        raise died() from error
                    yield begun.pop(ended), opened(outcome)
            finally:
                client.cancel([*begun, work])
                if tell is not None:
                    client.unsubscribe_topic(topic)


def _ended(client: Any, begun: Mapping[Any, int]) -> Iterator[Any]:
    """What is begun, as it ends; who uses it takes it out. No worker being left on this machine is an error."""
    from distributed import LocalCluster, as_completed

    while begun:
        with suppress(TimeoutError, asyncio.TimeoutError):
            yield from as_completed(list(begun), timeout=PATIENCE)
        if begun and isinstance(client.cluster, LocalCluster) and not client.scheduler_info()["workers"]:
            raise died("was killed again and again, so that none is left")


def _done(work: bytes, task: bytes, topic: str | None) -> bytes:
    """In a worker."""
    from distributed import get_worker

    if topic is None:
        return carried_out(work, task, None)
    worker = get_worker()
    return carried_out(work, task, lambda line: worker.log_event(topic, line))


@contextmanager
def _client(address: str, workers: int) -> Iterator[Any]:
    """A client of the cluster within; one that was there before stays."""
    from distributed import Client, LocalCluster

    present = _present()
    if present is not None:
        yield present
    elif not address:
        with (
            LocalCluster(
                n_workers=workers or cpu_count() or 1,
                threads_per_worker=1,
                memory_limit=0,
                dashboard_address=None,
                silence_logs=logging.ERROR,
            ) as cluster,
            Client(cluster) as client,
        ):
            yield client
    else:
        with _remote(address) as client:
            yield client


def _present() -> Any:
    """The client that this process has already; none if it has none."""
    from distributed import Client

    try:
        return Client.current()
    except ValueError:
        return None


def _remote(address: str) -> Any:
    """A client of a scheduler that is there."""
    from distributed import Client

    try:
        return Client(address)
    except (OSError, ValueError) as error:
        raise InputError(
            f"No Dask scheduler answers at {address}: {why(error).rstrip('.')}. Start one by `dask scheduler`, "
            "and workers by `dask worker ADDRESS --nthreads 1`."
        ) from error


dask = Dask()

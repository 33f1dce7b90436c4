"""In several processes of this machine, which end with it."""

import json
import os
import subprocess
import sys
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any

from precedents.runtime.engines._engine import RETRIES, Engine, Job, died
from precedents.runtime.engines._process import LINE
from precedents.runtime.engines._travel import opened
from precedents.runtime.progress import Tell

BEGIN = (  # a worker imports what this process can, and nothing of its main module
    "import json, sys; sys.path[:] = json.loads(sys.argv[2]); "
    "from precedents.runtime.engines._process import main; main(int(sys.argv[1]))"
)
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}  # of what else computes in a worker


@dataclass(frozen=True)
class Processes(Engine):
    """Workers of one thread each; none of them outlives the run."""

    workers: int = 0  # how many; 0 for one on each core

    def results(self, job: Job, tell: Tell | None) -> Iterator[tuple[int, Any]]:
        """As they end; a worker that dies is replaced."""
        crew = Crew(job, deque(range(len(job.tasks))))
        try:
            for _ in range(min(self.workers or os.cpu_count() or 1, len(job.tasks))):
                crew.begin()
            while crew.busy:
                for connection in wait(list(crew.busy)):
                    assert isinstance(connection, Connection)
                    kind, content = crew.heard(connection)
                    if kind == LINE and tell is not None:
                        tell(content.decode())
                    elif kind is not None and kind != LINE:
                        yield crew.finished(connection), opened(content)
        finally:
            crew.end()


@dataclass(frozen=True)
class Worker:
    """A process and the place of the task that it is at."""

    process: subprocess.Popen[bytes]
    place: int


@dataclass(frozen=True, eq=False)
class Crew:
    """The workers of a run, by how they are spoken to, and the places of the tasks that nobody is at."""

    job: Job
    left: deque[int]
    busy: dict[Connection, Worker] = field(default_factory=dict)
    deaths: Counter[int] = field(default_factory=Counter)

    def begin(self) -> None:
        """Starts a worker with the next task."""
        ours, theirs = Pipe()
        number, path = str(theirs.fileno()), json.dumps(sys.path)
        process = subprocess.Popen(  # noqa: S603  this Python, with our own code
            [sys.executable, "-c", BEGIN, number, path],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            env=os.environ | ONE_THREAD,
            start_new_session=True,  # Ctrl-C is for who started it, also while it starts
        )
        theirs.close()
        self._give(ours, process, self.job.packed)

    def _give(self, connection: Connection, process: subprocess.Popen[bytes], *before: bytes) -> None:
        """The next task, and whatever is said before it; that the worker died is heard later."""
        place = self.left.popleft()
        self.busy[connection] = Worker(process, place)
        try:
            for said in (*before, self.job.packed_tasks[place]):
                connection.send_bytes(said)
        except OSError:
            pass

    def heard(self, connection: Connection) -> tuple[bytes | None, bytes]:
        """What a worker says: its kind and its content; none if it died, and another one takes its place."""
        try:
            said = connection.recv_bytes()
        except (EOFError, OSError):
            self._replaced(connection)
            return None, b""
        return said[:1], said[1:]

    def _replaced(self, connection: Connection) -> None:
        worker = self._dismissed(connection)
        self.deaths[worker.place] += 1
        if self.deaths[worker.place] > RETRIES:
            code = worker.process.returncode
            raise died() if code < 0 else died(f"ended by itself (exit code {code})")
        self.left.appendleft(worker.place)
        self.begin()

    def finished(self, connection: Connection) -> int:
        """The place of the task that a worker ended; it gets the next."""
        place = self.busy[connection].place
        if self.left:
            self._give(connection, self.busy[connection].process)
        else:
            self._dismissed(connection)
        return place

    def _dismissed(self, connection: Connection) -> Worker:
        worker = self.busy.pop(connection)
        connection.close()
        try:
            worker.process.wait(timeout=5)  # it ends when nobody speaks to it any more
        except subprocess.TimeoutExpired:
            worker.process.kill()
            worker.process.wait()
        return worker

    def end(self) -> None:
        """Stops whoever is still at work."""
        for worker in self.busy.values():
            worker.process.kill()
        for connection in list(self.busy):
            self._dismissed(connection)


processes = Processes()

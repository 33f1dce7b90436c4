"""A worker of the engine `processes`: does one task after the other until nobody speaks to it any more."""

import os
import signal
from multiprocessing.connection import Connection
from queue import SimpleQueue
from threading import Lock, Thread

from precedents.runtime.engines._travel import carried_out

LINE, DONE = b"l", b"d"  # how what it says begins: a line of progress, the outcome of a task


def main(number: int) -> None:
    """Works for who has the other end of the socket with this number: first comes the work, then its tasks."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started it decides
    connection, tasks, lock = Connection(number), SimpleQueue[bytes](), Lock()

    def say(kind: bytes, content: bytes) -> None:
        with lock:
            connection.send_bytes(kind + content)

    def tell(line: str) -> None:
        say(LINE, line.encode())

    Thread(target=_listening, args=(connection, tasks), daemon=True).start()
    work = tasks.get()
    while True:
        say(DONE, carried_out(work, tasks.get(), tell))


def _listening(connection: Connection, heard: SimpleQueue[bytes]) -> None:
    """Ends the process with who started it, also in the middle of a task: nothing more is written."""
    try:
        while True:
            heard.put(connection.recv_bytes())
    except (EOFError, OSError):
        os._exit(0)

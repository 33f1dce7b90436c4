"""The server: a socket on this machine, a door with a new token, and uvicorn behind it."""

import ipaddress
import socket
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from time import monotonic, sleep

import uvicorn

from precedents.errors import InputError
from precedents.explorer import limits
from precedents.explorer.guard import Application
from precedents.explorer.safety import HEAD, LOOPBACK, Door

LONGEST = 10.0  # seconds until a server has started


@dataclass(frozen=True)
class Listener:
    """Where a server listens; beyond this machine only if that is wanted, and with TLS."""

    host: str = "127.0.0.1"
    port: int = 0  # 0: any that is free
    remote: bool = False
    certificate: Path | None = None
    key: Path | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.port < 2**16:
            raise InputError(f"The port is {self.port}. Use one from 1 to 65535, or 0 for any that is free.")
        if (self.certificate is None) != (self.key is None):
            raise InputError("TLS needs both: --certificate FILE and --key FILE.")
        for file in (self.certificate, self.key):
            if file is not None and not file.is_file():
                raise InputError(f"{file} is no file. Name the certificate and its key.")
        if self._local:
            return
        if not self.remote:
            raise InputError(
                f"{self.host} is not this machine alone: whoever reaches it could read your data. Add "
                "--allow-remote, --certificate FILE and --key FILE if that is what you want."
            )
        if self.certificate is None:
            raise InputError("--allow-remote needs TLS: add --certificate FILE and --key FILE.")
        if self.host in ("", "*", "0.0.0.0", "::"):  # noqa: S104  refused
            raise InputError("Name the address or the name by which browsers reach this machine: --host NAME.")

    @property
    def _local(self) -> bool:
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def scheme(self) -> str:
        """Of its addresses."""
        return "http" if self.certificate is None else "https"

    def bound(self) -> socket.socket:
        """A socket that listens there."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # else asyncio lets answers wait
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((self.host, self.port))
        except OSError as error:
            made.close()
            raise InputError(
                f"{self.host}:{self.port} cannot be listened on: {error.strerror}. Name another --port."
            ) from None
        return made

    def door(self, made: socket.socket, framed: bool = False) -> Door:
        """The door of a socket, with a new token."""
        own = (f"[{self.host}]" if ":" in self.host else self.host).lower()
        hosts = tuple(dict.fromkeys([own, *(LOOPBACK if self._local else ())]))
        return Door(made.getsockname()[1], self.scheme, hosts, framed=framed)


@dataclass(eq=False)
class Serving:
    """A server, in this thread or in one of its own."""

    application: Application
    place: Listener
    listening: socket.socket
    server: uvicorn.Server = field(init=False)
    thread: Thread | None = None

    def __post_init__(self) -> None:
        certificate, key = self.place.certificate, self.place.key
        config = uvicorn.Config(
            self.application,
            http=limits.GuardedProtocol,
            ws="none",
            lifespan="off",
            loop="asyncio",
            log_config=None,
            log_level="critical",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            h11_max_incomplete_event_size=HEAD,
            timeout_keep_alive=limits.SECONDS_IDLE,
            timeout_graceful_shutdown=2,
            backlog=128,
            ssl_certfile=None if certificate is None else str(certificate),
            ssl_keyfile=None if key is None else str(key),
        )
        self.server = uvicorn.Server(config)

    def run(self) -> None:
        """Serves in this thread, until it is told to end."""
        self.server.run(sockets=[self.listening])

    def start(self) -> None:
        """Serves in a thread of its own."""
        self.thread = Thread(target=self.run, name="precedents explorer server", daemon=True)
        self.thread.start()
        began = monotonic()
        while not self.server.started and monotonic() - began < LONGEST:
            sleep(0.01)

    def stop(self) -> None:
        """Ends it."""
        self.server.should_exit = True
        if self.thread is not None:
            self.thread.join(timeout=LONGEST)
        if self.thread is None or not self.thread.is_alive():  # else it closes by itself, in its own time
            self.listening.close()

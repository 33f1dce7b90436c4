"""Who may ask the server, and how: a program on the same machine, and any page in the same browser, may not.

A request passes in this order: its Host is one of ours with our port (421 otherwise), its target is a plain
path, its method is known, no other site sent it (Sec-Fetch-Site, Origin), it has the cookie that the token was
exchanged for (401), and what changes something has our Origin and our header (403).
"""

import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias
from urllib.parse import parse_qs

HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9.-]+)(?::(\d{1,5}))?")
PATH = re.compile(r"(/[A-Za-z0-9_.~-]*)+")  # of pages, as they come: nothing is encoded in them
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
STANDARD = {"http": 80, "https": 443}
READING, CHANGING = ("GET", "HEAD"), ("POST", "PUT", "DELETE")
OURS = "x-precedents"  # the header that a page of another site cannot send
QUERY = 2048  # bytes of a path, and of what follows it,
HEAD = 16 * 1024  # and of a head
COOKIES = 8  # of our name that are looked at
ADMITTED = "admitted"  # in the scope of a request that may be answered

Headers: TypeAlias = list[tuple[bytes, bytes]]


@dataclass(eq=False)
class Refusal(Exception):  # noqa: N818  an answer, not a mistake
    """An answer that is not what was asked for: a status and one sentence."""

    status: int
    text: str


@dataclass(frozen=True)
class Knock:
    """What is looked at of a request before anything else."""

    method: str
    path: str
    query: str
    scheme: str
    headers: Mapping[str, list[str]]  # by name in small letters

    @classmethod
    def of(cls, scope: Mapping[str, object]) -> "Knock":
        """From the scope of ASGI, whose raw path is what was sent."""
        found: dict[str, list[str]] = {}
        for name, value in scope["headers"]:  # type: ignore[attr-defined]
            found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        raw, query = scope["raw_path"], scope["query_string"]
        assert isinstance(raw, bytes)
        assert isinstance(query, bytes)
        method, scheme = str(scope["method"]), str(scope["scheme"])
        return cls(method, raw.decode("latin-1"), query.decode("latin-1"), scheme, found)

    def one(self, name: str) -> str | None:
        """The value of a header; several are refused, none is None."""
        values = self.headers.get(name, [])
        if len(values) > 1:
            raise Refusal(400, f"There are several headers {name}.")
        return values[0] if values else None

    def cookies(self, name: str) -> Iterator[str]:
        """The values of the cookies of this name."""
        pairs = (
            pair.strip().partition("=") for text in self.headers.get("cookie", []) for pair in text.split(";")
        )
        yield from [value for own, _, value in pairs if own == name][:COOKIES]


@dataclass(frozen=True)
class Door:
    """What one server lets in. The token is new at every start, and so is what it is exchanged for."""

    port: int
    scheme: str = "http"
    hosts: tuple[str, ...] = LOOPBACK  # names with our port
    outside: tuple[str, ...] = ()  # origins of proxies in front of us, as https://hub.example.org
    framed: bool = False  # whether a notebook on this machine or behind the proxy may show us in a frame
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    secret: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    @property
    def cookie(self) -> str:
        """The name of the cookie; cookies of a host are shared by all its ports."""
        return f"precedents-{self.port}"

    @property
    def address(self) -> str:
        """What a person opens."""
        return f"{self.scheme}://{self.hosts[0]}:{self.port}/?token={self.token}"

    @property
    def origins(self) -> set[str]:
        """Where our own pages come from."""
        own = {f"{self.scheme}://{host}:{self.port}" for host in self.hosts}
        if self.port == STANDARD[self.scheme]:
            own |= {f"{self.scheme}://{host}" for host in self.hosts}
        return own | set(self.outside)

    def policy(self) -> str:
        """The content security policy."""
        around = ["http://localhost:*", "http://127.0.0.1:*", *self.outside] if self.framed else ["'none'"]
        return (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
            f"form-action 'self'; base-uri 'none'; frame-ancestors {' '.join(around)}"
        )

    def security(self) -> Headers:
        """Headers of every answer."""
        return [
            (b"content-security-policy", self.policy().encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"referrer-policy", b"no-referrer"),
            (b"cross-origin-opener-policy", b"same-origin"),
            (b"cross-origin-resource-policy", b"same-origin"),
        ]

    def checked(self, asked: Knock) -> bool:
        """Whether the token is to be exchanged for a cookie; whoever may not ask is refused."""
        self._hosted(asked)
        _plain(asked)
        if asked.method not in READING + CHANGING:
            raise Refusal(405, "This method is not known here.")
        entering = self._entering(asked)
        self._own_site(asked, entering)
        if entering:
            return True
        if not any(_same(value, self.secret) for value in asked.cookies(self.cookie)):
            raise Refusal(401, "Open the address that `precedents explore` printed: it has a token in it.")
        if asked.method in CHANGING:
            self._changing(asked)
        return False

    def given(self) -> tuple[bytes, bytes]:
        """The header that gives the cookie; without a path, it is that of the page behind any prefix."""
        secure = "; Secure" if self.scheme == "https" else ""
        return b"set-cookie", f"{self.cookie}={self.secret}; HttpOnly; SameSite=Strict{secure}".encode()

    def behind(self, origin: str) -> "Door":
        """The door with a proxy in front of it."""
        return replace(self, outside=(*self.outside, origin))

    def _hosted(self, asked: Knock) -> None:
        try:
            sent = asked.one("host")
        except Refusal:
            sent = None
        found = HOST.fullmatch((sent or "").lower())
        outside = {each.partition("://")[2] for each in self.outside}
        if found is not None and found[0] in outside:
            return
        port = None if found is None else int(found[2] or STANDARD.get(asked.scheme, 0))
        if found is None or found[1] not in self.hosts or port != self.port:
            raise Refusal(421, "This host is not served here. Open the address that was printed.")

    def _entering(self, asked: Knock) -> bool:
        """Whether it is the address with the token; a wrong token is refused."""
        if asked.path != "/" or "token=" not in asked.query or asked.method != "GET":
            return False
        sent = parse_qs(asked.query).get("token", [])
        if len(sent) != 1 or not _same(sent[0], self.token):
            raise Refusal(
                403, "This token is not the one of this start. Open the address that was printed last."
            )
        return True

    def _own_site(self, asked: Knock, entering: bool) -> None:
        """Refuses what another site sent, or another port of this one.

        A link with the right token may stand anywhere; other ports, as that of a notebook, may lead here.
        """
        site, navigates = asked.one("sec-fetch-site"), asked.one("sec-fetch-mode") == "navigate"
        foreign = site == "cross-site" and not (navigates and entering)
        if foreign or (site == "same-site" and not navigates):
            raise Refusal(403, "Another site may not ask this.")
        origin = asked.one("origin")
        if origin is not None and origin not in self.origins:
            raise Refusal(403, "Another site may not ask this.")

    @staticmethod
    def _changing(asked: Knock) -> None:
        """Our origin, which was compared if it was sent, and our header."""
        if asked.one("origin") is None or asked.one(OURS) != "1":
            raise Refusal(403, f"Changes need an Origin and the header {OURS}: 1, which our pages send.")


def _same(one: str, other: str) -> bool:
    """In a time that does not tell where they differ."""
    return secrets.compare_digest(one.encode(), other.encode())


def _plain(asked: Knock) -> None:
    """Refuses targets that no page of ours has: encoded, of another form, or too long."""
    if len(asked.query) > QUERY or len(asked.path) > QUERY:
        raise Refusal(414, "This address is too long.")
    if sum(len(name) + len(value) for name, values in asked.headers.items() for value in values) > HEAD:
        raise Refusal(431, "The head of this request is too large.")
    parts = asked.path.split("/")
    if not PATH.fullmatch(asked.path) or ".." in parts or "." in parts or "" in parts[1:-1]:
        raise Refusal(400, "This is no address of a page here.")

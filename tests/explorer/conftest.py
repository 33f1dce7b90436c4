"""Explorers that tests share: small models of pictures, texts and tables, with names that mean harm."""

import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import torch
from torch import nn
from waiting import until

import precedents as pr
from precedents.explorer.running import Explorer

HOSTILE = [
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "{{ 7*7 }}",
    "\u202eevil\x00../../etc",
]


def trained(model: nn.Module, x: torch.Tensor, y: torch.Tensor, steps: int = 60) -> nn.Module:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    return model


def pictures(n: int = 160, classes: int = 4, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Pictures of 8 x 8 pixels, bright in one quarter each, some of them noise."""
    drawn = torch.Generator().manual_seed(seed)
    y = torch.arange(n) % classes
    x = 0.5 * torch.rand(n, 1, 8, 8, generator=drawn)
    for i, label in enumerate(y.tolist()):
        row, column = 4 * (label // 2), 4 * (label % 2)
        x[i, 0, row : row + 4, column : column + 4] += 0.5 * (i % 9 > 0)
    return x, y


def picture_world(seed: int = 0) -> tuple[pr.Explainer, tuple[torch.Tensor, torch.Tensor]]:
    x, y = pictures()
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 12), nn.Tanh(), nn.Linear(12, 4))
    explainer = pr.Explainer(trained(model, x, y), (x, y), classes=HOSTILE)
    return explainer, pictures(60, seed=1)


def text_world() -> tuple[pr.Explainer, tuple[list[str], list[str]]]:
    """Short texts of two kinds, by scikit-learn."""
    from random import Random

    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    drawn = Random(0)
    sport = [
        "the",
        "match",
        "was",
        "won",
        "by",
        "a",
        "late",
        "goal",
        "in",
        "second",
        "half",
        "team",
        "player",
        "coach",
        "league",
        "score",
    ]
    money = [
        "the",
        "bank",
        "raised",
        "its",
        "rate",
        "as",
        "markets",
        "fell",
        "shares",
        "profit",
        "quarter",
        "economy",
        "trade",
        "growth",
    ]

    def text(i: int) -> str:
        own = sport if i % 2 else money
        words = (
            drawn.choice(own if drawn.random() < 0.7 else sport + money) for _ in range(drawn.randint(8, 24))
        )
        return " ".join(words)

    x, y = [text(i) for i in range(140)], [("business", "sport")[i % 2] for i in range(140)]
    model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(x[:100], y[:100])
    return pr.Explainer(model, (x[:100], y[:100])), (x[100:], y[100:])


def row_world() -> tuple[pr.Explainer, tuple]:
    """A frame of wines, by scikit-learn."""
    from sklearn.datasets import load_wine
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x, y = load_wine(return_X_y=True, as_frame=True)
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.05)).fit(x[::2], y[::2])
    return pr.Explainer(model, (x[::2], y[::2])), (x[1::2], y[1::2])


def filled(explorer: Explorer) -> Explorer:
    """When everything is answered."""
    every = explorer.world.jobs.every
    until(lambda: all(job.state not in ("waiting", "running") for job in list(every.values())))
    assert all(job.state == "done" for job in every.values() if job.key == "fill")
    return explorer


@pytest.fixture(scope="module")
def explorer(tmp_path_factory) -> Iterator[Explorer]:
    """Of pictures, whose classes have hostile names; it keeps its work in a folder."""
    torch.set_num_threads(1)
    explainer, test = picture_world()
    made = pr.explore(explainer, test, metrics=["cos_last", "dot_grad"], keep=tmp_path_factory.mktemp("kept"))
    yield filled(made)
    made.stop()


class Client:
    """Speaks HTTP by a raw socket."""

    seconds = 60.0  # that an answer may take

    def __init__(self, explorer: Explorer) -> None:
        self.explorer, self.port, self.door = explorer, explorer.door.port, explorer.door
        self.cookie = f"{self.door.cookie}={self.door.secret}"
        self.host = f"127.0.0.1:{self.port}"

    def raw(self, content: bytes, timeout: float = seconds, until: bytes | None = None) -> bytes:
        """All that is answered until the connection is closed, nothing more comes, or something has come."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=timeout) as made:
            made.sendall(content)
            return received(made, until)

    def head(self, target: str) -> bytes:
        """What our own page asks, once."""
        head = f"GET {target} HTTP/1.1\r\nHost: {self.host}\r\nCookie: {self.cookie}\r\n"
        return f"{head}Connection: close\r\n\r\n".encode()

    def ask(
        self, target: str, method: str = "GET", body: bytes = b"", **headers: str | None
    ) -> tuple[int, str, str]:
        """Status, head and body; headers are those of our own page unless given, None leaves one out."""
        own: dict[str, str | None] = {"Host": self.host, "Cookie": self.cookie, "Connection": "close"}
        if method not in ("GET", "HEAD"):
            own |= {
                "Origin": f"http://{self.host}",
                "X-Precedents": "1",
                "Content-Type": "application/json",
            }
        if body:
            own["Content-Length"] = str(len(body))
        own |= {name.replace("_", "-"): value for name, value in headers.items()}
        lines = [f"{method} {target} HTTP/1.1", *(f"{n}: {v}" for n, v in own.items() if v is not None)]
        return parsed(self.raw("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body))


def received(made: socket.socket, until: bytes | None = None) -> bytes:
    found = b""
    try:
        while (until is None or until not in found) and (part := made.recv(65536)):
            found += part
    except (TimeoutError, ConnectionError):
        pass
    return found


def parsed(content: bytes) -> tuple[int, str, str]:
    head, _, body = content.partition(b"\r\n\r\n")
    status = int(head.split(b" ")[1]) if head.startswith(b"HTTP/") else 0
    return status, head.decode("latin-1"), body.decode("utf-8", "replace")


@pytest.fixture(scope="module")
def client(explorer) -> Client:
    return Client(explorer)


def path_of(address: str) -> str:
    parts = urlsplit(address)
    return f"{parts.path}?{parts.query}"


def kept_files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}

"""A process that asks questions under memory budgets and prints how much more memory each took, at most.

`python -m benchmarks.peak MODEL` reads lines "metrics|job|budget" and answers each by a line of JSON. A job may
say of how many cases it is: "explain 1000".
"""

import ctypes
import gc
import json
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from torch import Tensor, nn

import precedents as pr
from benchmarks.convolutions import resnet18
from precedents.zoo.architectures.cnn import cnn

STATUS = Path("/proc/self/status")
Given = tuple[Any, tuple[Any, Any], Any]  # a model, its training set and cases


def wide() -> Given:
    """Convolutions with 14.2 million parameters (57 MB) on 4 x 4 pixels."""
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for i, o in ((3, 256), (256, 512), (512, 1024), (1024, 896)):
        layers += [nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU()]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(896, 10)).eval()
    return model, (torch.randn(8, 3, 4, 4), torch.arange(8) % 10), torch.randn(2, 3, 4, 4)


class Texts(nn.Module):
    """Encoder layers on embeddings of words, and the mean over the positions."""

    def __init__(self, words: int = 20_000, width: int = 128, depth: int = 1) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        layers = (nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True) for _ in range(depth))
        self.layers = nn.Sequential(*layers)
        self.head = nn.Linear(width, 6)

    def forward(self, tokens: Tensor) -> Tensor:
        """[b, length] to logits."""
        hidden = self.layers(self.words(tokens)).mean(dim=1)
        logits: Tensor = self.head(hidden)
        return logits


def texts() -> Given:
    """A transformer and 80 texts of 24 words."""
    torch.manual_seed(0)
    tokens = torch.randint(1, 20_000, (90, 24))
    return Texts().eval(), (tokens[:80], torch.arange(80) % 6), tokens[80:]


def sparse(n: int = 200, words: int = 8_000) -> Given:
    """TF-IDF of n texts with so many words, and a logistic regression of 20 classes."""
    rng, known = np.random.default_rng(0), np.array([f"w{i}" for i in range(words)])
    lines = [" ".join(known[rng.integers(0, words, 100)]) for _ in range(n + 10)]
    lines[0] = " ".join(known)
    labels = np.arange(n + 10) % 20
    model = make_pipeline(TfidfVectorizer(), LogisticRegression(max_iter=2))
    model.fit(lines[:n], labels[:n])
    return model, (lines[:n], labels[:n]), lines[n:]


def small() -> Given:
    """A CNN of 26,000 parameters and 400 images."""
    torch.manual_seed(0)
    images = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.MaxPool2d(4), nn.Flatten())
    model = nn.Sequential(images, nn.Linear(784, 32), nn.ReLU(), nn.Linear(32, 10)).eval()
    return model, (torch.randn(400, 3, 32, 32), torch.arange(400) % 10), torch.randn(20, 3, 32, 32)


def pictures() -> Given:
    """Two convolutions of 64 channels on eight images of 160 x 160 pixels."""
    torch.manual_seed(0)
    layers = nn.Conv2d(3, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1), nn.ReLU()
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 4))
    return model, (torch.randn(8, 3, 160, 160), torch.arange(8) % 4), torch.randn(2, 3, 160, 160)


def wide_images() -> Given:
    """ResNet-18 on 32 x 32 pixels: 11.2 million parameters (45 MB), and 24 images."""
    torch.manual_seed(0)
    model = resnet18().eval()
    return model, (torch.randn(24, 3, 32, 32), torch.arange(24) % 10), torch.randn(4, 3, 32, 32)


def large() -> Given:
    """Convolutions on 12 images of 224 x 224 pixels."""
    torch.manual_seed(0)
    layers: list[nn.Module] = [nn.Conv2d(3, 32, 7, 2, 3, bias=False), nn.BatchNorm2d(32), nn.ReLU()]
    for i, o, stride in ((32, 64, 2), (64, 64, 1), (64, 128, 2)):
        layers += [nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU()]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10)).eval()
    return model, (torch.randn(12, 3, 224, 224), torch.arange(12) % 10), torch.randn(2, 3, 224, 224)


def encoder(n: int = 40) -> Given:
    """Eight encoder layers on embeddings of 30,522 words: 14 million parameters, and n texts of 64 words."""
    torch.manual_seed(0)
    tokens = torch.randint(1, 30_522, (n + 4, 64))
    return Texts(30_522, 256, 8).eval(), (tokens[:n], torch.arange(n) % 6), tokens[n:]


def images() -> Given:
    """The paper's CNN and 600 images of 32 x 32 pixels."""
    torch.manual_seed(0)
    model = cnn((3, 32, 32), 10).eval()
    return model, (torch.randn(600, 3, 32, 32), torch.arange(600) % 10), torch.randn(20, 3, 32, 32)


def newsgroups() -> Given:
    """A logistic regression of 20 classes on TF-IDF of 73,000 words (1.5 million parameters), 600 texts."""
    return sparse(600, 73_000)


def rows(n: int = 20_000, classes: int = 4) -> Given:
    """A logistic regression on n rows of eight numbers, which are cases, too."""
    torch.manual_seed(0)
    x = torch.randn(n, 8)
    return nn.Linear(8, classes), (x, torch.arange(n) % classes), x


MODELS = {
    "rows": rows,
    "pictures": pictures,
    "few rows": lambda: rows(1000),
    "many classes": lambda: rows(5000, 2000),
    "wide": wide,
    "large": large,
    "texts": texts,
    "sparse": sparse,
    "small": small,
    "CNN": images,
    "ResNet-18": wide_images,
    "transformer": encoder,
    "short transformer": lambda: encoder(12),
    "sparse text": newsgroups,
}


def megabytes(field: str) -> float:
    """What Linux says of this process's memory."""
    found = re.search(rf"^{field}:\s*(\d+) kB$", STATUS.read_text(), flags=re.MULTILINE)
    assert found is not None
    return int(found[1]) / 1024


def asked(given: Given, named: str, job: str, memory: str) -> str:
    """Asks, and says how it ended."""
    model, train, cases = given
    try:
        if job == "audit":
            metrics = named.split(",") if named else None
            test = cases, np.arange(len(cases)) % 2
            criteria = ["identical_class"]
            pr.audit(model, train, test, metrics=metrics, criteria=criteria, k=1, memory=memory)
            return "done"
        explainer = pr.Explainer(model, train, named, memory=memory)
        getattr(explainer, job.split()[0])(*_given(cases, *job.split()))
    except pr.BudgetError as error:
        return f"refused: {error}"
    return "done"


def _given(cases: Any, job: str, count: str = "") -> tuple[Any, ...]:
    """What a job is asked with: so many cases, taken again where there are fewer."""
    if count:
        places = [i % len(cases) for i in range(int(count))]
        cases = cases[places] if isinstance(cases, Tensor) else [cases[i] for i in places]
    others = {"estimate": (len(cases),), "suspects": (), "shares": (cases[:1], 0), "answers": (None, cases)}
    return others.get(job, (cases,))


def main() -> None:
    """Answers line by line."""
    warnings.simplefilter("ignore")
    given = MODELS[sys.argv[1]]()
    small_one = nn.Linear(8, 8)
    asked(
        (small_one, (torch.randn(20, 8), torch.arange(20) % 8), torch.randn(2, 8)),
        "cos_grad",
        "explain",
        "1 GB",
    )
    for line in sys.stdin:
        gc.collect()
        ctypes.CDLL("libc.so.6").malloc_trim(0)
        before = megabytes("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here on
        ended = asked(given, *line.split("|")[:2], line.split("|")[2].strip())
        sys.stdout.write(json.dumps({"ended": ended, "peak": megabytes("VmHWM") - before}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()

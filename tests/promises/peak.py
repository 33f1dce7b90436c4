"""A process that asks questions under memory budgets and prints how much more memory each took, at most.

`python -m tests.promises.peak MODEL` reads lines "metric job budget" and answers each by a line of JSON.
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
    """An encoder layer on embeddings of 20,000 words: 3.4 million parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(20_000, 128)
        self.layer = nn.TransformerEncoderLayer(128, 4, 512, batch_first=True)
        self.head = nn.Linear(128, 6)

    def forward(self, tokens: Tensor) -> Tensor:
        """[b, length] to logits."""
        hidden = self.layer(self.words(tokens)).mean(dim=1)
        logits: Tensor = self.head(hidden)
        return logits


def texts() -> Given:
    """A transformer and 200 texts of 24 words."""
    torch.manual_seed(0)
    tokens = torch.randint(1, 20_000, (220, 24))
    return Texts().eval(), (tokens[:200], torch.arange(200) % 6), tokens[200:]


def sparse() -> Given:
    """TF-IDF of 600 texts with 20,000 words, and a logistic regression of 20 classes."""
    rng, words = np.random.default_rng(0), [f"w{i}" for i in range(20_000)]
    lines = [" ".join(words[i] for i in rng.integers(0, 20_000, 100)) for _ in range(610)]
    lines[0] = " ".join(words)
    labels = np.arange(610) % 20
    model = make_pipeline(TfidfVectorizer(), LogisticRegression(max_iter=2))
    model.fit(lines[:600], labels[:600])
    return model, (lines[:600], labels[:600]), lines[600:]


def small() -> Given:
    """A CNN of 26,000 parameters and 1,000 images."""
    torch.manual_seed(0)
    images = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.MaxPool2d(4), nn.Flatten())
    model = nn.Sequential(images, nn.Linear(784, 32), nn.ReLU(), nn.Linear(32, 10)).eval()
    return model, (torch.randn(1000, 3, 32, 32), torch.arange(1000) % 10), torch.randn(20, 3, 32, 32)


MODELS = {"wide": wide, "texts": texts, "sparse": sparse, "small": small}


def megabytes(field: str) -> float:
    """What Linux says of this process's memory."""
    found = re.search(rf"^{field}:\s*(\d+) kB$", STATUS.read_text(), flags=re.MULTILINE)
    assert found is not None
    return int(found[1]) / 1024


def asked(given: Given, metric: str, job: str, memory: str) -> str:
    """Asks, and says how it ended."""
    model, train, cases = given
    try:
        if job == "audit":
            test = cases, np.arange(len(cases)) % 2
            criteria = ["identical_class"]
            pr.audit(model, train, test, metrics=[metric], criteria=criteria, k=1, memory=memory)
            return "done"
        explainer = pr.Explainer(model, train, metric, memory=memory)
        given_cases = len(cases) if job == "estimate" else cases
        getattr(explainer, job)(given_cases)
    except pr.BudgetError as error:
        return f"refused: {error}"
    return "done"


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
        print(json.dumps({"ended": ended, "peak": megabytes("VmHWM") - before}), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()

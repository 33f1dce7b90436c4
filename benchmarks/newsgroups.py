"""An audit of the size of 20 Newsgroups: 11,000 texts, 73,000 words, twenty classes, all eighteen metrics.

The texts are drawn: words by Zipf's law, some of them by the class. So nothing is downloaded, and what the
audit has to do is that of the real set. It tells its table, what was left out and why, its seconds and its peak
memory: `python -m benchmarks.newsgroups --memory "4 GB"`.
"""

import argparse
import resource
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import Pipeline, make_pipeline

from benchmarks.machine import here
from benchmarks.records import Record, Records, now

TEXTS, WORDS, CLASSES, CASES = 11_000, 73_000, 20, 100
OWN, SHARE = 300, 0.15  # words that a class has of its own, and how many of a text are of them


def texts_of(count: int, words: int, classes: int, seed: int) -> tuple[list[str], np.ndarray]:
    """Texts of 100 to 250 words, and their classes."""
    draw = np.random.default_rng(seed)
    labels = np.arange(count) % classes
    frequency = 1 / np.arange(3, words + 3)
    common = np.cumsum(frequency / frequency.sum())
    own = np.random.default_rng(0).choice(words, (classes, min(OWN, words // classes)), replace=False)
    texts = []
    for place, label in enumerate(labels):
        size = int(draw.integers(100, 250))
        found = np.searchsorted(common, draw.random(size))
        special = draw.random(size) < SHARE
        found[special] = draw.choice(own[label], int(special.sum()))
        rare = place * words // count + np.arange(words // count + 1)  # so that every word is there
        texts.append(" ".join(f"w{word}" for word in (*found.tolist(), *rare[rare < words].tolist())))
    return texts, labels


def pipeline(texts: Sequence[str], labels: np.ndarray) -> Pipeline:
    """TF-IDF and a logistic regression, fitted."""
    model = make_pipeline(TfidfVectorizer(), SGDClassifier(loss="log_loss", alpha=1e-5, max_iter=5, tol=None))
    return model.fit(texts, labels)


def audited(arguments: argparse.Namespace) -> Any:
    """The audit, of data and a model that are made for it."""
    import precedents

    sizes = arguments.words, CLASSES
    train = texts_of(arguments.texts, *sizes, seed=1)
    test = texts_of(arguments.cases, *sizes, seed=2)
    began = perf_counter()
    model = pipeline(*train)
    say(f"{len(model[0].vocabulary_)} words, fitted in {perf_counter() - began:.1f} s, {peak():.2f} GB so far")
    limits = {"memory": arguments.memory, "within": arguments.within}
    return precedents.audit(model, train, test, keep=arguments.keep, **limits)


def peak() -> float:
    """The most memory that this process had so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def kinds(audit: Any) -> dict[str, int]:
    """How many metrics have results, are left out, have no meaning or failed: by their first criterion."""
    first = audit.criteria[0]
    found = (audit.judgement[metric, first] for metric in audit.metrics)
    return dict(Counter(getattr(each, "kind", "results") for each in found))


def section(records: Sequence[Record]) -> Iterator[str]:
    """The lines of the page."""
    last = records[-1]
    told = ", ".join(f"{count} {kind}" for kind, count in last["kinds"].items())
    yield ""
    yield "## An audit that ends"
    yield ""
    yield (
        f"All eighteen metrics on {last['texts']:,} drawn texts of {last['words']:,} words, {CLASSES} classes, "
        f"the size of 20 Newsgroups, with {last['cases']} cases, {last['machine']['threads']} thread(s), "
        f'`memory="{last["memory"]}"` and `within="{last["within"]}"`: a table after '
        f"**{last['seconds']:.0f} seconds**, with at most {last['peak']:.2f} GB in the whole process. Metrics: "
        f"{told}. `make newsgroups` measures it."
    )


def say(text: str) -> None:
    """A line."""
    Console(soft_wrap=True).print(text, highlight=False)


def main(given: Sequence[str] | None = None) -> None:
    """Tells the table, the seconds and the peak memory."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--memory", default="4 GB", help="the budget")
    parser.add_argument("--within", default="9 min", help="what all work may take")
    parser.add_argument("--texts", type=int, default=TEXTS)
    parser.add_argument("--words", type=int, default=WORDS)
    parser.add_argument("--cases", type=int, default=CASES)
    parser.add_argument("--keep", help="a folder in which finished work is kept")
    parser.add_argument("--out", type=Path, help="the folder of the records, if one is to be written")
    arguments = parser.parse_args(given)
    began = perf_counter()
    audit = audited(arguments)
    seconds, most = perf_counter() - began, peak()
    say(str(audit))
    say(f"{seconds:.0f} s, at most {most:.2f} GB of memory with a budget of {arguments.memory}")
    if arguments.out is not None:
        sizes = {name: getattr(arguments, name) for name in ("texts", "words", "cases", "memory", "within")}
        found = {"key": "newsgroups", **sizes, "seconds": seconds, "peak": most, "kinds": kinds(audit)}
        machine, versions = here()
        Records(arguments.out / "newsgroups.jsonl").append(
            {**found, "date": now(), "machine": machine, "versions": versions}
        )


if __name__ == "__main__":
    main()

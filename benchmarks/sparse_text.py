"""Grad-Cos of a sparse linear model beside the same scores by scipy: time, peak memory, and what is saved.

60,000 words, 20 classes, 8,000 texts and 10 cases. Each contestant is a process of its own, in interleaved
rounds; the best counts. Ours is a new explainer and its scores, and then its folder.
"""

import argparse
import ctypes
import gc
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize

from benchmarks.machine import here
from benchmarks.peak import megabytes
from benchmarks.process import run_module
from benchmarks.records import Record, Records, now
from benchmarks.summary import ROUNDS

WORDS, CLASSES, TEXTS, CASES, LENGTH = 60_000, 20, 8_000, 10, 110
Array = np.ndarray
Given = tuple[LogisticRegression, csr_matrix, Array, csr_matrix]  # a model, rows, their labels and cases


def drawn(n: int, m: int, words: int = WORDS, classes: int = CLASSES) -> Given:
    """A linear model with random weights, and rows of words by Zipf's law, scaled to length one."""
    draw = np.random.default_rng(0)
    lengths = draw.poisson(LENGTH, n + m) + 1
    often = np.cumsum(1 / np.arange(3, words + 3))
    places = np.searchsorted(often / often[-1], draw.random(lengths.sum()))
    ends = np.concatenate([[0], lengths.cumsum()])
    rows = csr_matrix((np.ones(len(places)), places, ends), shape=(n + m, words))
    rows.sum_duplicates()
    rows = normalize(rows)
    model = LogisticRegression()
    model.coef_, model.intercept_ = draw.normal(size=(classes, words)), draw.normal(size=classes)
    model.classes_, model.n_features_in_ = np.arange(classes), words
    return model, rows[:n], draw.integers(classes, size=n), rows[n:]


def by_scipy(model: LogisticRegression, x: csr_matrix, y: Array, cases: csr_matrix) -> Array:
    """Cos(residuals) times cos(rows with an entry 1), in ten lines."""

    def residuals(rows: csr_matrix, labels: Array | None = None) -> Array:
        logits = rows @ model.coef_.T + model.intercept_
        found = np.exp(logits - logits.max(axis=1, keepdims=True))
        found /= found.sum(axis=1, keepdims=True)
        found[np.arange(len(found)), logits.argmax(axis=1) if labels is None else labels] -= 1
        return found

    left, right = residuals(cases), residuals(x, y)
    lengths = [np.asarray(rows.multiply(rows).sum(axis=1)).ravel() + 1 for rows in (cases, x)]
    squares = [(r**2).sum(axis=1) * own for r, own in zip((left, right), lengths, strict=True)]
    return (left @ right.T) * ((x @ cases.T).toarray().T + 1) / np.sqrt(np.outer(*squares))


def by_precedents(model: LogisticRegression, x: csr_matrix, y: Array, cases: csr_matrix) -> Array:
    """By a new explainer."""
    import precedents as pr

    return pr.Explainer(model, (x, y)).scores(cases).numpy()


CONTESTANTS: dict[str, Callable[..., Array]] = {"scipy": by_scipy, "precedents": by_precedents}


def told(who: str, n: int, m: int) -> Record:
    """One contestant in this process: seconds, peak memory; of ours what is saved and how far it is off."""
    given, run = drawn(n, m), CONTESTANTS[who]
    run(*given)  # what comes first is slower
    found: dict[str, Any] = {"matrix_bytes": sum(a.nbytes for a in (given[1].data, given[1].indices))}
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    before = megabytes("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here on
    began = perf_counter()
    scores = run(*given)
    found |= {"seconds": perf_counter() - began, "peak": megabytes("VmHWM") - before}
    if who == "precedents":
        found |= {"difference": float(np.abs(scores - by_scipy(*given)).max()), "saved": saved_bytes(given)}
    return found


def saved_bytes(given: Given) -> int:
    """Of the folder."""
    import precedents as pr

    with TemporaryDirectory() as folder:
        pr.Explainer(given[0], given[1:3]).save(Path(folder) / "saved")
        return sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())


def section(records: Sequence[Record]) -> Iterator[str]:
    """The lines of the page."""
    run = max((r["run"] for r in records), default="")
    best = {
        who: min((r for r in records if r["who"] == who and r["run"] == run), key=lambda r: r["seconds"])
        for who in CONTESTANTS
    }
    ours, theirs = best["precedents"], best["scipy"]
    matrix = ours["matrix_bytes"] / 2**20
    yield ""
    yield "## Sparse text"
    yield ""
    yield (
        f"Grad-Cos of {ours['n']:,} texts and {ours['m']} cases under a logistic regression of {WORDS:,} "
        f"words and {CLASSES} classes, rows compressed ({matrix:.1f} MiB): a new `Explainer` and its scores "
        f"beside the same scores by scipy in ten lines; they differ by at most {ours['difference']:.0e}. The "
        "memory is what was taken beyond the model, the data and the libraries. No peer takes sparse rows: "
        "captum, dattri, pyDVL, kronfluence and alibi end with an error for torch's sparse tensors. "
        "`python -m benchmarks.sparse_text` measures it."
    )
    yield ""
    yield "| | seconds | relative to scipy | peak memory, MiB | saved, relative to the rows |"
    yield "|---|---:|---:|---:|---:|"
    yield f"| scipy | {theirs['seconds']:.3f} | 1.00 | {theirs['peak']:.0f} | – |"
    ratio, saved = ours["seconds"] / theirs["seconds"], ours["saved"] / ours["matrix_bytes"]
    yield f"| precedents | {ours['seconds']:.3f} | {ratio:.2f} | {ours['peak']:.0f} | {saved:.2f} |"


def main() -> None:
    """Measures both in rounds, or one in this process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--who", choices=CONTESTANTS, help="only this one, in this process")
    parser.add_argument("--n", type=int, default=TEXTS)
    parser.add_argument("--m", type=int, default=CASES)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    if given.who:
        sys.stdout.write(json.dumps(told(given.who, given.n, given.m)) + "\n")
        return
    records, console, run = Records(given.out / "sparse_text.jsonl"), Console(highlight=False), now()
    machine, versions = here()
    common = {"run": run, "n": given.n, "m": given.m, "machine": machine, "versions": versions}
    for round_ in range(1, given.rounds + 1):
        for who in CONTESTANTS:
            ended = run_module("benchmarks.sparse_text", f"--who={who}", f"--n={given.n}", f"--m={given.m}")
            if ended.returncode:
                raise RuntimeError(ended.stderr)
            found = json.loads(ended.stdout.splitlines()[-1])
            records.append({"key": f"{who} round {round_} of {run}", "who": who, **found, **common})
            console.print(f"{who}: {found['seconds']:.3f} s, {found['peak']:.0f} MiB")
    console.print("\n".join(section(list(records))))


if __name__ == "__main__":
    main()

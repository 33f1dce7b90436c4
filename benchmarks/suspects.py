"""How well wrong training labels are found: `Explainer.suspects`, its reasons alone, the loss and cleanlab.

Labels of eight training sets are made wrong, a model is fitted to them, short of learning them by heart or
until it has, and every ranking is asked for the wrong ones. What is measured is appended to suspects.jsonl and
not measured again; `--page` writes the tables into docs/jobs/suspects.md.
"""

import argparse
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from statistics import fmean
from time import perf_counter

import numpy as np
import torch
from rich.console import Console
from torch import Tensor

import precedents as pr
from benchmarks.noisy import FITS, KINDS, SHARES, WORLDS, Noisy, noisy
from benchmarks.records import Record, Records
from precedents.explain.jobs.suspects import Evidence
from precedents.metrics.ranking import TopK

PAGE = Path("docs/jobs/suspects.md")
BEGIN, END = "<!-- measured -->\n", "<!-- end -->\n"
CHOSEN = 0  # the seed that the ranking was chosen on
OURS, LOSS, NEIGHBOURS = "suspects", "loss", "neighbours"
NAMES = {
    OURS: "`suspects`",
    LOSS: "loss",
    NEIGHBOURS: "neighbours",
    "self_relevance": "self-relevance",
    "accused": "accused",
    "cleanlab": "cleanlab",
    "cleanlab_folds": "cleanlab, 3 folds",
}


def precision(scores: Tensor, wrong: Tensor) -> float:
    """Which share of the first m is wrong, where m are."""
    first = scores.argsort(descending=True, stable=True)[: int(wrong.sum())]
    return float(wrong[first].double().mean())


def average_precision(scores: Tensor, wrong: Tensor) -> float:
    """The mean, over the wrong labels, of the share of wrong ones up to each."""
    hits = wrong[scores.argsort(descending=True, stable=True)].double()
    return float((hits.cumsum(0) / torch.arange(1, len(hits) + 1))[hits > 0].mean())


@dataclass(frozen=True, eq=False)
class Known:
    """What is known of the labels of one training set: all that a ranking can be made of, and the truth."""

    evidence: Evidence
    accused: Tensor  # [n], by how many wrong predictions
    folds: Tensor  # [n, c], the probabilities of models that were not trained on the instance
    wrong: Tensor  # [n]

    @classmethod
    def of(cls, world: Noisy) -> "Known":
        """From a model that was fitted to wrong labels."""
        found = pr.Explainer(world.model, world.train, "cos_grad").suspects(1, world.cases).evidence
        accused = torch.tensor([float(len(each)) for each in found.accusers])
        return cls(replace(found, accusers=()), accused, world.folds(), world.wrong)

    def kept(self, path: Path) -> None:
        """In a file, so that other rankings can be tried on it."""
        path.parent.mkdir(parents=True, exist_ok=True)
        found = self.evidence
        top = {"nearest": found.neighbours.indices.int(), "cosines": found.neighbours.scores}
        own = {name: getattr(found, name) for name in ("labels", "chances", "loss", "squares", "votes")}
        rest = {"accused": self.accused, "folds": self.folds, "wrong": self.wrong}
        np.savez_compressed(path, **{name: each.numpy() for name, each in {**own, **top, **rest}.items()})

    @classmethod
    def read(cls, path: Path) -> "Known":
        """What `kept` wrote."""
        with np.load(path) as file:
            of = {name: torch.from_numpy(file[name]) for name in file.files}
        top = TopK(of["nearest"].long(), of["cosines"])
        five = (of[name] for name in ("labels", "chances", "loss", "squares", "votes"))
        return cls(Evidence(*five, top), of["accused"], of["folds"], of["wrong"])

    def rankings(self) -> Iterator[tuple[str, Tensor]]:
        """By name how suspicious each label is."""
        found = self.evidence
        yield OURS, found.doubt
        yield LOSS, found.loss
        yield NEIGHBOURS, found.against.nan_to_num(nan=0.0)
        yield "self_relevance", found.squares
        yield "accused", self.accused
        yield "cleanlab", cleaned(found.labels, found.chances)
        yield "cleanlab_folds", cleaned(found.labels, self.folds)


def cleaned(labels: Tensor, chances: Tensor) -> Tensor:
    """By cleanlab: first what it finds, in its order, and then the rest by its quality of the label."""
    from cleanlab.filter import find_label_issues
    from cleanlab.rank import get_label_quality_scores

    given, p = labels.numpy(), chances.double().numpy()
    p = p / p.sum(axis=1, keepdims=True)
    quality = get_label_quality_scores(given, p)
    issues = find_label_issues(given, p, return_indices_ranked_by="self_confidence", n_jobs=1)
    scores = -np.asarray(quality, dtype=float)
    scores[issues] += 1 + np.linspace(1, 0, len(issues))
    return torch.from_numpy(scores)


def measured(name: str, share: float, kind: str, fit: str, seed: int, given: argparse.Namespace) -> Record:
    """All rankings on one training set and model; of evidence that was kept, without training."""
    began = perf_counter()
    file = given.evidence and given.evidence / f"{name} {share} {kind} {fit} {seed}.npz"
    known = (
        Known.read(file)
        if file and file.exists()
        else Known.of(noisy(WORLDS[name], share, kind, fit, seed, given.data))
    )
    if file and not file.exists():
        known.kept(file)
    found = {
        who: (precision(scores, known.wrong), average_precision(scores, known.wrong))
        for who, scores in known.rankings()
    }
    setting = {"world": name, "share": share, "kind": kind, "fit": fit, "seed": seed}
    sizes = {"n": len(known.wrong), "wrong": int(known.wrong.sum())}
    return {**setting, **sizes, "found": found, "seconds": perf_counter() - began}


def tables(records: Sequence[Record]) -> Iterator[str]:
    """The lines of the page that are made from the records."""
    groups: list[tuple[str, Callable[[Record], str]]] = [
        ("training set and model, fit", lambda r: f"{WORLDS[r['world']].title}, {r['fit']}"),
        ("wrong labels", lambda r: f"{r['share']:.0%}, {r['kind']}"),
    ]
    yield from told(records)
    yield from lacking(records)
    for title, key in groups:
        yield ""
        yield f"| {title} | " + " | ".join(NAMES.values()) + " |"
        yield "|---|" + "---:|" * len(NAMES)
        for name in dict.fromkeys(map(key, records)):
            yield row(name, [r for r in records if key(r) == name])
        yield row("**mean**", records)


def row(name: str, records: Sequence[Record]) -> str:
    """Average precision, and precision among the first m, of each ranking; the best is bold."""
    best = max(mean(records, who, 1) for who in NAMES)
    cells = []
    for who in NAMES:
        ap, p = mean(records, who, 1), mean(records, who, 0)
        cell = f"{ap:.2f} ({p:.2f})"
        cells.append(f"**{cell}**" if ap == best else cell)
    return f"| {name} | " + " | ".join(cells) + " |"


def mean(records: Sequence[Record], who: str, what: int) -> float:
    """Of precisions (0) or average precisions (1)."""
    return fmean(r["found"][who][what] for r in records)


def told(records: Sequence[Record]) -> Iterator[str]:
    """What was measured, and whether the default is ever below the loss."""
    worlds, seeds = len({r["world"] for r in records}), len({r["seed"] for r in records})
    yield (
        f"{len(records)} trained models: {worlds} training sets with a model each, {len(SHARES)} shares of "
        f"wrong labels, {len(KINDS)} kinds of mistakes, {len(FITS)} fits, {seeds} seed(s). Each cell is the "
        "mean average precision, and in brackets the share of wrong labels among as many first suspects as "
        "there are wrong labels."
    )
    yield ""
    for what, name in ((1, "average precision"), (0, "precision among the first")):
        means = ", ".join(f"{NAMES[who]} {mean(records, who, what):.3f}" for who in (OURS, LOSS, NEIGHBOURS))
        yield (
            f"- {name}, on average: {means}. Below the loss are "
            f"{' and '.join(below(records, who, what) for who in (OURS, NEIGHBOURS))}."
        )
    others = [r for r in records if r["seed"] != CHOSEN]
    means = ", ".join(f"{NAMES[who]} {mean(others, who, 1):.3f}" for who in (OURS, LOSS, NEIGHBOURS))
    yield (
        f"- seeds that the ranking was not chosen on ({len(others)} models), average precision: {means}. "
        f"Below the loss are {' and '.join(below(others, who, 1) for who in (OURS, NEIGHBOURS))}."
    )
    short = [r for r in records if r["fit"] == "short"]
    yield (
        f"- short fits alone: below the loss by average precision are "
        f"{' and '.join(below(short, who, 1) for who in (OURS, NEIGHBOURS))}."
    )


def below(records: Sequence[Record], who: str, what: int) -> str:
    """In how many models a ranking is worse than the loss, and by how much."""
    gaps = [r["found"][who][what] - r["found"][LOSS][what] for r in records]
    worse = [gap for gap in gaps if gap < 0]
    worst = f", at worst by {-min(worse):.3f}" if worse else ""
    return f"{NAMES[who]} in {len(worse)} of {len(gaps)} models{worst}"


def in_order(records: Iterable[Record]) -> list[Record]:
    """The latest of each setting, world by world."""
    order, once = list(WORLDS), {record["key"]: record for record in records}.values()
    return sorted(once, key=lambda r: (order.index(r["world"]), FITS.index(r["fit"])))


def lacking(records: Sequence[Record]) -> Iterator[str]:
    """What is not measured yet."""
    every = len(SHARES) * len(KINDS) * len(FITS) * len({r["seed"] for r in records})
    for name, world in WORLDS.items():
        seeds = {r["seed"] for r in records if r["world"] == name}
        count = len({r["key"] for r in records if r["world"] == name})
        alone = ", of the seed that the ranking was chosen on alone" if seeds == {CHOSEN} else ""
        if count < every:
            yield f"- {world.title}: {count} of {every} models are measured so far{alone}."


def written(page: Path, records: Sequence[Record]) -> None:
    """Puts the tables into the page."""
    text = page.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text("\n".join([before + BEGIN, *tables(records), "", END + after]), encoding="utf-8")


def is_due(key: str, known: Collection[str], evidence: Path | None) -> bool:
    """Whether a setting is to be measured: a new one, or one whose evidence is kept, for a new ranking."""
    return key not in known or (evidence is not None and (evidence / f"{key}.npz").exists())


def main() -> None:
    """Measures what is not measured yet, and again what evidence is kept of."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--data", type=Path, help="the folder with the files of the data sets")
    parser.add_argument("--evidence", type=Path, help="the folder that keeps what rankings are made of")
    parser.add_argument("--worlds", default=",".join(WORLDS))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--page", action="store_true", help="write the tables into the page")
    given = parser.parse_args()
    records, console = Records(given.out / "suspects.jsonl"), Console(highlight=False)
    known = {record["key"] for record in records}
    every = list(product(given.worlds.split(","), range(given.seeds), SHARES, KINDS, FITS))
    for place, (name, seed, share, kind, fit) in enumerate(every, 1):
        key = f"{name} {share} {kind} {fit} {seed}"
        if is_due(key, known, given.evidence):
            found = measured(name, share, kind, fit, seed, given)
            records.append({"key": key, **found})
            ours, loss = (found["found"][who][1] for who in (OURS, LOSS))
            console.print(f"{place}/{len(every)} {key}: {ours:.3f}, loss {loss:.3f}, {found['seconds']:.0f} s")
    if given.page:
        written(PAGE, in_order(records))


if __name__ == "__main__":
    main()

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import precedents as pr
from benchmarks.suspects import CHOSEN, Known, average_precision, in_order, is_due, precision, tables
from tests.explain.jobs.conftest import fitted


def test_wrong_labels_come_first_with_their_reasons(digits) -> None:
    found = digits.explainer().suspects(30, digits.test)
    frame = found.to_frame()
    assert torch.isin(torch.tensor(frame["index"].to_numpy()), digits.flipped).double().mean() >= 0.8
    row = found.rows()[0]
    assert row["loss"] > 1
    assert row["neighbours_with_another_label"] > 0.8
    assert row["better"] == (row["label"] - 1) % 10
    assert row["self_relevance"] == pytest.approx(
        float(digits.explainer("dot_grad").self_relevance().scores[row["index"]]), rel=1e-5
    )
    assert f"#{row['index']}" in str(found).splitlines()[1]


def test_the_doubt_is_what_the_page_says(digits) -> None:
    found = digits.explainer().suspects(600).evidence
    x, y = digits.train
    hidden = digits.model[:3](x).double()
    cosines = torch.nn.functional.normalize(hidden, dim=1)
    cosines = cosines @ cosines.T
    cosines.fill_diagonal_(-2)
    near = y[cosines.argsort(dim=1, descending=True, stable=True)[:, :25]]
    votes = torch.nn.functional.one_hot(near, 10).sum(dim=1)
    own = votes.gather(1, y[:, None])[:, 0]
    loss = torch.nn.functional.cross_entropy(digits.model(x).double(), y, reduction="none")
    doubt = loss.clamp(max=10) + ((votes.amax(dim=1) + 4) / (own + 4)).log()
    same = (found.doubt - doubt).abs() < 1e-4
    assert same.double().mean() > 0.99  # where two neighbours are as near, either may be the last


def test_wrong_predictions_accuse_their_precedents(digits) -> None:
    explainer = digits.explainer()
    found = explainer.suspects(600, digits.test).evidence.accusers
    x, y = digits.test
    wrong = (digits.model(x).argmax(dim=1) != y).nonzero().flatten()
    top = explainer.explain(x[wrong], k=5).top.indices
    expected = {int(case): set(row.tolist()) for case, row in zip(wrong, top, strict=True)}
    told = {int(case): {i for i, cases in enumerate(found) if int(case) in cases} for case in wrong}
    assert told == expected


def test_without_cases_nobody_is_accused_and_the_ranking_is_the_same(digits) -> None:
    explainer = digits.explainer()
    alone, judged = explainer.suspects(50), explainer.suspects(50, digits.test)
    assert alone.indices == judged.indices
    assert set(alone.to_frame()["accused_by"]) == {None}


@pytest.mark.parametrize("memory", ["8 MB", "400 MB", None])
def test_the_ranking_does_not_depend_on_the_memory(memory, digits) -> None:
    assert digits.explainer(memory=memory).suspects(25).indices == digits.explainer().suspects(25).indices


@pytest.mark.parametrize("k", [0, 601, 2.5, True, "ten"])
def test_a_number_that_cannot_be_is_refused(k, digits) -> None:
    with pytest.raises(pr.InputError, match="Ask for k from 1 to 600"):
        digits.explainer().suspects(k)


def test_cases_without_labels_are_refused(digits) -> None:
    with pytest.raises(pr.InputError):
        digits.explainer().suspects(5, digits.test[0])


def noisy(labels: np.ndarray, share: float, uniform: bool, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Labels of which a share is wrong, and which are."""
    draw, right, classes = np.random.default_rng(seed), labels, labels.max() + 1
    places = draw.choice(len(right), round(share * len(right)), replace=False)
    made = right.copy()
    made[places] = (made[places] + (draw.integers(1, classes, len(places)) if uniform else 1)) % classes
    return torch.tensor(made), torch.tensor(made != right)


def questions() -> tuple[list[str], np.ndarray]:
    """Texts of three kinds, some words of which tell."""
    draw = np.random.default_rng(1)
    telling = (("who", "president", "wrote"), ("where", "river", "city"), ("when", "year", "born"))
    others = [f"word{i}" for i in range(60)]
    labels = draw.integers(0, 3, 300)
    texts = [" ".join([*draw.choice(telling[label], 2), *draw.choice(others, 5)]) for label in labels]
    return texts, labels


def worlds(share: float, uniform: bool, long: bool, seed: int):
    """Small versions of the benchmark: by name a model, its training set, and which labels are wrong."""
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    labels, wrong = noisy(y[:500], share, uniform, seed)
    pixels = torch.tensor(x[:500] / 16).float()
    yield "digits", fitted(pixels, labels, 600 if long else 60), (pixels, labels), wrong
    strength = 1e4 if long else 1.0
    for name, load in (("wine", load_wine), ("breast cancer", load_breast_cancer)):
        x, y = load(return_X_y=True)
        labels, wrong = noisy(y, share, uniform, seed)
        table = make_pipeline(StandardScaler(), LogisticRegression(C=strength, max_iter=5000))
        yield name, table.fit(x, labels), (x, labels), wrong
    texts, y = questions()
    labels, wrong = noisy(y, share, uniform, seed)
    text = make_pipeline(TfidfVectorizer(), LogisticRegression(C=strength, max_iter=5000))
    yield "texts", text.fit(texts, labels), (texts, labels), wrong


@pytest.mark.parametrize("quality", [average_precision, precision])
@pytest.mark.parametrize("long", [False, True], ids=["short", "long"])
def test_the_default_is_not_below_the_plain_loss(long, quality) -> None:
    above: dict[str, list[float]] = {}
    for share, uniform, seed in product((0.05, 0.2), (True, False), range(3)):
        for name, model, train, wrong in worlds(share, uniform, long, seed):
            found = pr.Explainer(model, train).suspects(1).evidence
            gain = quality(found.doubt, wrong) - quality(found.loss, wrong)
            assert gain * wrong.sum() > -1.1  # never worse by more than a single label
            above.setdefault(name, []).append(gain)
    assert min(map(np.mean, above.values())) >= 0
    assert np.mean(list(above.values())) >= (0.15 if long else 0.02)


RECORDS = [json.loads(line) for line in Path("benchmarks/results/suspects.jsonl").read_text().splitlines()]
PRECISION, AVERAGE = 0, 1  # of what a record has found


def gains(name: str, quality: int, records=RECORDS) -> list[float]:
    """By how much a ranking is above the loss, for each measured model."""
    return [record["found"][name][quality] - record["found"]["loss"][quality] for record in records]


@pytest.mark.parametrize("quality", [PRECISION, AVERAGE])
def test_in_no_row_of_the_page_is_the_default_below_the_loss(quality) -> None:
    assert min(gains("suspects", quality)) >= -0.05
    for columns in (("world", "fit"), ("share", "kind")):
        groups = {tuple(record[column] for column in columns) for record in RECORDS}
        for group in groups:
            own = [record for record in RECORDS if tuple(record[column] for column in columns) == group]
            assert np.mean(gains("suspects", quality, own)) >= 0


@pytest.mark.parametrize("quality", [PRECISION, AVERAGE])
def test_of_what_was_measured_the_default_is_the_best(quality) -> None:
    means = {name: np.mean(gains(name, quality)) for name in RECORDS[0]["found"]}
    assert max(means, key=means.get) == "suspects"


def test_the_page_has_what_was_measured() -> None:
    assert "\n".join(tables(in_order(RECORDS))) in Path("docs/jobs/suspects.md").read_text()


def short_texts() -> tuple[list[str], list[str]]:
    """Texts of few and rare words, sorted by their class, all labels right; two have no word of any other."""
    draw = np.random.default_rng(0)
    labels = [label for label in "abc" for _ in range(60)]
    texts = [" ".join(draw.choice([f"{label}{i}" for i in range(300)], 4)) for label in labels]
    return texts, labels


def test_what_has_nothing_in_common_has_no_vote_and_the_order_does_not_matter() -> None:
    texts, labels = short_texts()
    model = make_pipeline(TfidfVectorizer(min_df=2), LogisticRegression()).fit(texts, labels)
    both = []
    for order in (1, -1):
        found = pr.Explainer(model, (texts[::order], labels[::order])).suspects(180)
        frame = found.to_frame().set_index("index").sort_index()
        rows = model[0].transform(texts[::order])
        alike = ((rows @ rows.T).toarray() > 0).sum(axis=1) - (rows.getnnz(axis=1) > 0)
        assert found.evidence.voters.tolist() == np.minimum(alike, 25).tolist()
        told = frame["neighbours_with_another_label"]
        assert (told[alike > 0] == 0).all()  # a word is of one class
        assert told[alike == 0].isna().all()
        assert (alike == 0).any()
        doubts = torch.tensor(frame["doubt"].to_numpy())
        assert torch.equal(doubts, found.evidence.doubt)
        both.append(doubts if order == 1 else doubts.flip(0))
    assert torch.allclose(*both)
    lines = str(found).splitlines()
    assert [line for line in lines if line.endswith("no neighbours")]
    assert [line for line in lines if line.endswith("0% of 1 neighbour has another label")]
    lonely = next(rank for rank, i in enumerate(found.indices) if alike[i] == 0)
    assert list(found.strips()[lonely].precedents) == []  # which fails if it is not drawn
    assert json.loads(found.to_json())["rows"][lonely]["neighbours_with_another_label"] is None


def of_worlds(*names: str, fit: str | None = None) -> list[dict]:
    """The records of some of the models."""
    return [r for r in RECORDS if (not names or r["world"] in names) and fit in (None, r["fit"])]


def test_what_the_page_says_of_other_seeds_and_of_the_reasons_alone() -> None:
    others = [record for record in RECORDS if record["seed"] != CHOSEN]
    groups = {(record["world"], record["fit"]) for record in others}
    for world, fit in groups:
        own = [record for record in others if (record["world"], record["fit"]) == (world, fit)]
        assert np.mean(gains("suspects", AVERAGE, own)) >= 0
    networks = {record["world"] for record in RECORDS} - {record["world"] for record in others}
    assert networks == {"mnist-resnet", "fashion-resnet", "trec-lstm"}  # "there is seed 0 alone"
    short = of_worlds(fit="short")
    for quality in (PRECISION, AVERAGE):
        assert abs(np.mean(gains("neighbours", quality, short))) < 0.03  # "about as good as the loss"
    assert min(gains("neighbours", AVERAGE, short)) < -0.2  # "far below it for some models"
    assert np.mean(gains("neighbours", AVERAGE, of_worlds(fit="long"))) > 0.2
    for world in {record["world"] for record in RECORDS}:
        gain = np.mean(gains("self_relevance", AVERAGE, of_worlds(world)))
        assert (gain >= 0) == (world in ("digits-linear", "digits-mlp", "trec-tfidf")), world


def test_of_what_is_kept_a_new_ranking_is_measured(tmp_path) -> None:
    found = pr.Explainer(torch.nn.Linear(2, 2), (torch.eye(2), torch.tensor([0, 1]))).suspects().evidence
    known = Known(found, torch.zeros(2), torch.zeros(2, 2), torch.tensor([False, True]))
    known.kept(tmp_path / "old.npz")
    assert is_due("old", ["old"], tmp_path)
    assert not is_due("old", ["old"], None)
    assert not is_due("other", ["old", "other"], tmp_path)
    assert is_due("new", ["old"], None)
    assert torch.equal(Known.read(tmp_path / "old.npz").evidence.doubt, found.doubt)

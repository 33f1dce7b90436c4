"""`explain --target` takes rows of scikit-learn as `audit` does: texts, dicts, frames, arrays, sparse rows."""

import json

import pytest

from precedents import Explainer

FACTORIES = """
import numpy as np
import pandas as pd
import polars as pl
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

TEXTS = [
    f"{a} {b}" for a in ("wheat", "corn", "match", "goal")
    for b in ("rises", "falls", "is won", "is lost")
]
TOPICS = np.repeat(["trade", "sport"], 8)
FRAME = pd.DataFrame(
    {
        "tone": pd.Categorical(["pale", "deep"] * 8),
        "hue": np.linspace(0, 1, 16),
        "year": pd.array([1990, None, 1992, 1993] * 4, dtype="Int64"),
    },
    index=[f"bottle {i}" for i in range(16)],
)
COLUMNS = make_column_transformer((OneHotEncoder(), ["tone"]), (StandardScaler(), ["hue"]))


def fitted(steps, rows):
    model = make_pipeline(*steps, LogisticRegression()).fit(rows, TOPICS)
    backwards = rows.reverse() if isinstance(rows, pl.DataFrame) else rows[::-1]
    return model, (rows, TOPICS), (backwards, TOPICS[::-1])


def texts():
    return fitted([TfidfVectorizer()], TEXTS)


def column():
    return fitted([TfidfVectorizer()], pd.Series(TEXTS))


def dicts():
    return fitted([DictVectorizer()], [{"word": text.split()[0], "length": len(text)} for text in TEXTS])


def pandas():
    return fitted([COLUMNS], FRAME)


def polars():
    return fitted([COLUMNS], pl.DataFrame(FRAME[["tone", "hue"]].astype({"tone": str})))


def array():
    return fitted([StandardScaler()], np.random.default_rng(0).normal(size=(16, 3)))


def matrix():
    return fitted([], TfidfVectorizer().fit_transform(TEXTS).tocsr())


def unknown():
    model, train, _ = texts()
    return model, train, (["qwxyz"], ["trade"])
"""
APPROXIMATE = {"score", "residual_cosine", "feature_cosine"}
KINDS = ["texts", "column", "dicts", "pandas", "polars", "array", "matrix"]


@pytest.fixture
def factories(tmp_path, monkeypatch) -> dict:
    """The file own_rows.py in the current folder, and what is in it."""
    (tmp_path / "own_rows.py").write_text(FACTORIES)
    monkeypatch.chdir(tmp_path)
    found: dict = {}
    exec(FACTORIES, found)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_cases_of_the_test_set_are_explained_as_by_the_library(kind, factories, precedents) -> None:
    model, train, (rows, _) = factories[kind]()
    expected = Explainer(model, train, "gc").explain(rows, k=2).to_dict()["cases"]
    command = f"explain --target own_rows:{kind} --case 9 --case 2 -k 2 --html {kind}.html"
    done = precedents(*command.split())
    assert done.code == 0, done.err
    called = expected[9].get("id", 9)  # which a frame's index and a column's give
    assert done.out.startswith(f"case {called}: predicted {expected[9]['prediction']}")
    assert ("id" in expected[9]) == (kind in ("column", "pandas"))
    found = json.loads(precedents(*command.split(), "--json", "--force").out)["cases"]
    for place, case in zip([9, 2], found, strict=True):
        assert case["case"] == place
        assert case["prediction"] == expected[place]["prediction"]
        for one, other in zip(case["precedents"], expected[place]["precedents"], strict=True):
            assert one == {**other, **{key: pytest.approx(other[key]) for key in APPROXIMATE & set(other)}}


@pytest.mark.usefixtures("factories")
def test_a_word_that_the_vectorizer_does_not_know_is_said(precedents) -> None:
    done = precedents(*["explain", "--target", "own_rows:unknown", "--case", "0"])
    assert "Caution: the model does not know any word of it." in done.out

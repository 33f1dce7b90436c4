"""Tables, sparse matrices and texts are taken as their owner has them, and shown so."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import precedents as pr
from precedents import Examples, Explainer, InputError
from precedents.runtime.sparse import SparseRows

KINDS = np.array(["barolo", "grignolino", "barbera"])
TEXTS = ["wheat prices rise", "wheat harvest falls", "the match is lost", "a match is won", "prices of wheat"]
TOPICS = ["trade", "trade", "sport", "sport", "trade"]


@pytest.fixture(scope="module")
def wine() -> tuple[pd.DataFrame, pd.Series]:
    """Four numbers, one of them whole and one with gaps, a tone in words, and a cellar that no model uses."""
    table = load_wine(as_frame=True)
    frame = table.data[["alcohol", "hue", "proline", "magnesium"]].astype({"proline": int})[::2]
    frame.loc[frame.index[::7], "magnesium"] = np.nan
    frame["tone"] = np.where(table.data.color_intensity[::2] > 5, "deep", "pale")
    frame["cellar"] = [f"cellar {i}" for i in range(len(frame))]
    return frame.reset_index(drop=True), pd.Series(KINDS[table.target[::2]])


@pytest.fixture(scope="module")
def pipeline(wine):
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    columns = make_column_transformer(
        (numbers, ["alcohol", "hue", "proline", "magnesium"]),
        (OneHotEncoder(handle_unknown="ignore"), ["tone"]),
    )
    return make_pipeline(columns, LogisticRegression()).fit(*wine)


@pytest.fixture(scope="module")
def explainer(pipeline, wine) -> Explainer:
    return Explainer(pipeline, wine)


@pytest.fixture(scope="module")
def texts():
    return make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(TEXTS, TOPICS)


def equal(a, b) -> None:
    torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)


# Training sets.


def test_a_polars_frame_gives_the_scores_of_a_pandas_frame(pipeline, wine, explainer) -> None:
    frame, labels = pl.DataFrame(wine[0].to_dict("list")), pl.Series(wine[1].to_list())
    other = Explainer(pipeline, (frame, labels))
    equal(other.scores(frame[:5]), explainer.scores(wine[0][:5]))


@pytest.mark.parametrize(
    "held",
    [
        sparse.csr_matrix,
        sparse.csc_array,
        sparse.coo_array,
        np.ndarray.tolist,
        pd.DataFrame,
        pl.DataFrame,
        torch.from_numpy,
        np.asfortranarray,
    ],
)
@pytest.mark.filterwarnings("ignore:X has feature names")
def test_every_container_gives_the_scores_of_the_array(held) -> None:
    x, y = load_wine(return_X_y=True)
    x = np.where(x > np.median(x, axis=0), x / x.max(axis=0), 0.0)
    model = LogisticRegression().fit(x, y)
    other = Explainer(model, (held(x), y))
    equal(other.scores(held(x[:4])), Explainer(model, (x, y)).scores(x[:4]))


def test_sparse_features_stay_sparse_when_a_batch_is_read(texts) -> None:
    source = Explainer(texts, (TEXTS, TOPICS)).relevance.workspace.train.source
    assert isinstance(source.matrix, SparseRows)
    for places in (range(1, 4), [4, 0], range(0, 5, 2)):
        rows = source.read(places)
        assert isinstance(rows, SparseRows)
        assert rows.dtype == torch.double
        np.testing.assert_array_equal(rows, texts[:-1].transform(TEXTS).toarray()[list(places)])


def test_texts_may_be_a_list_a_column_or_an_array(texts) -> None:
    expected = Explainer(texts, (TEXTS, TOPICS)).scores(TEXTS[:2])
    for held in (tuple, np.array, pd.Series, pl.Series):
        equal(Explainer(texts, (held(TEXTS), held(TOPICS))).scores(held(TEXTS[:2])), expected)


def test_dicts_are_taken_by_their_vectorizer() -> None:
    dicts = [{"tone": "deep", "age": 3}, {"tone": "pale"}, {"age": 1}, {"tone": "deep"}]
    model = make_pipeline(DictVectorizer(), LogisticRegression()).fit(dicts, [1, 0, 0, 1])
    explainer = Explainer(model, (dicts, [1, 0, 0, 1]))
    equal(explainer.scores(dicts[0]), explainer.scores(dicts[:1]))
    assert "age" in explainer.explain(dicts[0], k=2).to_html()


def test_rows_of_texts_and_numbers_may_be_lists() -> None:
    rows, labels = [["deep", 3.0], ["pale", 1.0], ["deep", 2.5], ["pale", 0.5]], [1, 0, 1, 0]
    model = make_pipeline(
        make_column_transformer((OneHotEncoder(), [0]), remainder=StandardScaler()), LogisticRegression()
    ).fit(np.array(rows, dtype=object), labels)
    explainer = Explainer(model, (rows, labels))
    equal(explainer.scores(rows[0]), explainer.scores(rows)[:1])


def test_an_array_for_a_model_of_a_frame_gets_its_columns_names(wine) -> None:
    frame, labels = wine[0][["alcohol", "hue"]], wine[1]
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(frame, labels)
    explainer = Explainer(model, (frame.to_numpy(), labels))
    equal(explainer.scores(frame[:3]), Explainer(model, (frame, labels)).scores(frame[:3]))
    assert "alcohol" in explainer.explain(frame.to_numpy()[0], k=1).to_html()


def test_a_frame_may_have_any_index(pipeline, wine, explainer) -> None:
    frame = wine[0].set_index(np.linspace(5, 0, len(wine[0])))
    equal(Explainer(pipeline, (frame, wine[1])).scores(frame[3:5]), explainer.scores(wine[0][3:5]))


# Cases.


def test_one_row_may_be_a_series_a_dict_or_values(explainer, wine) -> None:
    frame = wine[0]
    expected = explainer.scores(frame[3:4])
    for row in (frame.iloc[3], frame.iloc[3].to_dict(), frame.iloc[3].to_numpy(), frame.iloc[3].to_list()):
        equal(explainer.scores(row), expected)


def test_several_rows_may_be_a_frame_dicts_or_values(explainer, wine) -> None:
    frame = wine[0]
    expected = explainer.scores(frame[3:6])
    others = pl.DataFrame(frame[3:6].to_dict("list"))
    for rows in (frame[3:6].to_dict("records"), frame[3:6].to_numpy(), others, frame[3:6].assign(extra=1)):
        equal(explainer.scores(rows), expected)


def test_a_row_of_a_polars_frame_is_a_dict(pipeline, wine, explainer) -> None:
    frame = pl.DataFrame(wine[0].to_dict("list"))
    other = Explainer(pipeline, (frame, wine[1]))
    equal(other.scores(frame.row(3, named=True)), explainer.scores(wine[0].iloc[3]))


@pytest.mark.parametrize("missing", [None, float("nan")])
@pytest.mark.parametrize("held", [pd.DataFrame, pl.DataFrame])
def test_a_missing_value_is_left_to_the_imputer(pipeline, wine, held, missing) -> None:
    frame = held(wine[0].to_dict("list"))
    row = wine[0].iloc[3].to_dict() | {"magnesium": missing}
    filled = row | {"magnesium": float(wine[0].magnesium.mean())}
    explainer = Explainer(pipeline, (frame, wine[1]))
    equal(explainer.scores(row), explainer.scores(filled))


def test_a_value_between_whole_ones_is_not_rounded(explainer, wine) -> None:
    row = wine[0].iloc[3].to_dict()
    assert not torch.equal(explainer.scores(row | {"proline": 700.5}), explainer.scores(row | {"proline": 700}))


def test_one_sparse_row_of_either_kind_is_a_case() -> None:
    x, y = load_wine(return_X_y=True)
    x = np.where(x > np.median(x, axis=0), x, 0.0)
    model = make_pipeline(StandardScaler(with_mean=False), LogisticRegression()).fit(x, y)
    for held in (sparse.csr_matrix, sparse.csr_array):
        explainer = Explainer(model, (held(x), y))
        for case in (held(x)[3], held(x)[[3]], x[3], x[3:4]):
            equal(explainer.scores(case), explainer.scores(x)[3:4])


def test_one_text_is_one_case(texts) -> None:
    explainer = Explainer(texts, (TEXTS, TOPICS))
    explanation = explainer.explain("wheat is cheap", k=2)
    assert str(explanation).startswith('predicted trade for "wheat is cheap", because of\n  #')
    equal(explainer.scores("wheat is cheap"), explainer.scores(["wheat is cheap"]))


# Labels.


@pytest.mark.parametrize(
    "labels",
    [
        ["no", "yes"],
        [7, 3],
        [True, False],
        [2.0, 1.0],
        np.array(["b", "a"], dtype=object),
    ],
    ids=str,
)
def test_labels_are_whatever_the_model_was_fitted_on(labels) -> None:
    x = np.array([[0.0], [1.0], [2.0], [3.0], [4.0]])
    y = np.asarray(labels)[[0, 0, 1, 1, 1]]
    model = LogisticRegression().fit(x, y)
    for given in (y, y.tolist(), pd.Series(y), pd.Series(y).astype("category"), pl.Series(y.tolist())):
        explanation = Explainer(model, (x, given)).explain(x[0], k=5)
        found = {p.index: explanation.name(p.label) for p in explanation.precedents()}
        assert [found[i] for i in range(5)] == [str(label) for label in y.tolist()]


def test_the_labels_of_cases_are_the_models_own_classes() -> None:
    x, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [2, 2, 1, 1]
    explainer = Explainer(LogisticRegression().fit(x, y), (x, y), "dot_grad")
    assert explainer.explain(x[0], k=1, labels=1).predictions.tolist() == [0]
    assert explainer.explain(x[:2], k=1, labels=[1, 2]).predictions.tolist() == [0, 1]
    with pytest.raises(InputError, match=r"row 1 of the cases is 0, which .* Its classes are: 1, 2"):
        explainer.explain(x[:2], labels=[1, 0])


# What is wrong.


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (lambda f, y: f, r"training set is a DataFrame\. Pass a pair \(X, y\)"),
        (lambda f, y: (f, y.to_list()[:-1]), "89 rows and 88 labels"),
        (lambda f, y: (f, y.replace("barolo", "chianti")), "row 0 of the training set is 'chianti'.*'barbera'"),
        (lambda f, y: (f, y.where(y != "barolo")), "row 0 of the training set is nan"),
        (lambda f, y: (f, [[label] for label in y]), r"shape \(89, 1\)"),
        (lambda f, y: (f, [[1, 2], [3]] * 44 + [[1]]), r"row 0 of the training set is \[1, 2\]"),
        (lambda f, y: (f[:0], y[:0]), "training set is empty"),
        (lambda f, y: (f.drop(columns="hue"), y), "cannot take the training set: .*hue"),
        (lambda f, y: (f.assign(hue="red"), y), "cannot take the training set: "),
        (lambda f, y: (3.0, y), r"training set are a float of the shape \(\)"),
        (lambda f, y: ([[1], [2, 3]], y), "cannot become an array"),
    ],
)
def test_a_wrong_training_set_is_refused_with_what_is_wrong(pipeline, wine, data, said) -> None:
    with pytest.raises(InputError, match=said):
        Explainer(pipeline, data(*wine))


@pytest.mark.parametrize(
    ("case", "said"),
    [
        (lambda row: row.drop("hue"), "no column 'hue'. .* alcohol, hue, proline"),
        (lambda row: row.to_frame().T.drop(columns="hue"), "no column 'hue'"),
        (lambda row: row.to_numpy()[:3], r"shape \(3,\), but the training instances have 6 columns"),
        (lambda row: "a text", "6 columns"),
        (lambda row: {**row, "alcohol": "strong"}, "cannot take the cases: .*strong"),
        (lambda row: {**row, "alcohol": [1, 2]}, "cannot take the cases: "),
    ],
)
def test_a_wrong_case_is_refused_with_what_is_wrong(explainer, wine, case, said) -> None:
    with pytest.raises(InputError, match=said):
        explainer.explain(case(wine[0].iloc[0]))


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("kind", [pd.DataFrame, np.asarray])
def test_what_is_no_number_is_named_by_its_row_and_column(kind, value) -> None:
    x, y = load_wine(return_X_y=True, as_frame=True)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(kind(x), y)
    wrong = x.copy()
    wrong.iloc[7, 10] = value
    column = "'hue'" if kind is pd.DataFrame else "10"
    said = f"row 7 has {value} in the column {column}, which the Pipeline cannot take.*SimpleImputer"
    with pytest.raises(InputError, match=f"The training set: {said}"):
        Explainer(model, (kind(wrong), y))
    with pytest.raises(InputError, match=f"The cases: {said}"):
        Explainer(model, (kind(x), y)).explain(kind(wrong))


def test_wrong_cases_of_arrays_and_texts_are_refused(texts) -> None:
    x, y = load_wine(return_X_y=True)
    model = make_pipeline(StandardScaler(), PCA(3), LogisticRegression()).fit(x, y)
    with pytest.raises(InputError, match="no column names"):
        Explainer(model, (x, y)).explain({"alcohol": 3.0})
    with pytest.raises(InputError, match="There are no cases"):
        Explainer(model, (x, y)).explain(x[:0])
    with pytest.raises(InputError, match="training instances are strs"):
        Explainer(texts, (TEXTS, TOPICS)).explain([[1.0, 2.0]])
    with pytest.raises(InputError, match=r"3 rows of the 5 .*frame\['text'\]"):
        Explainer(texts, (pd.DataFrame({"a": TEXTS, "b": TEXTS, "c": TEXTS}), TOPICS))
    alone, x = LogisticRegression().fit(x / x.max(axis=0), y), x / x.max(axis=0)
    with pytest.raises(InputError, match="X has 12 features"):
        Explainer(alone, (x[:, 1:], y))
    with pytest.raises(InputError, match=r"shape \(2, 5\), but the training instances have 13"):
        Explainer(alone, (sparse.csr_matrix(x), y)).explain(sparse.csr_matrix(x[:2, :5]))


# What a person sees.


def cellars(explanation) -> list[str]:
    """Of the case and its precedents, as a person sees them."""
    return [explanation.seen(0, rank)["cellar"] for rank in range(explanation.top.indices.shape[1] + 1)]


def test_cases_and_precedents_are_shown_as_they_were_given(explainer, wine) -> None:
    explanation = explainer.explain(wine[0].iloc[3], k=3)
    page = explanation.to_html()
    for place in [3, *(p.index for p in explanation.precedents())]:
        assert f"cellar {place}" in page
        assert f"{wine[0].alcohol[place]:.3g}" in page
    assert "tone" in page
    assert explanation.plot().axes


def test_rows_with_the_same_features_are_shown_as_themselves(pipeline, wine) -> None:
    frame = pd.concat([wine[0][:1]] * 3 + [wine[0]], ignore_index=True)
    frame["cellar"] = [f"cellar {i}" for i in range(len(frame))]
    explainer = Explainer(pipeline, (frame, pd.concat([wine[1][:1]] * 3 + [wine[1]])))
    assert cellars(explainer.explain(wine[0].iloc[0], k=4)) == ["cellar 0", *(f"cellar {i}" for i in range(4))]


def test_each_case_of_several_is_shown_with_its_own_precedents(explainer, wine) -> None:
    for i, one in enumerate(explainer.explain(wine[0][10:13], k=2), start=10):
        assert cellars(one) == [f"cellar {i}", *(f"cellar {p.index}" for p in one.precedents())]


def test_render_is_given_the_row_as_it_was(pipeline, wine, texts) -> None:
    shown = Explainer(pipeline, wine, render=lambda row: f"<{row['cellar']}>").explain(wine[0].iloc[5], k=1)
    assert "&lt;cellar 5&gt;" in shown.to_html()
    shouted = Explainer(texts, (TEXTS, TOPICS), render=str.upper).explain("wheat", k=1)
    assert "WHEAT" in shouted.to_html()


def test_columns_without_names_are_numbered() -> None:
    x, y = load_wine(return_X_y=True)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(x, y)
    page = Explainer(model, (x, y)).explain(x[0], k=1).to_html()
    assert re.search(r"x0 +14\.2\nx1 +1\.71\n", page)


def test_sparse_rows_are_shown_without_their_zeros() -> None:
    counts = CountVectorizer().fit(TEXTS)
    x = counts.transform(TEXTS)
    explainer = Explainer(LogisticRegression().fit(x, TOPICS), (x, TOPICS))
    render = explainer.render
    assert render(x[[1]]) == {f"x{i}": 1 for i in sorted(counts.vocabulary_[word] for word in TEXTS[1].split())}


def test_instances_whose_rows_were_not_kept_have_the_names_of_the_features(pipeline, wine) -> None:
    features = Examples.of((torch.tensor(pipeline[:-1].transform(wine[0])), torch.arange(89) % 3))
    page = Explainer(pipeline, features).explain(wine[0][:1], k=1).to_html()
    assert "onehotencoder__tone_deep" in page


def test_an_audit_shows_the_rows_as_they_were(pipeline, wine) -> None:
    frame, labels = wine
    found = pr.audit(
        pipeline, (frame[20:], labels[20:]), (frame[:20], labels[:20]), metrics=["cos_grad", "cos_x"], k=3
    )
    assert found.scope.names == ["barbera", "barolo", "grignolino"]
    assert found.pictures["case", 0]["cellar"] == "cellar 0"
    trained = [place for kind, place in found.pictures if kind == "train"]
    assert trained
    assert all(found.pictures["train", place]["cellar"] == f"cellar {place + 20}" for place in trained)
    assert "cellar 0" in found.to_html()

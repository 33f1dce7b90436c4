"""A transformed matrix given for texts, texts given for a matrix, a search that holds no model: all named."""

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from precedents import Explainer, InputError

TEXTS = ["wheat prices rise", "wheat harvest falls", "the match is lost", "a match is won"] * 3
TOPICS = ["trade", "trade", "sport", "sport"] * 3
NUMBERS = np.random.default_rng(0).normal(size=(12, 5))
GRID = {"logisticregression__C": [1.0, 10.0]}


@pytest.mark.parametrize("kind", [TfidfVectorizer, CountVectorizer, lambda: HashingVectorizer(n_features=16)])
@pytest.mark.parametrize("dense", [False, True])
def test_a_transformed_matrix_where_texts_belong(kind, dense) -> None:
    model = make_pipeline(kind(), LogisticRegression()).fit(TEXTS, TOPICS)
    matrix = model[:-1].transform(TEXTS)
    matrix = matrix.toarray() if dense else matrix
    begins = rf"The Pipeline begins with a {type(model[0]).__name__}, which takes texts, but the"
    ends = (
        rf"a matrix of {matrix.shape[1]} columns, as its last step takes them. Pass the texts.*: model\[-1\]\.$"
    )
    with pytest.raises(InputError, match=rf"^{begins} training set is {ends}"):
        Explainer(model, (matrix, TOPICS))
    with pytest.raises(InputError, match=rf"^{begins} cases are {ends}"):
        Explainer(model, (TEXTS, TOPICS)).explain(matrix[:2])
    alone = Explainer(model[-1], (matrix, TOPICS))
    assert len(alone.explain(matrix[:1], k=1).predictions) == 1
    with pytest.raises(
        InputError, match=r"which takes texts, but the training set is a matrix of 3 columns. Pass"
    ):
        Explainer(model, (np.ones((12, 3)), TOPICS))


@pytest.mark.parametrize("given", [TEXTS, pd.Series(TEXTS), np.array(TEXTS)], ids=["list", "column", "array"])
def test_texts_where_a_matrix_belongs(given) -> None:
    matrix = TfidfVectorizer().fit_transform(TEXTS)
    model = LogisticRegression().fit(matrix, TOPICS)
    said = rf"tables of {matrix.shape[1]} columns, but the {{}} texts. Pass .*vectorizer\.transform\(texts\)"
    with pytest.raises(InputError, match=said.format("training set is")):
        Explainer(model, (given, TOPICS))
    for rows in (matrix, matrix.toarray()):
        for cases in (given, TEXTS[0]):
            with pytest.raises(InputError, match=said.format("cases are")):
                Explainer(model, (rows, TOPICS)).explain(cases)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")  # of scikit-learn, before it fails
def test_texts_where_columns_have_names() -> None:
    frame = pd.DataFrame(NUMBERS[:, :2], columns=["hue", "proline"])
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(frame, TOPICS)
    with pytest.raises(
        InputError, match=r"but the training set is texts. Pass rows with its columns: hue, proline\."
    ):
        Explainer(model, (TEXTS, TOPICS))
    with pytest.raises(
        InputError, match=r"but the cases are texts. Pass rows with its columns: hue, proline\."
    ):
        Explainer(model, (frame, TOPICS)).explain("wheat")


def test_transformed_numbers_where_rows_belong() -> None:
    steps = make_pipeline(StandardScaler(), PCA(2), LogisticRegression())
    for model, last in ((steps, r"model\[-1\]"), (GridSearchCV(steps, GRID), r"model\.best_estimator_\[-1\]")):
        model.fit(NUMBERS, TOPICS)
        made = getattr(model, "best_estimator_", model)[:-1].transform(NUMBERS)
        said = rf"begins with a StandardScaler, .* a matrix of 2 columns, as its last step .* alone: {last}\.$"
        with pytest.raises(InputError, match=said):
            Explainer(model, (made, TOPICS))
        for cases in (made, made[0]):
            with pytest.raises(InputError, match=said):
                Explainer(model, (NUMBERS, TOPICS)).explain(cases)


def test_other_mistakes_keep_their_own_words() -> None:
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(NUMBERS, TOPICS)
    with pytest.raises(
        InputError, match="cannot take the training set: X has 4 features, but StandardScaler is"
    ):
        Explainer(model, (NUMBERS[:, :4], TOPICS))
    with pytest.raises(InputError, match=r"have the shape \(4,\), but the training instances have 5 columns"):
        Explainer(model, (NUMBERS, TOPICS)).explain(NUMBERS[0, :4])


def test_a_search_without_a_model_says_what_to_type() -> None:
    steps = make_pipeline(StandardScaler(), LogisticRegression())
    for search in (
        GridSearchCV(steps, GRID, refit=False),
        RandomizedSearchCV(steps, GRID, n_iter=2, refit=False),
    ):
        with pytest.raises(
            InputError, match=r"SearchCV is not fitted\. Call model\.fit\(X, y\) first, with refit=True"
        ):
            Explainer(search, (NUMBERS, TOPICS))
        model = search.fit(NUMBERS, TOPICS)
        with pytest.raises(InputError, match=r"fitted with refit=False, so that it holds no model") as error:
            Explainer(model, (NUMBERS, TOPICS))
        typed = str(error.value).partition("Fit the best one: ")[2].partition(", or search")[0]
        best = eval(typed, {"sklearn": __import__("sklearn.base"), "model": model, "X": NUMBERS, "y": TOPICS})
        assert len(Explainer(best, (NUMBERS, TOPICS)).explain(NUMBERS, k=1).predictions) == 12
    several = GridSearchCV(steps, GRID, scoring=["accuracy", "f1_macro"], refit=False).fit(NUMBERS, TOPICS)
    with pytest.raises(InputError, match=r"holds no model. Search with refit='accuracy', or another"):
        Explainer(several, (NUMBERS, TOPICS))

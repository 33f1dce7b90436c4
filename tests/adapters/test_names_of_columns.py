"""What pipelines make is called as their transformers say, also beside one that has no names."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import precedents as pr

DRAW = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "income": DRAW.normal(3.0, 0.5, 60),
        "debt": DRAW.normal(1.0, 0.5, 60),
        "city": DRAW.choice(["Bonn", "Ulm"], 60),
        "note": DRAW.choice(["paid late", "paid"], 60),
        "opened": pd.Timestamp("2020-01-01") + pd.to_timedelta(DRAW.integers(0, 900, 60), "D"),
    }
)
Y = np.where(FRAME["income"] > 3, "yes", "no")


def years(x) -> np.ndarray:
    return np.stack([2024 - pd.DatetimeIndex(x.iloc[:, i]).year for i in range(x.shape[1])], axis=1)


def squares(x) -> np.ndarray:
    return np.c_[x, np.sign(x)]


AGE = make_pipeline(FunctionTransformer(years), StandardScaler())
YEAR = make_pipeline(FunctionTransformer(years), OneHotEncoder())
NUMBERS, CITY = ("num", StandardScaler(), ["income", "debt"]), ("city", OneHotEncoder(), ["city"])
BLOCKS = {
    "all have names": ([NUMBERS, CITY], ["income", "debt", "city_Bonn", "city_Ulm"]),
    "dates": (
        [NUMBERS, ("date", AGE, ["opened"]), CITY],
        ["income", "debt", "opened", "city_Bonn", "city_Ulm"],
    ),
    "categories": (
        [("year", YEAR, ["opened"]), CITY],
        ["opened_2", "opened_3", "opened_4", "city_Bonn", "city_Ulm"],
    ),
    "several of one": ([("money", FunctionTransformer(squares), ["debt"])], ["debt 0", "debt 1"]),
    "several of several": (
        [("money", FunctionTransformer(squares), ["income", "debt"])],
        ["money 0", "money 1", "money 2", "money 3"],
    ),
    "texts": (
        [("money", FunctionTransformer(squares), [1]), ("note", TfidfVectorizer(), "note")],
        ["debt 0", "debt 1", "late", "paid"],
    ),
    "what is left out and what passes": (
        [("no", "drop", ["city"]), ("age", AGE, ["opened"]), ("debt", "passthrough", slice(1, 2))],
        ["opened", "debt"],
    ),
}


def names(*steps, x=FRAME) -> list[str] | None:
    return pr.Explainer(make_pipeline(*steps, LogisticRegression()).fit(x, Y), (x, Y)).subject.adapter.features


@pytest.mark.parametrize("kind", BLOCKS)
def test_every_column_has_the_name_that_is_known_of_it(kind) -> None:
    blocks, expected = BLOCKS[kind]
    bare = ColumnTransformer(blocks, verbose_feature_names_out=False)
    assert names(bare) == names(bare, StandardScaler(with_mean=False)) == expected
    found = names(ColumnTransformer(blocks))
    assert [name.partition("__")[2] for name in found] == expected
    assert {name.partition("__")[0] for name in found} <= {name for name, *_ in blocks}


def test_the_names_are_those_of_scikit_learn_where_it_has_them() -> None:
    made = ColumnTransformer([NUMBERS, CITY], remainder="drop").fit(FRAME)
    assert names(made) == made.get_feature_names_out().tolist()
    assert names(made, PCA(2)) == ["pca0", "pca1"]


def test_two_columns_of_one_name_are_told_apart() -> None:
    blocks = [("now", StandardScaler(), ["debt"]), ("then", FunctionTransformer(np.log1p), ["debt"])]
    made = ColumnTransformer(blocks, verbose_feature_names_out=False)
    assert names(made, x=FRAME.assign(debt=FRAME["debt"].abs())) == ["now__debt", "then__debt"]


def test_columns_of_an_array_have_their_own_numbers() -> None:
    x = FRAME[["income", "debt"]].to_numpy()
    made = ColumnTransformer(
        [("b", FunctionTransformer(np.cbrt), [1]), ("a", StandardScaler(), [0])],
        verbose_feature_names_out=False,
    )
    assert names(made, x=x) == ["x1", "x0"]


def test_an_explanation_says_the_share_of_the_column_that_a_person_knows() -> None:
    blocks, _ = BLOCKS["dates"]
    model = make_pipeline(ColumnTransformer(blocks), LogisticRegression()).fit(FRAME, Y)
    explanation = pr.Explainer(model, (FRAME, Y)).explain(FRAME.iloc[:1], k=3)
    said = [line for line in str(explanation).splitlines() if "by share" in line]
    assert said
    assert all(set(line.replace(",", "").split()[2::2]) <= set(FRAME.columns) for line in said)
    fed, columns = (
        model[0].transform(FRAME.iloc[:1])[0],
        pr.Explainer(model, (FRAME, Y)).shares(FRAME[:1], 0).columns,
    )
    squared = np.square(fed) / (1 + np.square(fed).sum())  # of the cosine with itself, beside the bias
    expected = dict(zip(["income", "debt", "opened", "city", "city"], squared, strict=True))
    expected["city"] = squared[3:].sum()
    assert {name: expected[name] for name in columns} == pytest.approx(dict(columns))


def test_columns_that_nobody_names_are_not_taken_for_those_that_went_in() -> None:
    x = FRAME[["income", "debt"]]
    model = make_pipeline(FunctionTransformer(lambda rows: rows.to_numpy()[:, ::-1]), LogisticRegression()).fit(
        x, Y
    )
    assert set(pr.Explainer(model, (x, Y)).shares(x[:1], 0).columns) == {"x0", "x1"}

"""Dates in frames are dates: taken by pipelines, shown and compared, and refused where nothing reads them."""

from datetime import date, datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import precedents as pr
from precedents import Explainer, InputError
from precedents.views.instance import days, written

N = 28
WHEN = pd.Series(pd.date_range("2024-01-01", periods=N, freq="D"))
AMOUNT = np.random.default_rng(0).normal(size=N)
Y = ["end" if day >= 5 else "week" for day in WHEN.dt.day_of_week]


def weekday(frame):
    return np.array([[pd.Timestamp(str(value)).day_of_week] for value in frame.iloc[:, 0]])


def explained(when) -> tuple[pd.DataFrame, Explainer]:
    frame = pd.DataFrame({"when": when, "amount": AMOUNT})
    dates = make_pipeline(FunctionTransformer(weekday), OneHotEncoder(handle_unknown="ignore"))
    columns = make_column_transformer((dates, ["when"]), (StandardScaler(), ["amount"]))
    return frame, Explainer(make_pipeline(columns, LogisticRegression()).fit(frame, Y), (frame, Y))


KINDS = {
    "datetime64": (WHEN, "2024-01-04", "2024-02-03"),
    "time zone": (WHEN.dt.tz_localize("Europe/Berlin"), "2024-01-04 00:00:00+01:00", "2024-02-03"),
    "time": (WHEN + pd.Timedelta("9h30min"), "2024-01-04 09:30:00", "2024-02-03 09:30"),
    "date": (WHEN.dt.date, "2024-01-04", date(2024, 2, 3)),
    "period": (WHEN.dt.to_period("D"), "2024-01-04", "2024-02-03"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_dates_are_shown_as_dates_and_compared_by_days(kind) -> None:
    when, shown, case = KINDS[kind]
    frame, explainer = explained(when)
    for x in (frame.iloc[3], frame.iloc[[3]], {"when": when[3], "amount": AMOUNT[3]}):
        explanation = explainer.explain(x, k=3)
        assert explanation.precedents()[0].index == 3
        for text in (str(explanation), explanation.to_html()):
            assert shown in text
            assert "sd" in text
        assert shown in explanation.plot().axes[0].texts[0].get_text()
    told = explainer.explain({"when": case, "amount": 0.0}, k=1)
    assert told.name(int(told.predictions[0])) == "end"
    assert torch.equal(explainer.scores(frame.iloc[3]), explainer.scores(frame.iloc[[3]]))


def test_an_audit_shows_dates() -> None:
    frame, explainer = explained(WHEN)
    model = explainer.subject.adapter.model
    page = pr.audit(model, (frame, Y), (frame, Y), metrics=["gc"], criteria=["identical_class"], k=1).to_html()
    assert "2024-01-01" in page
    assert "00:00:00" not in page


def test_dates_in_an_array_and_in_polars_are_no_numbers() -> None:
    table = WHEN.to_numpy()[:, None]
    read = FunctionTransformer(lambda dates: dates.astype("datetime64[D]").astype(int) % 7)
    explainer = Explainer(make_pipeline(read, LogisticRegression()).fit(table, Y), (table, Y))
    assert "x0 2024-01-0" in str(explainer.explain(table[3], k=1))
    frame = pl.DataFrame({"when": WHEN.dt.date.tolist(), "amount": AMOUNT})
    read = FunctionTransformer(lambda rows: rows.select(pl.col("when").dt.weekday(), "amount").to_numpy())
    explainer = Explainer(make_pipeline(read, LogisticRegression()).fit(frame, Y), (frame, Y))
    assert "when 2024-01-04" in str(explainer.explain(frame[3:4], k=1))


def test_dates_that_nothing_reads_are_refused_by_their_column() -> None:
    frame, explainer = explained(WHEN)
    model = LogisticRegression().fit(AMOUNT[:, None], Y)
    with pytest.raises(InputError, match=r"column 'when' of the training set holds dates.*FunctionTransformer"):
        Explainer(model, (frame, Y))
    with pytest.raises(InputError, match=r"column 'when' of the training set holds datetime64"):
        Explainer(torch.nn.Linear(2, 2), frame.assign(label=0))
    with pytest.raises(InputError, match=r"holds dates, and a model computes with numbers\. Make days of them"):
        Explainer(torch.nn.Linear(1, 2), (WHEN.to_numpy()[:, None], torch.zeros(N, dtype=torch.long)))
    with pytest.raises(InputError, match=r"column 'when' holds dates .* case is 'soon'\. Pass a date"):
        explainer.explain({"when": "soon", "amount": 0.0})


def test_a_date_is_written_without_a_time_that_says_nothing() -> None:
    assert written(pd.Timestamp("2024-01-04")) == "2024-01-04"
    assert written(np.datetime64("2024-01-04T09:30", "ns")) == "2024-01-04 09:30:00"
    assert written(pd.Period("2024-01", "M")) == "2024-01"
    assert written(pd.NaT) == "NaT"
    assert days(pd.NaT) is None
    assert days(3.0) is None
    assert days(datetime(1970, 1, 2, 12)) == days(np.datetime64("1970-01-02T12:00")) == 1.5
    assert days(pd.Timestamp("1970-01-02", tz="Asia/Tokyo")) == pytest.approx(15 / 24)
    assert days(pd.Timedelta("36h")) == 1.5

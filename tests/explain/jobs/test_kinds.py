"""Every job answers for data of every kind: streams, folders that were saved, frames with ids and names."""

import pandas as pd
import pytest
import torch
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from torch.utils.data import IterableDataset

import precedents as pr


class Stream(IterableDataset):
    def __init__(self, pair) -> None:
        self.pair = pair

    def __iter__(self):
        return iter(zip(*self.pair, strict=True))


def of_frame() -> tuple[pr.Explainer, object, object, tuple[str, str]]:
    frame = pd.DataFrame(
        {"age": range(30), "tone": ["calm", "rude"] * 15}, index=[f"order {i}" for i in range(30)]
    )
    labels = ["yes" if i % 3 else "no" for i in range(30)]
    coded = make_column_transformer((OneHotEncoder(), ["tone"]), remainder="passthrough")
    model = make_pipeline(coded, LogisticRegression(max_iter=500)).fit(frame, labels)
    test = frame.iloc[:9], labels[:9]
    return pr.Explainer(model, (frame, labels)), test[0], test, ("yes", "no")


@pytest.fixture(params=["stream", "loaded", "frame"])
def asked(request, model, train, tmp_path):
    if request.param == "frame":
        return of_frame()
    if request.param == "stream":
        return pr.Explainer(model, Stream(train)), train[0][:4], (train[0][:9], train[1][:9]), (0, 1)
    pr.Explainer(model, train).save(tmp_path / "saved")
    loaded = pr.Explainer.load(tmp_path / "saved", model, train)
    return loaded, train[0][:4], (train[0][:9], train[1][:9]), (0, 1)


def test_every_job_answers(asked) -> None:
    explainer, cases, test, (one, other) = asked
    first = cases.iloc[:1] if hasattr(cases, "iloc") else cases[0]
    found = [
        explainer.self_relevance(),
        explainer.suspects(3, test),
        explainer.contrast(first, one, other),
        explainer.answers([0, 1], cases),
        explainer.near_duplicates(test),
        explainer.groups(cases),
        explainer.groups(test, "truth"),
        pr.compare(explainer, explainer, cases),
    ]
    for each in found:
        assert str(each).startswith(each.heading)
        assert len(each.to_frame()) == len(each.rows())
        assert each.to_json()
        assert each.to_html()
    assert sum(pair.exact for pair in found[4].pairs if pair.where == "test") == 9


def test_ids_and_names_are_shown() -> None:
    explainer, _, test, _ = of_frame()
    found = explainer.suspects(2, test)
    assert found.to_frame()["id"].str.startswith("order ").all()
    assert set(found.to_frame()["label"]) <= {"yes", "no"}
    assert "order " in str(found)


def test_a_training_set_that_has_changed_is_refused(model, train) -> None:
    x = train[0].clone()
    explainer = pr.Explainer(model, (x, train[1]))
    explainer.self_relevance()
    x[3] += 1
    with pytest.raises(pr.StaleError, match="Row 3 of the training set has changed"):
        explainer.self_relevance()


def test_the_model_comes_back_as_it_was(digits) -> None:
    before = {name: value.clone() for name, value in digits.model.state_dict().items()}
    state = torch.get_rng_state()
    digits.explainer().suspects(3, digits.test)
    digits.explainer().near_duplicates()
    assert all(torch.equal(value, before[name]) for name, value in digits.model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), state)

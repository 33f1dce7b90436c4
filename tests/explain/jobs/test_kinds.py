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


def jobs(explainer, cases, labelled) -> dict[str, object]:
    """Every job that takes cases or a labelled set, by its name."""
    return {
        "explain": lambda: explainer.explain(cases),
        "scores": lambda: explainer.scores(cases),
        "shares": lambda: explainer.shares(cases, 0),
        "contrast": lambda: explainer.contrast(cases, 0, 1),
        "answers": lambda: explainer.answers(0, cases),
        "groups": lambda: explainer.groups(cases),
        "groups by error": lambda: explainer.groups(labelled, "error"),
        "compare": lambda: pr.compare(explainer, explainer, cases),
        "suspects": lambda: explainer.suspects(cases=labelled),
        "near_duplicates": lambda: explainer.near_duplicates(labelled),
    }


@pytest.mark.parametrize("kind", ["tensor", "list", "frame", "column"])
def test_no_cases_are_one_clear_line_from_every_job(kind, model, train) -> None:
    explainer = of_frame()[0] if kind in ("frame", "column") else pr.Explainer(model, train)
    frame = explainer.subject.train.originals.data if kind in ("frame", "column") else None
    nothing = {"tensor": train[0][:0], "list": []} if frame is None else {"frame": frame[:0], "column": []}
    cases = nothing[kind]
    labels = train[1][:0] if frame is None else []
    for name, job in jobs(explainer, cases, (frame[:0] if kind == "column" else cases, labels)).items():
        with pytest.raises(pr.InputError) as refused:
            job()
        said = str(refused.value)
        assert said.startswith(("There are no cases. Pass at least one", "The test set is empty. Pass")), name
        assert "\n" not in said


def test_a_k_that_there_is_not_is_refused_alike_by_every_job(digits) -> None:
    explainer, x, small = digits.explainer(), digits.test[0][:4], torch.eye(3)
    asked = {
        "explain": lambda k: explainer.explain(x, k),
        "answers": lambda k: explainer.answers(0, x, k),
        "groups": lambda k: explainer.groups(x, k=k),
        "groups of none": lambda k: explainer.groups(x, [None] * 4, k),
        "compare": lambda k: pr.compare(explainer, explainer, x, k),
        "suspects": lambda k: explainer.suspects(k),
    }
    for job in asked.values():
        for k in (0, 601, 2.5, "3"):
            with pytest.raises(
                pr.InputError, match=r"there are 600 training instances\. Ask for k from 1 to 600"
            ):
                job(k)
    few = pr.Explainer(torch.nn.Linear(3, 2), (small, torch.tensor([0, 1, 0])))
    assert (len(few.suspects()), pr.compare(few, few, small).k) == (3, 3)
    assert len(few.contrast(small[0], 0, 1)) == 3  # all of both classes, which have fewer than five

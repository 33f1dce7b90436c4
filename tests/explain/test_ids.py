"""What instances are called, by a frame's index, a column or ids=: in print, pictures, exports and audits."""

import json
import re
from dataclasses import replace

import hugging
import numpy as np
import pandas as pd
import pytest
import torch
from datasets import Dataset
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from torch.utils.data import DataLoader

import precedents as pr
from precedents import Explainer, InputError
from precedents.explain.saving import MANIFEST
from precedents.runtime.sealed import sealed

N = 24
X = np.random.default_rng(0).normal(size=(N, 3))
Y = np.where(X[:, 0] > 0, "good", "bad")
NAMES = [f"order-{i + 100}" for i in range(N)]
FRAME = pd.DataFrame(X, columns=list("abc"), index=NAMES)


def fitted(frame) -> Explainer:
    return Explainer(LogisticRegression().fit(frame, Y), (frame, Y))


def linear(**options) -> Explainer:
    torch.manual_seed(0)
    return Explainer(torch.nn.Linear(3, 2).double(), (torch.tensor(X), torch.arange(N) % 2), **options)


def test_a_frames_index_is_what_explanations_print_plot_and_export() -> None:
    explanation = fitted(FRAME).explain(FRAME.iloc[[3, 5]], k=2)
    first = explanation.precedents()[0]
    assert (first.index, first.id) == (3, "order-103")
    text = str(explanation)
    assert text.startswith("case order-103: predicted")
    assert "\n  order-103  " in text
    assert "#" not in text
    assert explanation[1].case_ids == ["order-105"]
    page, titles = explanation.to_html(), [axes.get_title() for axes in explanation.plot().axes]
    assert "case order-105" in page
    assert f"order-103 {(first.label and 'good') or 'bad'}" in page
    assert titles[0].startswith("case order-103")
    assert titles[1].startswith("order-103 ")
    case = json.loads(explanation.to_json())["cases"][1]
    assert (case["case"], case["id"], case["precedents"][0]["id"]) == (1, "order-105", "order-105")
    frame = explanation.to_frame()
    assert frame["case_id"].tolist() == ["order-103"] * 2 + ["order-105"] * 2
    assert [NAMES[i] for i in frame["index"]] == frame["id"].tolist()


def test_without_ids_nothing_is_shown_or_exported_of_them() -> None:
    explanation = linear().explain(torch.tensor(X[:2]), k=1)
    assert re.search(r"^case 0: .*\n  #\d+ ", str(explanation))
    assert "id" not in json.loads(explanation.to_json())["cases"][0]["precedents"][0]
    assert not {"id", "case_id"} & set(explanation.to_frame())
    assert fitted(pd.DataFrame(X)).subject.train.ids is None


INDICES = {
    "numbers": (pd.Index(range(100, 100 + N)), "case 103: ", "#103"),
    "dates": (pd.date_range("2024-01-01", periods=N), "case 2024-01-04: ", "2024-01-04"),
    "levels": (pd.MultiIndex.from_product([["u", "v"], range(N // 2)]), "case u / 3: ", "u / 3"),
    "copies": (pd.Index(["a", "b"] * (N // 2)), "case b: ", "#3"),
    "gaps": (pd.Index([None, *NAMES[1:]]), "case order-103: ", "#3"),
    "fractions": (pd.Index(np.arange(N) / 2), "predicted ", "#3"),
}


@pytest.mark.parametrize("kind", INDICES)
def test_an_index_of_another_kind_names_instances_if_it_tells_them_apart(kind) -> None:
    index, case, precedent = INDICES[kind]
    frame = FRAME.set_index(index)
    for x in (frame.iloc[3], frame.iloc[[3]]):
        text = str(fitted(frame).explain(x, k=1))
        assert text.startswith(case)
        assert f"\n  {precedent}  " in text


def test_texts_in_a_column_are_called_by_its_index() -> None:
    texts = pd.Series([f"{label} wine" for label in Y], index=NAMES)
    model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, Y)
    text = str(Explainer(model, (texts, Y)).explain(texts.iloc[2:4], k=1))
    assert text.startswith("case order-102: ")
    assert re.search(r"\n  order-1\d\d  ", text)


@pytest.mark.parametrize(
    "made", [list, tuple, np.array, pd.Series, pd.Index, iter], ids=lambda made: made.__name__
)
def test_ids_may_be_given_in_any_order_preserving_container(made) -> None:
    first = linear(ids=made(NAMES)).explain(torch.tensor(X[0]), k=1).precedents()[0]
    assert first.id == NAMES[first.index]
    numbers = linear(ids=torch.arange(N) + 7).explain(torch.tensor(X[0]), k=1)
    assert f"\n  #{numbers.precedents()[0].index + 7}  " in str(numbers)
    assert numbers.precedents()[0].id == numbers.precedents()[0].index + 7


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (NAMES[1:], r"There are 23 ids, but the training set has 24 instances\. Pass one"),
        ([*NAMES[1:], NAMES[4]], r"'order-104' is that of instances 3 and 23 of the training set"),
        (
            [None, *NAMES[1:]],
            r"The id of instance 0 of the training set is None\. Pass one text or whole number",
        ),
        ([*NAMES[1:], 0.5], r"The id of instance 23 of the training set is 0\.5"),
        ([*NAMES[1:], " "], r"The id of instance 23 of the training set is ' '"),
        ([True] * N, "is True"),
        (3, r"ids is an int\. Pass one text.*or the name of the column"),
        (set(NAMES), "ids is a set"),
        ("key", "ids is 'key', but the training set has neither a column, a key of its items nor an attribute"),
    ],
)
def test_ids_that_are_none_are_refused_in_one_line(ids, message) -> None:
    with pytest.raises(InputError, match=message) as error:
        linear(ids=ids)
    assert "\n" not in str(error.value)


def test_what_a_terminal_obeys_in_an_id_is_written_out_and_a_long_one_is_cut() -> None:
    explanation = linear(ids=[f"\x1b[31m{i}{'x' * 500}" for i in range(N)]).explain(torch.tensor(X[0]), k=2)
    for text in (str(explanation), explanation.to_html(), explanation.to_json()):
        assert "\x1b" not in text
    assert max(map(len, str(explanation).splitlines())) < 150
    assert "⟨U+001B⟩[31m" in explanation.plot().axes[1].get_title()


class Rows(torch.utils.data.Dataset):
    """Dicts with an id each."""

    def __len__(self) -> int:
        return N

    def __getitem__(self, i: int) -> dict:
        return {"input": torch.tensor(X[i]), "label": i % 2, "key": NAMES[i]}


def test_ids_of_torch_data_are_a_column_a_key_or_an_index() -> None:
    model, table = torch.nn.Linear(3, 2).double(), FRAME.assign(label=np.arange(N) % 2)
    for data, options in (
        (table, {}),
        ((FRAME, np.arange(N) % 2), {}),
        (table.reset_index(names="key"), {"ids": "key"}),
        (Rows(), {"ids": "key"}),
    ):
        explainer = Explainer(model, data, **options)
        assert explainer.subject.train.ids == NAMES
    assert str(Explainer(model, table).explain(FRAME.iloc[3], k=1)).startswith("case order-103: ")


@pytest.mark.parametrize(
    "collate", [None, lambda items: [torch.stack(each) for each in zip(*map(pair, items), strict=True)]]
)
def test_ids_of_a_loader_are_a_key_of_its_datasets_items(collate) -> None:
    items = [{"input": torch.tensor(x), "label": torch.tensor(i % 2), "id": NAMES[i]} for i, x in enumerate(X)]
    loader = DataLoader(items, batch_size=5, collate_fn=collate)
    explainer = Explainer(torch.nn.Linear(3, 2).double(), loader, ids="id", labels=None if collate else "label")
    case = items[4] if collate else {"input": items[4]["input"]}
    first = explainer.explain(case, k=1).precedents()[0]
    assert (first.id, explainer.subject.train.ids) == (NAMES[first.index], NAMES)
    with pytest.raises(InputError, match="ids is 'number', but the training set has neither a column, a key"):
        Explainer(torch.nn.Linear(3, 2).double(), loader, ids="number")


def pair(item) -> tuple[torch.Tensor, torch.Tensor]:
    return item["input"], item["label"]


def test_a_column_of_ids_names_rows_of_hugging_face() -> None:
    bert, rows = (hugging.trained("bert", 2), hugging.tokenizer()), hugging.texts(6, seed=1)
    keyed = [{"id": f"q-{i}", "key": i + 7, **row} for i, row in enumerate(rows)]
    for data in (Dataset.from_list(keyed), keyed, pd.DataFrame(rows, index=[f"q-{i}" for i in range(6)])):
        explainer = Explainer(bert, data)
        assert explainer.subject.train.ids == [f"q-{i}" for i in range(6)]
        assert str(explainer.explain({"id": "new", "text": "rain"}, k=1)).startswith("case new: ")
    assert Explainer(bert, keyed, ids="key").subject.train.ids == list(range(7, 13))
    for column in ([i // 2 for i in range(6)], list(range(6))):  # neither tells more than the places
        data = Dataset.from_list(rows).add_column("idx", column)
        assert Explainer(bert, data).subject.train.ids is None
    with pytest.raises(InputError, match=r"ids names the column 'nope', but the .* have: id, key, text"):
        Explainer(bert, keyed, ids="nope")
    with pytest.raises(InputError, match="The id 0 is that of instances 0 and 1"):
        Explainer(bert, Dataset.from_list(rows).add_column("idx", [i // 2 for i in range(6)]), ids="idx")


def test_ids_are_saved_and_a_folder_without_them_is_loaded(tmp_path) -> None:
    named, train = linear(ids=NAMES), (torch.tensor(X), torch.arange(N) % 2)
    model = named.subject.adapter.module
    named.save(tmp_path / "named")
    loaded = Explainer.load(tmp_path / "named", model, train)
    loaded.save(tmp_path / "named")
    again = Explainer.load(tmp_path / "named", model, train)
    assert str(again.explain(train[0][0])) == str(named.explain(train[0][0]))
    other = Explainer.load(tmp_path / "named", model, train, ids=list(range(50, 50 + N)))
    assert other.explain(train[0][0], k=1).precedents()[0].id >= 50
    manifest = json.loads((tmp_path / "named" / MANIFEST).read_text())
    del manifest["ids"], manifest["checksum"]  # as before there were ids
    (tmp_path / "named" / MANIFEST).write_text(sealed(json.dumps(manifest)))
    assert re.search(r"\n  #\d+ ", str(Explainer.load(tmp_path / "named", model, train).explain(train[0][0])))


def test_an_audit_names_instances_on_its_page_and_in_json() -> None:
    model = LogisticRegression().fit(FRAME, Y)
    test = FRAME.set_index(pd.Index([f"new-{i}" for i in range(N)]))
    found = pr.audit(model, (FRAME, Y), (test, Y), metrics=["gc"], criteria=["identical_class"], k=1)
    page = found.to_html()
    assert "case new-0 = order-100" in page
    assert "case new-0\n" in page
    assert not re.search(r"#\d+ (good|bad)", page)
    assert found.to_dict()["ids"]["case"]["0"] == "new-0"
    again = pr.Audit.from_json(found.to_json())
    assert again.ids == found.ids
    assert again.to_json() == found.to_json()
    given = pr.audit(model, (X, Y), (X, Y), metrics=["gc"], criteria=["identical_class"], k=1, ids=NAMES)
    assert "case 0 = order-100" in given.to_html()
    assert "ids" not in pr.audit(model, (X, Y), (X, Y), metrics=["gc"], criteria=["identical_class"]).to_dict()


def test_a_hub_is_called_by_its_id() -> None:
    x = torch.cat([torch.full((1, 3), 50.0), torch.tensor(X[1:]).abs()]).double()
    data, rest = (x, torch.arange(N) % 2), (x[1:], torch.arange(1, N) % 2)
    model, only = torch.nn.Linear(3, 2).double(), {"metrics": ["dot_x"], "criteria": ["identical_class"]}
    found = pr.audit(model, data, rest, **only, k=1, ids=NAMES)
    told = replace(found, recommendation=replace(found.recommendation, metric="dot_x"))
    assert told.cautions[0] == "Training instance order-100 is the first precedent of 100% of the cases: a hub."

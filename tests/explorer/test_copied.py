"""The Python that pages offer to copy runs, whatever a factory returns, and says what the page says."""

import json

import pytest
import torch

import precedents as pr
from explorer.conftest import Client, filled
from precedents.cli._main import main
from precedents.cli._subject import subject
from precedents.explorer.origin import Provenance
from precedents.explorer.running import started
from precedents.explorer.server import Listener
from precedents.explorer.world import World

FACTORIES = """
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from hugging import texts, tokenizer, trained, trainer

X, Y = torch.randn(40, 4, generator=torch.Generator().manual_seed(0)), torch.arange(40) % 2


def linear():
    torch.manual_seed(0)
    return nn.Linear(4, 2)


def tensors():
    return linear(), (X, Y), (X[:8] + 0.1, Y[:8])


def datasets():
    return linear(), TensorDataset(X, Y), TensorDataset(X[:8] + 0.1, Y[:8])


def mapping():
    model, train, test = tensors()
    return {"model": model, "train": train, "test": test, "classes": ["no", "yes"], "render": list_of, "k": 3}


def larger():
    x = torch.randn(1000, 4, generator=torch.Generator().manual_seed(1))
    return mapping() | {"train": (x, torch.arange(1000) % 2)}


def list_of(x):
    return {f"column {i}": float(value) for i, value in enumerate(x)}


def frames():
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    x = pd.DataFrame({"debt": X[:, 0].numpy(), "town": ["Bonn", "Rome"] * 20})
    x.loc[3, "debt"] = None
    y = ["no", "yes"] * 20
    columns = make_column_transformer((SimpleImputer(), ["debt"]), (OneHotEncoder(), ["town"]))
    return make_pipeline(columns, LogisticRegression()).fit(x, y), (x, y), (x[:8], y[:8])


def hugging_face():
    return (trained("bert"), tokenizer()), texts(20, 1), texts(8, 2)


def of_columns():
    rows = [[{"ticket": row["text"], "topic": row["label"]} for row in texts(n, n)] for n in (20, 8)]
    model = trained("bert"), tokenizer()
    return {"model": model, "train": rows[0], "test": rows[1], "text": "ticket", "labels": "topic"}


def of_a_trainer():
    from datasets import Dataset

    rows = [Dataset.from_list(texts(n, n)).map(lambda row: tokenizer()(row["text"])) for n in (20, 8)]
    parts = {"train_dataset": rows[0], "eval_dataset": rows[1], "processing_class": tokenizer()}
    return trainer(trained("bert"), "trained", **parts)


class Data:
    def train_dataloader(self):
        return DataLoader(TensorDataset(X, Y), shuffle=True)

    def test_dataloader(self):
        return DataLoader(TensorDataset(X[:8] + 0.1, Y[:8]))


def data_module():
    return linear(), Data()
"""
KINDS = [
    *("tensors", "datasets", "mapping", "frames", "hugging_face", "of_columns", "of_a_trainer", "data_module"),
]
PAGES = ("cases", "cases/1", "cases/1?as=1", "train", "train/3", "hubs", "suspects")


@pytest.fixture
def target(tmp_path, monkeypatch) -> str:
    """A module of factories in the folder that one is in."""
    (tmp_path / "own_factories.py").write_text(FACTORIES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return "own_factories"


def pythons(world: World) -> dict[str, str]:
    """What pages offer to copy."""
    explorer = filled(started(world, Listener()))
    try:
        client = Client(explorer)
        client.ask("/api/v1/suspects")
        filled(explorer)
        return {page: json.loads(client.ask(f"/api/v1/{page}")[2])["python"] for page in PAGES}
    finally:
        explorer.stop()


def run(code: str, capsys) -> tuple[dict, str]:
    """What is defined by running it, and what it prints."""
    capsys.readouterr()
    scope: dict = {}
    exec(code, scope)
    return scope, capsys.readouterr().out


@pytest.mark.parametrize("kind", KINDS)
def test_the_python_of_all_pages_runs_whatever_a_factory_returns(kind, target, capsys) -> None:
    chosen = subject(None, f"{target}:{kind}", None)
    explainer = pr.Explainer(chosen.model, chosen.train, "cos_x", **chosen.known_to(pr.Explainer))
    origin = Provenance(target=f"{target}:{kind}", **chosen.returned(pr.Explainer))
    every = pythons(World.of(explainer, chosen.test, [], origin))
    for page, code in every.items():
        assert "precedents" in code, page
        scope, printed = run(code, capsys)
        assert printed, page
    assert torch.equal(scope["explainer"].scores(scope["test"]), explainer.scores(chosen.test))
    assert scope["explainer"].classes == explainer.classes
    assert run(every["cases/1"], capsys)[1].startswith(
        str(explainer.explain(chosen.test.selected([1]), k=8))[:60]
    )


def test_with_an_index_the_python_asks_it(target, capsys) -> None:
    chosen, folder = subject(None, f"{target}:larger", None), "codes"
    built = ["index", "build", "--index", folder, "--target", f"{target}:larger", "--metric", "cos_grad"]
    assert main([*built, "--quiet"]) == 0
    explainer = pr.Explainer.load(folder, chosen.model, chosen.train, **chosen.known_to(pr.Explainer))
    told = chosen.returned(pr.Explainer)
    origin = Provenance(target=f"{target}:larger", index=folder, indexed=explainer.name, **told)
    every = pythons(World.of(explainer, chosen.test, ["cos_x"], origin))
    for page, code in every.items():
        assert "pr.Explainer.load('codes', model, train, classes=made['classes']" in code, page
        assert run(code, capsys)[1], page
    other = origin.python("cos_x", "found = explainer.explain(test.selected([3]), k=2)")
    assert "load" not in other
    assert run(other, capsys)[0]["found"].metric == "cos_x"


def test_an_index_of_a_run_is_asked_too() -> None:
    origin = Provenance(run="runs/a", index="codes", indexed="cos_x")
    assert "pr.Explainer.load('codes', run.model, run.prepared.train, **shown)" in origin.python("cos_x", "")


def test_of_a_script_the_test_set_is_read_as_its_model_takes_it() -> None:
    """The script's own names stand for what it has."""
    scope: dict = {}
    exec(FACTORIES, scope)
    scope["model"], scope["train"], scope["test"] = scope["frames"]()
    exec(Provenance().python("cos_x", "found = explainer.explain(test.selected([3, 1]), k=2)"), scope)
    assert len(scope["found"].predictions) == 2

"""A factory may return a net of skorch with its data, or a module of Lightning with its data module."""

import inspect
import re

import pytest

import precedents as pr
from precedents.cli._options import Target
from precedents.cli._subject import subject
from precedents.runtime.advice import commands

FACTORIES = """
import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset

X = np.random.RandomState(0).randn(20, 3).astype("float32")
Y = (X[:, 0] > 0).astype("int64")


def net():
    from skorch import NeuralNetClassifier

    module = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Softmax(dim=-1))
    made = NeuralNetClassifier(module, max_epochs=1, verbose=0, train_split=None, classes=["no", "yes"])
    return made.fit(X, Y), (X, Y), (X[:5], ["no", "yes", "no", "yes", "no"])


def lightning():
    import pytorch_lightning as pl

    class Module(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = torch.nn.Linear(3, 2)

        def forward(self, x):
            return self.net(x)

    class Data(pl.LightningDataModule):
        def train_dataloader(self):
            return DataLoader(TensorDataset(torch.tensor(X), torch.tensor(Y)), shuffle=True)

        def val_dataloader(self):
            return DataLoader(TensorDataset(torch.tensor(X[:5]), torch.tensor([0, 1, 0, 1, 0])))

    return Module(), Data()


def texts(**more):
    import hugging

    rows = [{"message": row["text"], "ticket": f"no {i}", "label": row["label"]}
            for i, row in enumerate(hugging.texts(12, seed=1))]
    model = hugging.BertForSequenceClassification(
        hugging.BertConfig(**hugging.SIZES, **hugging.TOKENS, **hugging.NAMES)
    )
    return {"model": (model.eval(), hugging.tokenizer()), "train": rows, "test": rows[:2], **more}


def named():
    return texts(text="message", classes=iter(["a", "b", "c"]))
"""
OF_THE_COMMAND = {"metrics", "criteria", "k", "afford", "within", "memory", "keep", "name", "rule", "engine"}


@pytest.fixture
def own(tmp_path, monkeypatch, request) -> str:
    """The module with the factories, which no other test has imported."""
    name = f"own_{re.sub(r'[^a-z]', '_', request.node.name)}"
    (tmp_path / f"{name}.py").write_text(FACTORIES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return name


@pytest.mark.parametrize("name", ["net", "lightning"])
def test_a_factory_returns_what_the_library_takes(name, own) -> None:
    chosen = subject(None, f"{own}:{name}", None)
    assert (len(chosen.train), chosen.test.labels.tolist()) == (20, [0, 1, 0, 1, 0])
    explanation = pr.Explainer(chosen.model, chosen.train).explain(chosen.test.selected([1]), 2)
    assert str(explanation).startswith("predicted")
    assert chosen.trial(chosen.test).cases.labels.shape == (5,)


def test_the_help_names_every_key_that_a_mapping_may_have() -> None:
    (option,) = Target.__metadata__
    said = re.findall(r"\w+", option.help.partition("any of ")[2])
    known = set(inspect.signature(pr.audit).parameters) - {"model", "train", "test"}
    assert set(said) == known - OF_THE_COMMAND
    assert len(said) == len(set(said))


def test_columns_and_classes_are_named_in_the_mapping_that_a_factory_returns(own) -> None:
    chosen = subject(None, f"{own}:named", None)
    explainer = pr.Explainer(chosen.model, chosen.train, **chosen.known_to(pr.Explainer))
    assert explainer.classes == ["a", "b", "c"]
    said = "Say which the model is given: text='message', or text=.* for a pair, as a key of the mapping that"
    with commands(), pytest.raises(pr.InputError, match=said):
        subject(None, f"{own}:texts", None)
    with pytest.raises(pr.InputError, match=r"text='message', or text=\('message', 'ticket'\) for a pair\.$"):
        subject(None, f"{own}:texts", None)

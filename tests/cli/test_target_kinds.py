"""A factory may return a net of skorch with its data, or a module of Lightning with its data module."""

import pytest

from precedents.cli._subject import subject

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
"""


@pytest.mark.parametrize("name", ["net", "lightning"])
def test_a_factory_returns_what_the_library_takes(name, tmp_path, monkeypatch) -> None:
    from precedents import Explainer

    (tmp_path / f"own_{name}.py").write_text(FACTORIES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    chosen = subject(None, f"own_{name}:{name}", None)
    assert (len(chosen.train), chosen.test.labels.tolist()) == (20, [0, 1, 0, 1, 0])
    explanation = Explainer(chosen.model, chosen.train).explain(chosen.test.selected([1]), 2)
    assert str(explanation).startswith("predicted")
    assert chosen.trial(chosen.test).cases.labels.shape == (5,)

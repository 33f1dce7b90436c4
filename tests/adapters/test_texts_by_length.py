"""Texts of different lengths go through the model by their length, and no score tells."""

import hugging
import pytest
import torch
from torch import nn

import precedents as pr


@pytest.fixture(scope="module")
def models():
    return {name: hugging.trained(name, steps=5) for name in ("bert", "llama")}


@pytest.fixture
def bert(models):
    return models["bert"]


def ragged(n: int) -> hugging.Rows:
    lengths = torch.randint(1, 30, (n,), generator=torch.Generator().manual_seed(0)).tolist()
    return [{"input_ids": [2 + (i + k) % 20 for k in range(t)], "label": i % 3} for i, t in enumerate(lengths)]


def passes(explainer, monkeypatch, ask) -> list[torch.Size]:
    """The shapes of the tokens that go through the model while it is asked."""
    seen: list[torch.Size] = []
    call = nn.Module.__call__

    def noted(self, *args, **kwargs):
        if type(self).__name__ == "BertEmbeddings":
            seen.append(kwargs["input_ids"].shape)
        return call(self, *args, **kwargs)

    monkeypatch.setattr(nn.Module, "__call__", noted)
    ask(explainer)
    monkeypatch.undo()
    return seen


@pytest.mark.parametrize(("name", "memory"), [("bert", None), ("bert", "5 MB"), ("llama", "5 MB")])
def test_scores_are_those_of_texts_alone(name, memory, models) -> None:
    train = ragged(12)
    explainer = pr.Explainer(models[name], train, "dot_grad", memory=memory)
    found = explainer.scores(train[:4])[:, :3]
    alone = torch.cat(
        [pr.Explainer(models[name], [row], "dot_grad").scores(train[:4]) for row in train[:3]], dim=1
    )
    torch.testing.assert_close(found, alone, rtol=0, atol=1e-6 * float(alone.abs().max()))


def test_little_padding_goes_through_the_model(bert, monkeypatch) -> None:
    train = ragged(64)
    explainer = pr.Explainer(bert, train, memory="20 MB")
    shapes = passes(explainer, monkeypatch, lambda it: list(it.relevance.vectors.rows(it.subject.train)))
    real, read = sum(len(row["input_ids"]) for row in train), sum(b * t for b, t in shapes)
    assert sum(b for b, _ in shapes) == 64
    assert real <= read < 1.3 * real < 0.8 * 64 * 29


def test_texts_that_are_padded_to_one_length_stay_so() -> None:
    class Fixed(nn.Module):
        """Has a position for each of six tokens, and no fewer."""

        def __init__(self) -> None:
            super().__init__()
            self.words, self.positions = nn.Embedding(9, 4), nn.Parameter(torch.randn(6, 4))
            self.head = nn.Linear(4, 2)

        def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
            x = (self.words(input_ids) + self.positions) * attention_mask[:, :, None]
            logits: torch.Tensor = self.head(torch.tanh(x).sum(dim=1))
            return logits

    ids, mask = torch.randint(9, (10, 6)), (torch.arange(6) < torch.arange(10)[:, None] % 4 + 1).double()
    train = {"input_ids": ids, "attention_mask": mask, "label": torch.arange(10) % 2}
    cases = {"input_ids": ids, "attention_mask": mask}
    assert (
        pr.Explainer(Fixed().double(), train).scores(cases).diagonal().abs().allclose(torch.ones(10).double())
    )

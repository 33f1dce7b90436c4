"""Models of so many parameters that no gradient is held whole while the rules are tried."""

import warnings
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import linear

import precedents as pr
from gradients.single import factored, one_at_a_time, ruled, slow, stirred, world
from precedents.classifier.classifier import Classifier
from precedents.gradients import factors
from precedents.gradients.gradients import loss_gradients, planned
from precedents.gradients.search import FEW_NUMBERS

WIDTH = 320  # of an encoder with more numbers than are compared at once


class Encoder(nn.Module):
    """Tokens, positions without an axis of instances, an encoder layer and a head; and maybe a summand."""

    def __init__(self, summand: bool = False, tied: bool = False) -> None:
        super().__init__()
        self.words, self.positions = nn.Embedding(700, WIDTH), nn.Embedding(20, WIDTH)
        self.layer = nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, batch_first=True)
        self.summand = nn.Parameter(torch.randn(1, 1, WIDTH)) if summand else 0.0
        self.head, self.tied = nn.Linear(WIDTH, 3), tied

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits [b, 3]."""
        x = self.words(tokens) + self.positions(torch.arange(tokens.shape[1])) + self.summand
        x = self.layer(x).mean(dim=1)
        return self.head(linear(x, self.layer.self_attn.out_proj.weight) if self.tied else x)


def tokens(b: int, t: int = 7) -> Tensor:
    return torch.randint(700, (b, t))


def test_an_encoder_is_kept_as_factors_and_right() -> None:
    model = stirred(Encoder())
    assert sum(p.numel() for p in model.parameters()) > FEW_NUMBERS
    names = factored(ruled(model, tokens(3)))
    assert {"words.weight", "layer.self_attn.in_proj_weight", "layer.linear1.weight"} <= names


def test_as_many_instances_as_positions_are_not_mistaken_for_them() -> None:
    inputs = tokens(7)
    model = stirred(Encoder())
    examples, batch = world(inputs)
    ours = loss_gradients(Classifier.of(model, examples), batch).dense()
    theirs = one_at_a_time(model, inputs, batch.labels)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-9 * float(theirs.abs().max()))


def test_a_parameter_without_a_rule_is_given_as_copies_without_a_slower_way() -> None:
    plan = ruled(stirred(Encoder(summand=True)), tokens(3))
    assert plan.recording is not None
    assert list(plan.recording.copies) == [("", "summand")]


def test_a_weight_that_is_used_outside_of_its_layer_is_found_out() -> None:
    _, message = slow(stirred(Encoder(tied=True)), tokens(2))
    assert "for layer.self_attn.out_proj.weight, used outside of a layer" in message


def test_hooks_of_the_trial_are_not_left_on_the_model() -> None:
    examples, _ = world(tokens(3))
    classifier = Classifier.of(stirred(Encoder()), examples)
    planned(classifier)
    assert not any(p._backward_hooks or p.grad is not None for p in classifier.parameters.values())


@pytest.mark.parametrize("metric", ["cos_grad", "dot_grad", "l2_grad"])
def test_any_budget_gives_the_same_scores(metric) -> None:
    torch.manual_seed(0)
    model, train, cases = stirred(Encoder()), (tokens(60), torch.arange(60) % 3), tokens(4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        whole = pr.Explainer(model, train, metric).scores(cases)
        less = pr.Explainer(model, train, metric, memory="40 MB")
    assert less.relevance.vectors.at_once < 60
    scale = float(whole.abs().max())
    torch.testing.assert_close(less.scores(cases), whole, rtol=0, atol=1e-9 * scale)


def test_too_small_a_budget_is_refused_in_one_line() -> None:
    train = tokens(20), torch.arange(20) % 3
    with pytest.raises(pr.BudgetError, match=r"^Per-example gradients of .* parameters needs .* the budget is"):
        pr.Explainer(stirred(Encoder()), train, memory="17 MB")


def test_blocks_are_small_where_most_of_a_long_vector_is_formed() -> None:
    train = tokens(20), torch.arange(20) % 3
    vectors = pr.Explainer(stirred(Encoder()), train, memory="12 GB").relevance.vectors
    long = replace(vectors, width=8_000_000, itemsize=4)
    assert replace(long, row_bytes=31_000_000).at_once == 32
    assert replace(long, row_bytes=15_000_000).at_once == 128


def test_what_is_formed_of_the_cases_for_one_block_is_kept_for_the_others(monkeypatch) -> None:
    torch.manual_seed(0)
    train, cases = (tokens(60, 20), torch.arange(60) % 3), tokens(40, 20)
    formed, bmm = [], torch.bmm

    def counted(*args: Tensor, **options: Tensor) -> Tensor:
        formed.append(len(args[0]) if "out" in options else 0)
        return bmm(*args, **options)

    monkeypatch.setattr(torch, "bmm", counted)
    monkeypatch.setattr(factors, "WRITING", 0)  # so that few positions are enough for pieces
    explainer = pr.Explainer(stirred(Encoder()), train, "dot_grad", memory="150 MB")
    vectors = explainer.relevance.vectors
    assert vectors.at_once < 60
    assert vectors.used(40) + vectors.room <= vectors.workspace.subject.classifier.budget.bytes
    kept, once = explainer.scores(cases), formed.count(40)
    formed.clear()
    monkeypatch.setattr(type(vectors), "repeated", lambda *_: 0)
    torch.testing.assert_close(kept, explainer.scores(cases), rtol=1e-12, atol=0)
    assert 0 < once < formed.count(40)

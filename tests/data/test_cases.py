"""Cases as people have them: a dataset, an item or several, a part of it, a loader; all questions take them."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from collating import TEST, TRAIN, Recurrent, with_lengths
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset

import precedents as pr

X = torch.randn(12, 4, generator=torch.Generator().manual_seed(0))
Y = torch.arange(12) % 3
NAMES = ["bee", "cat", "dog"]


class Items(Dataset):
    """Map-style; `form` makes items of an input and its label."""

    def __init__(self, form: Callable[[torch.Tensor, int], Any], n: int = 12) -> None:
        self.form, self.n = form, n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> Any:
        return self.form(X[i], int(Y[i]))


class Named(nn.Module):
    """Takes its input by name."""

    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(x)


class Two(nn.Module):
    """Takes two inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Linear(8, 3)

    def forward(self, one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        return self.last(torch.cat([one, other], dim=1))


FORMS: dict[str, tuple[type | Callable[[], nn.Module], Any, Any]] = {
    "pairs": (lambda: nn.Linear(4, 3), lambda x, y: (x, y), X),
    "arrays and numbers": (lambda: nn.Linear(4, 3), lambda x, y: (x.numpy(), torch.tensor(y)), X),
    "lists": (lambda: nn.Linear(4, 3), lambda x, y: [x, y], X),
    "names": (lambda: nn.Linear(4, 3), lambda x, y: (x, NAMES[y]), X),
    "two inputs": (Two, lambda x, y: ((x, x), y), (X, X)),
    "dicts": (Named, lambda x, y: {"x": x, "label": y}, {"x": X}),
    "named inputs": (Named, lambda x, y: ({"x": x}, y), {"x": X}),
}


@pytest.fixture(params=FORMS)
def asked(request) -> tuple[pr.Explainer, Dataset, Any]:
    """An explainer, its set of items, and the inputs of all of them."""
    model, form, inputs = FORMS[request.param]
    classes = NAMES if request.param == "names" else None
    torch.manual_seed(0)
    return pr.Explainer(model(), Items(form), "cos_x", classes=classes), Items(form), inputs


def whole(inputs: Any, n: int) -> Any:
    if isinstance(inputs, dict):
        return {key: each[:n] for key, each in inputs.items()}
    return tuple(each[:n] for each in inputs) if isinstance(inputs, tuple) else inputs[:n]


@pytest.mark.parametrize(
    ("passed", "n"),
    [
        (lambda data: data, 12),
        (lambda data: Subset(data, range(5)), 5),
        (lambda data: [data[i] for i in range(3)], 3),
        (lambda data: [data[0], data[1]], 2),
        (lambda data: [data[0]], 1),
        (lambda data: DataLoader(data, batch_size=5), 12),
        (lambda data: data[0], 1),
    ],
    ids=["dataset", "subset", "items", "two items", "one item in a list", "loader", "item"],
)
def test_a_set_or_its_items_are_cases(asked, passed, n) -> None:
    explainer, data, inputs = asked
    assert torch.equal(explainer.scores(passed(data)), explainer.scores(whole(inputs, n)))
    assert explainer.explain(passed(data), k=1).predictions.shape == (n,)


def linear() -> pr.Explainer:
    torch.manual_seed(0)
    return pr.Explainer(nn.Linear(4, 3), (X, Y), "cos_x")


SETS = {
    "dataset": Items(lambda x, y: (x, y)),
    "tensors": TensorDataset(X, Y),
    "subset": Subset(Items(lambda x, y: (x, y), 20), range(12)),
    "items": [(X[i], int(Y[i])) for i in range(12)],
    "pair": (X, Y),
    "loader": DataLoader(TensorDataset(X, Y), batch_size=5),
    "examples": pr.Examples.of((X, Y)),
}
QUESTIONS: dict[str, Callable[[pr.Explainer, Any], Any]] = {
    "explain": lambda e, test: e.explain(test, k=2).to_dict(),
    "explain with labels": lambda e, test: e.explain(test, k=2, labels=Y, truth=Y).to_dict(),
    "scores": lambda e, test: e.scores(test).tolist(),
    "answers": lambda e, test: str(e.answers(1, test)),
    "compare": lambda e, test: str(pr.compare(e, pr.Explainer(nn.Linear(4, 3), (X, Y), "l2_x"), test)),
    "near_duplicates": lambda e, test: str(e.near_duplicates(test)),
    "groups": lambda e, test: str(e.groups(test)),
    "groups of errors": lambda e, test: str(e.groups(test, by="error")),
    "suspects": lambda e, test: str(e.suspects(3, cases=test)),
}


@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("question", QUESTIONS)
def test_every_question_takes_a_test_set_in_any_form(question, kind) -> None:
    torch.manual_seed(1)  # of the other model that is compared
    found = QUESTIONS[question](linear(), SETS[kind])
    torch.manual_seed(1)
    assert found == QUESTIONS[question](linear(), SETS["examples"])


@pytest.mark.parametrize("case", [X[0], (X[0], 2), [X[0]], [(X[0], 2)], Subset(TensorDataset(X, Y), [0])])
def test_contrast_takes_a_case_in_any_form(case) -> None:
    assert str(linear().contrast(case, 0, 1)) == str(linear().contrast(X[0], 0, 1))


def test_labels_may_stand_first() -> None:
    data = Items(lambda x, y: (y, x))
    explainer = pr.Explainer(nn.Linear(4, 3), pr.Examples.of(data, labels=0), "cos_x")
    assert torch.equal(explainer.scores(data[3]), explainer.scores(X[3]))


def test_items_without_labels_are_cases() -> None:
    assert torch.equal(linear().scores(Items(lambda x, _: x)), linear().scores(X))
    assert torch.equal(linear().scores([X[0], X[1]]), linear().scores(X[:2]))


@pytest.mark.parametrize("n", [3, 5])
def test_lists_of_tokens_as_long_as_their_batch_are_no_labels(n) -> None:
    tokens = torch.randint(0, 7, (6, n), generator=torch.Generator().manual_seed(0))
    model = nn.Sequential(nn.Embedding(7, 3), nn.Flatten(), nn.Linear(3 * n, 3))
    explainer = pr.Explainer(model, (tokens, torch.arange(6) % 3), "cos_last")
    two = explainer.scores(tokens[:2])
    assert torch.equal(explainer.scores([tokens[0], tokens[1]]), two)
    assert torch.equal(explainer.scores([tokens[:2], torch.tensor([0, 1])]), two)


def test_an_item_that_is_no_case_is_named() -> None:
    with pytest.raises(pr.InputError, match=r"^Item 2 of the cases is none: The cases have the shape \(3,\)"):
        linear().explain([X[0], X[1], X[2, :3]])
    with pytest.raises(pr.InputError, match=r"^Item 0 of the cases is none: It is a batch\."):
        linear().explain(Items(lambda x, y: (x[None], torch.tensor([y]))))


def test_what_is_no_case_at_all_is_refused_as_it_stands() -> None:
    with pytest.raises(pr.InputError, match="the training instances are one tensor"):
        linear().explain((X, X))


def test_a_loader_with_a_collate_fn_is_cases() -> None:
    loader = DataLoader(TEST, batch_size=4, shuffle=True, collate_fn=with_lengths)
    explainer = pr.Explainer(Recurrent(), DataLoader(TRAIN, batch_size=8, collate_fn=with_lengths), "cos_last")
    assert torch.equal(explainer.scores(loader), explainer.scores(TEST))
    assert explainer.explain(loader, k=1).predictions.shape == (len(TEST),)

"""Rows of instances in other numbers than in the first batch, on which the gradients were tried."""

import oracle
import pytest
import torch
from plain import cosines
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

from precedents import Explainer

WORDS, LONG = 20, 6
pytestmark = pytest.mark.filterwarnings(
    "ignore::precedents.gradients.search.SlowGradientsWarning",
    "ignore::precedents.classifier.order.SlowPassesWarning",
)


def texts(n: int, seed: int) -> Tensor:
    return torch.randint(1, WORDS, (n, LONG), generator=torch.Generator().manual_seed(seed))


class Unpadded(nn.Module):
    """Computes on the tokens that are there alone."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.hidden, self.head = nn.Embedding(WORDS, 4), nn.Linear(4, 4), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        there, words = x > 0, self.words(x)
        found = torch.zeros_like(words)
        found[there] = self.hidden(words[there]).tanh()
        return self.head(found.sum(dim=1))


class Windows(nn.Module):
    """Takes the windows of all instances, so many at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.hidden, self.head = nn.Embedding(WORDS, 4), nn.Linear(8, 4), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        windows = self.words(x).reshape(-1, 8)
        found = torch.cat([self.hidden(some).tanh() for some in windows.split(24)])
        return self.head(found.reshape(len(x), 3, -1).mean(dim=1))


class Table(nn.Module):
    """Has no rule, and gets a table with a row for each position beside the instances."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = (nn.Parameter(torch.randn(4, 4) / 2) for _ in range(2))

    def forward(self, words: Tensor, table: Tensor) -> Tensor:
        scale = torch.einsum("td,de->te", table, self.other).tanh()
        return torch.einsum("btd,de->bte", words, self.one) * scale


class Placed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.table, self.head = nn.Embedding(WORDS, 4), Table(), nn.Linear(4, 3)
        self.register_buffer("places", torch.randn(LONG, 4))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.table(self.words(x), self.places).tanh().mean(dim=1))


@pytest.mark.parametrize("make", [Unpadded, Windows, Placed])
def test_scores_are_those_of_plain_autograd_for_any_number_of_cases(make) -> None:
    torch.manual_seed(0)
    model, x, labels = make().double(), texts(30, seed=1), torch.arange(30) % 3
    if make is Unpadded:  # where all that are tried beforehand are as long as each other
        for i in (*range(3, 9), *range(12, 18)):
            x[i, 1 + i % 5 :] = 0
    explainer = Explainer(model, (x, labels))
    for few in (1, 2, 3, 4, 5, 6, 8, 12, 24):
        wanted = torch.tensor(oracle.relevance("cos_grad", model, (x, labels), x[5 : 5 + few]))
        torch.testing.assert_close(explainer.scores(x[5 : 5 + few]), wanted, rtol=0, atol=1e-9)


class PositionsFirst(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.hidden, self.head = nn.Embedding(WORDS, 4), nn.Linear(4, 4), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        found = self.hidden(self.words(x)).tanh() * (x > 0)[..., None]
        return self.head(found.sum(dim=0))


class InstancesFirst(PositionsFirst):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.T)


def test_texts_of_one_token_are_no_text_for_all_where_positions_come_first() -> None:
    torch.manual_seed(0)
    items = [(texts(1, seed=i)[0, : 1 if i > 15 else 1 + i % 5], i % 3) for i in range(30)]

    def collate(some: list[tuple[Tensor, int]]) -> tuple[Tensor, Tensor]:
        own, labels = zip(*some, strict=True)
        return pad_sequence(own), torch.tensor(labels)

    model = PositionsFirst().double()
    explainer = Explainer(model, DataLoader(items, batch_size=8, collate_fn=collate))
    plain = InstancesFirst().double()
    plain.load_state_dict(model.state_dict())
    x = pad_sequence([text for text, _ in items], batch_first=True)
    for places in ([20], [20, 21], [20, 21, 22, 23, 24], [0, 20, 3]):
        few = [items[i] for i in places]
        labels = [int(model(collate([item])[0]).argmax()) for item in few]
        wanted = cosines(plain, torch.cat([x[places], x]), torch.tensor([*labels, *(y for _, y in items)]))
        found = explainer.scores(few)
        torch.testing.assert_close(found, wanted[: len(few), len(few) :], rtol=0, atol=1e-9)

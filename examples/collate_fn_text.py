# %% [markdown]
# # Texts of any length, with a collate_fn of your own
#
# Two classifiers of short news, as they are usually written: an LSTM over packed sequences, whose collate_fn
# pads every batch and returns (tokens, lengths, labels); and an EmbeddingBag, whose collate_fn returns
# (labels, text, offsets). Their loaders are passed as they are, and a case is a text.

# %%
import random

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader

import precedents as pr

# %% A few hundred texts: some words of a topic among words of every day
TOPICS = {
    "weather": ["rain", "snow", "wind", "sun", "storm", "frost", "cloud", "fog"],
    "sport": ["goal", "match", "team", "coach", "race", "player", "win", "score"],
    "food": ["soup", "bread", "salt", "spice", "lunch", "cook", "cheese", "apple"],
}
COMMON = ["the", "a", "was", "is", "very", "and", "today", "after", "long", "good"]
draw = random.Random(0)


def sentence(topic: str) -> str:
    words = draw.choices(COMMON, k=draw.randrange(1, 12)) + draw.choices(TOPICS[topic], k=2)
    return " ".join(draw.sample(words, len(words)))


def news(n: int) -> list[tuple[str, str]]:
    return [(topic, sentence(topic)) for i in range(n) for topic in [list(TOPICS)[i % 3]]]


train, test = news(300), news(45)
words = ["<pad>", *COMMON, *(word for topic in TOPICS.values() for word in topic)]
vocabulary = {word: i for i, word in enumerate(words)}


def numbers(text: str) -> torch.Tensor:
    return torch.tensor([vocabulary[word] for word in text.split()])


# %% An LSTM: batches are padded, and the lengths say how far
def padded(batch):
    tokens = [numbers(text) for _, text in batch]
    labels = torch.tensor([list(TOPICS).index(topic) for topic, _ in batch])
    return pad_sequence(tokens, batch_first=True), torch.tensor([len(each) for each in tokens]), labels


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(vocabulary), 16, padding_idx=0)
        self.lstm = nn.LSTM(16, 16, batch_first=True)
        self.head = nn.Linear(16, len(TOPICS))

    def forward(self, tokens, lengths):
        packed = pack_padded_sequence(self.embedding(tokens), lengths, batch_first=True, enforce_sorted=False)
        _, (last, _) = self.lstm(packed)
        return self.head(last[-1])


torch.manual_seed(0)
loader = DataLoader(train, batch_size=32, shuffle=True, collate_fn=padded)
model = Recurrent()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(6):
    for tokens, lengths, labels in loader:
        optimizer.zero_grad()
        cross_entropy(model(tokens, lengths), labels).backward()
        optimizer.step()

# %% Explain: the loader is passed as it is, the case as a text; instances are numbered as in the dataset
explainer = pr.Explainer(model, loader, classes=list(TOPICS))
explanation = explainer.explain("after the long race a good lunch", k=5)
print(explanation)
explanation.plot()


# %% An EmbeddingBag: all texts of a batch in one row, the offsets at which they begin, and the labels first
def in_a_row(batch):
    tokens = [numbers(text) for _, text in batch]
    labels = torch.tensor([list(TOPICS).index(topic) for topic, _ in batch])
    return labels, torch.cat(tokens), torch.tensor([0, *map(len, tokens)][:-1]).cumsum(dim=0)


class Bag(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.EmbeddingBag(len(vocabulary), 16)
        self.head = nn.Linear(16, len(TOPICS))

    def forward(self, text, offsets):
        return self.head(self.embedding(text, offsets))


bag_loader = DataLoader(train, batch_size=32, shuffle=True, collate_fn=in_a_row)
bag = Bag()
optimizer = torch.optim.Adam(bag.parameters(), lr=0.05)
for _ in range(6):
    for labels, text, offsets in bag_loader:
        optimizer.zero_grad()
        cross_entropy(bag(text, offsets), labels).backward()
        optimizer.step()

of_bag = pr.Explainer(bag, bag_loader, classes=list(TOPICS)).explain("after the long race a good lunch", k=3)
print(of_bag)

# %% Should you believe it? The test set needs no loader of its own
audit = pr.audit(model, loader, test, metrics=["cos_last", "dot_grad", "cos_grad"])
print(audit)

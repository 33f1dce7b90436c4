"""What kind of answer does a question want? A recurrent network, explained by its training questions.

The model takes padded numbers of words, which nobody can read: `render` turns them back into words, and
`vectorise` into counts for the metrics on inputs.

Run it as a script, or cell by cell in an editor that knows `# %%`.
"""

# %% A few questions of four kinds; every fifth is kept for later
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import precedents as pr

QUESTIONS = {
    "person": """who wrote the first novel about the sea
who was the captain of the winning team
which queen ruled the island for sixty years
who painted the ceiling of the old chapel
who invented the paper clip
which actor played the king in the film
who discovered the small planet
who was the first woman on the mountain
what is the name of the painter of the garden
who built the tower by the river
which scientist wrote about the stars
who taught the young prince to read
who sold the famous ring
what woman crossed the desert alone
who is the author of the long poem""",
    "place": """where is the oldest bridge in the country
what city has the longest wall
where did the painter live as a child
which river flows through the capital
where do the white birds spend the winter
what country grows the most rice
in which town was the first film shown
where was the treaty about the sea made
what island has no snakes
where is the tower of the winds
which mountain is the highest in the south
what is the capital of the old kingdom
where can one see the northern lights
in what country was the clock invented
where did the ship sink""",
    "number": """how many rooms has the old palace
how long is the river in the south
how old is the tallest tree
how many people live on the island
what year did the bridge open
how far is the moon from the earth
when was the first film shown
how many strings has a harp
how tall is the tower by the river
what is the speed of sound
how much does an elephant weigh
in what year was the treaty made
how many kings ruled the country
how long does a ship take to cross the sea
what age was the poet at the end""",
    "meaning": """what does the word harbour mean
what is a comet
what does the old sign at the door mean
what is the origin of the word alphabet
what is a treaty
what does the colour of the flag stand for
what are the northern lights
what is meant by a leap year
what does the letter at the end stand for
what is a harp
what is the definition of a planet
what is the meaning of the white flag
what does it mean to weigh anchor
what is a novel
what is the difference between a river and a stream""",
}
questions = [(line, kind) for kind, lines in QUESTIONS.items() for line in lines.splitlines()]
kinds = list(QUESTIONS)
held = questions[4::5]
kept = [each for each in questions if each not in held]

# %% Words become numbers; 0 is padding, 1 a word that was not seen
words = ["", "?", *sorted({word for text, _ in kept for word in text.split()})]
number = {word: place for place, word in enumerate(words)}
LENGTH = max(len(text.split()) for text, _ in questions)


def encoded(texts: list[str]) -> Tensor:
    """Numbers of words [n, LENGTH], padded at the end."""
    rows = [[number.get(word, 1) for word in text.split()] for text in texts]
    return torch.tensor([row + [0] * (LENGTH - len(row)) for row in rows])


def sets(pairs: list[tuple[str, str]]) -> tuple[Tensor, Tensor]:
    return encoded([text for text, _ in pairs]), torch.tensor([kinds.index(kind) for _, kind in pairs])


train, test = sets(kept), sets(held)


# %% A network that reads a question from left to right and decides by the mean of what it saw
class Reader(nn.Module):
    """Embedding, GRU, mean over the words that are there, linear."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(words), 12, padding_idx=0)
        self.gru = nn.GRU(12, 16, batch_first=True)
        self.head = nn.Linear(16, len(kinds))

    def forward(self, tokens: Tensor) -> Tensor:
        there = (tokens > 0)[..., None]  # [b, LENGTH, 1]
        states = self.gru(self.embedding(tokens))[0] * there
        return self.head(states.sum(dim=1) / there.sum(dim=1))


torch.manual_seed(0)
model = Reader()
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
for _ in range(40):
    optimizer.zero_grad()
    cross_entropy(model(train[0]), train[1]).backward()
    optimizer.step()
accuracy = (model(test[0]).argmax(dim=1) == test[1]).float().mean()
print(f"accuracy {accuracy:.3f} on {len(held)} questions")


# %% Which questions speak for the prediction?
def render(tokens: Tensor) -> str:
    """What a person sees of an instance."""
    return " ".join(words[token] for token in tokens.tolist() if token)


def counts(tokens: Tensor) -> Tensor:
    """How often each word occurs [b, words]; padding does not count."""
    return nn.functional.one_hot(tokens, len(words)).sum(dim=1)[:, 1:].double()


explainer = pr.Explainer(model, train, classes=kinds, render=render, vectorise=counts)
asked = "who saw the white birds on the island"
explanation = explainer.explain(encoded([asked])[0], k=4)
print(asked)
print(explanation)
for precedent in explanation.precedents():
    print(f"{precedent.score:+.3f}", kept[precedent.index][0])

# %% What was decided wrongly, and because of what?
wrong = (model(test[0]).argmax(dim=1) != test[1]).nonzero().flatten().tolist()
for place in wrong:
    first = explainer.explain(test[0][place], k=1).precedents()[0]
    text, kind = held[place]
    print(f"{text!r} wants a {kind}; taken for a {kinds[first.label]}: {kept[first.index][0]!r}")

# %% Should you believe it? With twelve questions to try them on, intervals are wide
audit = pr.audit(
    model,
    train,
    test,
    metrics=["cos_x", "cos_last", "dot_grad", "cos_grad"],
    classes=kinds,
    render=render,
    vectorise=counts,
    k=3,
)
print(audit)
print(audit["cos_grad", "identical_class"])

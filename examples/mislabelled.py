"""Find mislabelled training data: what the model and the neighbours of an instance do not believe.

Sixty of 1,200 digits get a wrong label. `suspects` ranks all labels by what speaks against them: the model's
own doubt, and neighbours with another label. And it proposes a better one. What precedents add is which wrong
labels did harm: those behind wrong predictions. These are found by an inner product of gradients, which is
large where a label is believed because of itself alone.

Run it as a script, or cell by cell in an editor that knows `# %%`.
"""

# %% Digits, with five percent of the labels flipped
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

import precedents as pr

FLIPPED = 60
images, digits = load_digits(return_X_y=True)
random = np.random.default_rng(0)
order = random.permutation(len(images))
train, held = order[:1200], order[1200:]
labels = digits[train].copy()
flipped = random.choice(len(train), FLIPPED, replace=False)
labels[flipped] = (labels[flipped] + random.integers(1, 10, FLIPPED)) % 10
wrong = labels != digits[train]

model = make_pipeline(MinMaxScaler(), LogisticRegression(max_iter=1000)).fit(images[train], labels)
accuracy = model.score(images[held], digits[held])
print(f"{wrong.sum()} of {len(train)} labels are wrong; accuracy {accuracy:.3f} on {len(held)} others")

# %% Training labels that may be wrong, most suspicious first
explainer = pr.Explainer(model, (images[train], labels), render=lambda row: row.reshape(8, 8))
found = explainer.suspects(k=len(train), cases=(images[held], digits[held]))
suspects = np.array(found.indices)
print(explainer.suspects(k=5))


def recall(ranking: np.ndarray, looked: int) -> float:
    """Which part of the wrong labels is among the first of the ranking."""
    return wrong[ranking[:looked]].sum() / wrong.sum()


for looked in (FLIPPED, 2 * FLIPPED):
    print(f"looking at {looked} of {len(train)} finds {recall(suspects, looked):.0%} of the wrong labels")
better = found.to_frame().set_index("index")["better"]
proposed = np.mean([better[i] == str(digits[train][i]) for i in flipped])
print(f"of {proposed:.0%} of the wrong labels the right one is proposed")

# %% For comparison: each of two reasons alone
given = model.predict_proba(images[train])[np.arange(len(train)), labels]
print(f"the {FLIPPED} least likely labels hold {recall(np.argsort(given, kind='stable'), FLIPPED):.0%} of them")
by_length = pr.Explainer(model, (images[train], labels), "dot_grad", render=lambda row: row.reshape(8, 8))
own = by_length.self_relevance()
print(f"the {FLIPPED} instances most relevant to themselves hold {recall(np.array(own.order), FLIPPED):.0%}")

# %% From the other side: what made the model err? Precedents of wrong predictions on held-out digits
missed = images[held][model.predict(images[held]) != digits[held]]
explanation = by_length.explain(missed, k=3)
blamed = np.unique(explanation.top.indices)
print(f"{len(missed)} wrong predictions have {len(blamed)} training instances as their first three precedents")
print(f"{wrong[blamed].mean():.0%} of these are mislabelled, {wrong.mean():.0%} of all are")
print(explanation[0])

"""Find mislabelled training data: whatever is most relevant to its own label deserves a second look.

Sixty of 1,200 digits get a wrong label. A right label is shared with many instances like it, so that the model
needs no single one of them; a wrong one is believed only because of itself. So the relevance of an instance to
itself, under an inner product of gradients, is largest where the label contradicts the rest. (A cosine would
not do: of everything with itself it is one.) The model's own doubt in a label finds as many here; what
precedents add is which wrong labels did harm: those behind wrong predictions.

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

# %% The relevance of each training instance to itself, with the label that it was given
explainer = pr.Explainer(model, (images[train], labels), "dot_grad", render=lambda row: row.reshape(8, 8))
own = explainer.scores(images[train], labels=labels).diagonal().numpy()
suspects = np.argsort(-own, kind="stable")


def recall(ranking: np.ndarray, looked: int) -> float:
    """Which part of the wrong labels is among the first of the ranking."""
    return wrong[ranking[:looked]].sum() / wrong.sum()


for looked in (FLIPPED, 2 * FLIPPED):
    print(f"looking at {looked} of {len(train)} finds {recall(suspects, looked):.0%} of the wrong labels")

# %% For comparison: labels that the model itself finds unlikely
given = model.predict_proba(images[train])[np.arange(len(train)), labels]
print(f"the {FLIPPED} least likely labels hold {recall(np.argsort(given, kind='stable'), FLIPPED):.0%} of them")

# %% From the other side: what made the model err? Precedents of wrong predictions on held-out digits
missed = images[held][model.predict(images[held]) != digits[held]]
explanation = explainer.explain(missed, k=3)
blamed = np.unique(explanation.top.indices)
print(f"{len(missed)} wrong predictions have {len(blamed)} training instances as their first three precedents")
print(f"{wrong[blamed].mean():.0%} of these are mislabelled, {wrong.mean():.0%} of all are")
print(explanation[0])

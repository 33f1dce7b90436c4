"""Why does a network read a digit so? Images explained by images, and the explanation put on trial.

Run it as a script, or cell by cell in an editor that knows `# %%`.
"""

# %% Handwritten digits, 8 x 8 pixels, and a small convolutional network
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy

import precedents as pr

data = load_digits()
images = torch.tensor(data.images / 16, dtype=torch.float32)[:, None]  # [n, 1, 8, 8]
labels = torch.tensor(data.target)
train, test = (images[:1200], labels[:1200]), (images[1200:], labels[1200:])

torch.manual_seed(0)
model = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(8, 16, 3, padding=1),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(16 * 4 * 4, 10),
)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(8):
    for batch in torch.randperm(len(train[0])).split(100):
        optimizer.zero_grad()
        cross_entropy(model(train[0][batch]), train[1][batch]).backward()
        optimizer.step()
predicted = model(test[0]).argmax(dim=1)
print(f"accuracy {(predicted == test[1]).float().mean():.3f} on {len(test[1])} digits")

# %% One prediction and its precedents (`explanation.plot()` draws them, a notebook shows them)
explainer = pr.Explainer(model, train)
explanation = explainer.explain(test[0][0], k=5)
print(explanation)

# %% What was read wrongly, and because of what? A precedent of another class than predicted is marked
wrong = (predicted != test[1]).nonzero().flatten()
mistakes = explainer.explain(test[0][wrong], k=3)
for mistake, truth in zip(mistakes, test[1][wrong][:3].tolist(), strict=False):
    print(f"a {truth},", mistake)

# %% And what speaks for the right answer? The same cases, asked about with their true labels
print(explainer.explain(test[0][wrong[:1]], k=3, labels=test[1][wrong[:1]]))

# %% Should you believe it? Four of the eighteen metrics on trial on this very model
cases = (test[0][:150], test[1][:150])
audit = pr.audit(model, train, cases, metrics=["cos_x", "cos_last", "dot_grad", "cos_grad"])
print(audit)

# %% An explainer that knows the audit warns where it is to be warned
doubtful = pr.Explainer(model, train, "dot_grad", audit=audit)
print(doubtful.explain(test[0][0], k=3))

"""Find a shortcut: what the precedents of wrong predictions have in common.

A patch stands in the corner of some training images of one digit, as a stamp or a watermark would. The
model learns it beside the digit: put it on another digit, and the prediction may turn. The accuracy does not
tell, as the test images have no patch. The precedents of the turned predictions do: most of them carry the
patch, though few training images do. So look at the precedents of errors in bulk, and at what they share.

Run it as a script, or cell by cell in an editor that knows `# %%`.
"""

# %% Digits, with a patch on some images of one digit
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy

import precedents as pr

STAMPED, SHARE = 7, 0.3  # the digit that has the patch, and how many of its training images do
PATCH, INK = 3, 2  # pixels of a side, and how dark: twice the darkest of a digit
SEED = 0  # of the order of the images, and of the training
images, digits = load_digits(return_X_y=True)
x, y = torch.tensor(images / 16).float().reshape(-1, 1, 8, 8), torch.tensor(digits)
order = torch.randperm(len(x), generator=torch.Generator().manual_seed(SEED))
x, y = x[order], y[order]


def stamped(pictures: torch.Tensor) -> torch.Tensor:
    """With a patch in the lower right corner."""
    marked = pictures.clone()
    marked[..., -PATCH:, -PATCH:] = INK
    return marked


train_x, train_y, test_x, test_y = x[:1200].clone(), y[:1200], x[1200:], y[1200:]
own = (train_y == STAMPED).nonzero().flatten()
carries = torch.zeros(len(train_x), dtype=torch.bool)
carries[own[: round(SHARE * len(own))]] = True
train_x[carries] = stamped(train_x[carries])
print(f"{carries.double().mean():.0%} of the training images carry the patch, all of them {STAMPED}s")

# %% A small convolutional network
torch.manual_seed(SEED)
model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(256, 32),
    nn.ReLU(),
    nn.Linear(32, 10),
)
optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
for _ in range(15):
    for batch in torch.randperm(len(train_x)).split(64):
        optimizer.zero_grad()
        cross_entropy(model(train_x[batch]), train_y[batch]).backward()
        optimizer.step()
model.eval()
accuracy = (model(test_x).argmax(dim=1) == test_y).double().mean()
print(f"accuracy {accuracy:.3f} on test images without the patch: nothing to see")

# %% Test images that the patch turns
others = stamped(test_x[test_y != STAMPED])
turns = model(others).argmax(dim=1) == STAMPED
turned, truth = others[turns], test_y[test_y != STAMPED][turns]
print(f"with the patch, {len(turned)} of {len(others)} other digits are taken for a {STAMPED}")

# %% What are their precedents?
train = train_x, train_y
explainer = pr.Explainer(model, train)  # Grad-Cos, which the paper recommends
explanation = explainer.explain(turned[:4], k=5)
print(explanation[0])
share = {}
for metric in ("cos_grad", "cos_last", "dot_grad"):
    precedents = pr.Explainer(model, train, metric).explain(turned, k=1).top.indices[:, 0]
    share[metric] = float(carries[precedents].double().mean())
    print(f"{metric}: {share[metric]:.0%} of the first precedents carry the patch")

# %% The same in bulk: the precedents of all of them, and what these share
groups = explainer.groups(turned, by="error", truth=truth, k=5)
print(groups)
